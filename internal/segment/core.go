package segment

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// Number names a segment; none is used twice in a process.
type Number int64

// Key is a checkpoint of a job.
type Key struct {
	Job        job.ID
	Checkpoint checkpoint.ID
}

// String is "job/id".
func (k Key) String() string { return fmt.Sprintf("%s/%d", k.Job, k.Checkpoint) }

// Event is something that has happened.
type Event interface{ segmentEvent() }

// The events.
type (
	// Join: the task runs here, and takes part in checkpoints from now on.
	Join struct{ Task job.AttemptID }
	// Leave: it does not any more. Nothing of it is being written.
	Leave struct{ Task job.AttemptID }
	// Place: the task has a piece of state.
	Place struct {
		Key  Key
		Task job.AttemptID
	}
	// Missed: the segment took no pieces any more when the one came that it was placed for.
	Missed struct {
		Segment Number
		Task    job.AttemptID
	}
	// Done: the task has no more pieces.
	Done struct {
		Key  Key
		Task job.AttemptID
	}
	// Settle: the task has nothing to do with the checkpoint any more. Keep: its state may be referred to.
	Settle struct {
		Key  Key
		Task job.AttemptID
		Keep bool
	}
	// Tick: time has passed.
	Tick struct{}
	// Failed: the segment could not be written.
	Failed struct{ Segment Number }
	// Published: the segment is durable.
	Published struct{ Segment Number }
)

func (Join) segmentEvent()      {}
func (Leave) segmentEvent()     {}
func (Place) segmentEvent()     {}
func (Missed) segmentEvent()    {}
func (Done) segmentEvent()      {}
func (Settle) segmentEvent()    {}
func (Tick) segmentEvent()      {}
func (Failed) segmentEvent()    {}
func (Published) segmentEvent() {}

// Effect is something to do.
type Effect interface {
	segmentEffect()
	String() string
}

// The effects.
type (
	// Open begins a segment.
	Open struct {
		Segment Number
		Key     Key
	}
	// Write: the piece goes into this segment.
	Write struct{ Segment Number }
	// Full: too many segments are open, the piece must go elsewhere.
	Full struct{}
	// Arm: a Tick is due then.
	Arm struct {
		Segment Number
		At      time.Time
	}
	// Publish makes the segment durable.
	Publish struct{ Segment Number }
	// Discard stops the writing of a segment that nobody waits for.
	Discard struct{ Segment Number }
	// Remove deletes a published segment.
	Remove struct{ Segment Number }
	// Forget: nothing more will be said of the segment.
	Forget struct{ Segment Number }
)

func (Open) segmentEffect()    {}
func (Write) segmentEffect()   {}
func (Full) segmentEffect()    {}
func (Arm) segmentEffect()     {}
func (Publish) segmentEffect() {}
func (Discard) segmentEffect() {}
func (Remove) segmentEffect()  {}
func (Forget) segmentEffect()  {}

func (e Open) String() string  { return fmt.Sprintf("open %d of %s", e.Segment, e.Key) }
func (e Write) String() string { return fmt.Sprintf("write into %d", e.Segment) }
func (Full) String() string    { return "full" }
func (e Arm) String() string {
	return fmt.Sprintf("arm %d at %s", e.Segment, e.At.UTC().Format("15:04:05.000"))
}
func (e Publish) String() string { return fmt.Sprintf("publish %d", e.Segment) }
func (e Discard) String() string { return fmt.Sprintf("discard %d", e.Segment) }
func (e Remove) String() string  { return fmt.Sprintf("remove %d", e.Segment) }
func (e Forget) String() string  { return fmt.Sprintf("forget %d", e.Segment) }

// The life of a segment:
//
//	open ──> publishing ──> published ──> (forgotten)
//	  └───────────┴──> (forgotten, when it fails or nobody is left)
type phase int

const (
	open phase = iota + 1
	publishing
	published
)

// segment is a file to which tasks may still refer.
type segment struct {
	key     Key
	phase   phase
	due     time.Time // zero: nobody is done
	kept    bool      // somebody may refer to it for ever
	members map[job.AttemptID]*member
}

// member is a task with pieces in a segment.
type member struct {
	pieces int
	done   bool
}

// round is a checkpoint of a job.
type round struct {
	open Number // 0: none
	said map[job.AttemptID]bool
}

// maxRounds bounds the checkpoints of which it is remembered who has said something. One that is forgotten too early costs a linger.
const maxRounds = 64

// Core decides. It is a plain value that one owner touches.
type Core struct {
	linger  time.Duration
	maxOpen int

	last     Number
	tasks    map[job.ID]map[job.AttemptID]bool
	rounds   map[Key]*round
	order    []Key // of rounds, oldest first
	segments map[Number]*segment
}

// NewCore returns a core. linger is how long a segment waits for other tasks after the first one is done, maxOpen how many segments may be
// open or in publication at a time.
func NewCore(linger time.Duration, maxOpen int) *Core {
	return &Core{
		linger: linger, maxOpen: maxOpen,
		tasks: map[job.ID]map[job.AttemptID]bool{}, rounds: map[Key]*round{}, segments: map[Number]*segment{},
	}
}

// Step takes an event and returns what to do, in order.
func (c *Core) Step(now time.Time, ev Event) []Effect {
	switch ev := ev.(type) {
	case Join:
		if c.tasks[ev.Task.Job] == nil {
			c.tasks[ev.Task.Job] = map[job.AttemptID]bool{}
		}
		c.tasks[ev.Task.Job][ev.Task] = true
	case Leave:
		return c.leave(now, ev.Task)
	case Place:
		return c.place(ev)
	case Missed:
		return c.missed(ev)
	case Done:
		return c.done(now, ev)
	case Settle:
		return c.settle(now, ev)
	case Tick:
		var out []Effect
		for _, n := range slices.Sorted(maps.Keys(c.segments)) {
			out = append(out, c.review(now, c.segments[n].key)...)
		}
		return out
	case Failed:
		return c.failed(ev.Segment)
	case Published:
		return c.published(ev.Segment)
	}
	return nil
}

func (c *Core) round(key Key) *round {
	r := c.rounds[key]
	if r == nil {
		r = &round{said: map[job.AttemptID]bool{}}
		c.rounds[key] = r
		c.order = append(c.order, key)
		c.forgetOld()
	}
	return r
}

// forgetOld drops the oldest rounds without an open segment while there are too many; those with one are bounded by maxOpen.
func (c *Core) forgetOld() {
	for i := 0; i < len(c.order)-1 && len(c.order) > maxRounds; {
		if key := c.order[i]; c.rounds[key].open == 0 {
			c.forget(key)
			continue
		}
		i++
	}
}

func (c *Core) forget(key Key) {
	delete(c.rounds, key)
	c.order = slices.DeleteFunc(c.order, func(k Key) bool { return k == key })
}

func (c *Core) place(ev Place) []Effect {
	r := c.round(ev.Key)
	var out []Effect
	if r.open == 0 {
		if c.busy() >= c.maxOpen {
			return []Effect{Full{}}
		}
		c.last++
		r.open = c.last
		c.segments[r.open] = &segment{key: ev.Key, phase: open, members: map[job.AttemptID]*member{}}
		out = append(out, Open{r.open, ev.Key})
	}
	s := c.segments[r.open]
	if s.members[ev.Task] == nil {
		s.members[ev.Task] = &member{}
	}
	s.members[ev.Task].pieces++
	return append(out, Write{r.open})
}

// busy counts the segments that are not published.
func (c *Core) busy() int {
	n := 0
	for _, s := range c.segments {
		if s.phase != published {
			n++
		}
	}
	return n
}

func (c *Core) missed(ev Missed) []Effect {
	s := c.segments[ev.Segment]
	if s == nil || s.members[ev.Task] == nil {
		return nil
	}
	m := s.members[ev.Task]
	if m.pieces--; m.pieces > 0 {
		return nil
	}
	return c.drop(ev.Segment, ev.Task)
}

func (c *Core) done(now time.Time, ev Done) []Effect {
	r := c.round(ev.Key)
	r.said[ev.Task] = true
	if s := c.segments[r.open]; s != nil && s.members[ev.Task] != nil {
		s.members[ev.Task].done = true
	}
	return c.review(now, ev.Key)
}

func (c *Core) settle(now time.Time, ev Settle) []Effect {
	if c.tasks[ev.Task.Job][ev.Task] { // else nobody waits for it
		c.round(ev.Key).said[ev.Task] = true
	}
	var out []Effect
	for _, n := range slices.Sorted(maps.Keys(c.segments)) {
		if s := c.segments[n]; s.key == ev.Key && s.members[ev.Task] != nil {
			s.kept = s.kept || ev.Keep
			out = append(out, c.drop(n, ev.Task)...)
		}
	}
	return append(out, c.review(now, ev.Key)...)
}

// drop takes a task out of a segment. Of an open one nothing is left when nobody is in it; what was published is deleted unless it was kept.
func (c *Core) drop(n Number, task job.AttemptID) []Effect {
	s := c.segments[n]
	delete(s.members, task)
	if len(s.members) > 0 {
		return nil
	}
	switch s.phase {
	case open:
		c.rounds[s.key].open = 0
		delete(c.segments, n)
		return []Effect{Discard{n}, Forget{n}}
	case publishing:
		if s.kept { // what it refers to is about to be there
			return nil
		}
		return []Effect{Discard{n}} // it may be too late: Published decides
	case published:
	}
	return c.end(n)
}

// end forgets a published segment that nobody is in, and deletes it unless it was kept.
func (c *Core) end(n Number) []Effect {
	kept := c.segments[n].kept
	delete(c.segments, n)
	if kept {
		return []Effect{Forget{n}}
	}
	return []Effect{Remove{n}, Forget{n}}
}

// review publishes the open segment of a checkpoint if it is time, or says when it will be.
func (c *Core) review(now time.Time, key Key) []Effect {
	r := c.rounds[key]
	if r == nil {
		return nil
	}
	s := c.segments[r.open]
	if s == nil {
		return nil
	}
	someDone := false
	for _, m := range s.members {
		someDone = someDone || m.done
	}
	var out []Effect
	switch {
	case !someDone:
		s.due = time.Time{}
		return nil
	case s.due.IsZero():
		s.due = now.Add(c.linger)
		out = append(out, Arm{r.open, s.due})
	}
	if all := c.allSaid(r, key.Job); !all && now.Before(s.due) {
		return out
	}
	n := r.open
	s.phase, r.open = publishing, 0
	return []Effect{Publish{n}}
}

// allSaid reports whether no task of the job is still awaited.
func (c *Core) allSaid(r *round, id job.ID) bool {
	for task := range c.tasks[id] {
		if !r.said[task] {
			return false
		}
	}
	return true
}

func (c *Core) leave(now time.Time, task job.AttemptID) []Effect {
	delete(c.tasks[task.Job], task)
	if len(c.tasks[task.Job]) == 0 {
		delete(c.tasks, task.Job)
	}
	var out []Effect
	for _, key := range slices.Clone(c.order) {
		if key.Job != task.Job {
			continue
		}
		out = append(out, c.review(now, key)...)
		if c.tasks[task.Job] == nil && c.rounds[key].open == 0 {
			c.forget(key)
		}
	}
	return out
}

func (c *Core) failed(n Number) []Effect {
	s := c.segments[n]
	if s == nil {
		return nil
	}
	if r := c.rounds[s.key]; r != nil && r.open == n {
		r.open = 0
	}
	delete(c.segments, n)
	return []Effect{Forget{n}}
}

func (c *Core) published(n Number) []Effect {
	s := c.segments[n]
	if s == nil {
		return nil
	}
	s.phase = published
	if len(s.members) > 0 {
		return nil
	}
	return c.end(n)
}
