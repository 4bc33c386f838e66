package coordinator_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	. "github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/job"
)

// TestProperty_RandomEvents drives the core with a loop, tasks and a storage that lose, repeat and reorder what they may, and checks after
// every step what must always hold; then the faults stop and a checkpoint must complete. A failing seed is replayed with -run '/seed=N$'.
func TestProperty_RandomEvents(t *testing.T) {
	seeds, steps := uint64(300), 400
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			w := newWorld(seed)
			for range steps {
				w.disturb()
				if w.err != nil {
					t.Fatalf("%v\n%s", w.err, w.tail())
				}
			}
			w.heal()
			if w.err != nil {
				t.Fatalf("%v\n%s", w.err, w.tail())
			}
		})
	}
}

// world is everything around the core: its loop with storage work in flight, tasks, and what was promised to whom.
type world struct {
	rng     *rand.Rand
	core    *Core
	options job.CheckpointOptions
	now     time.Time
	log     []string
	err     error

	attempt int  // of the latest execution; 0: not all tasks run
	started int  // executions so far
	healed  bool // no faults any more
	closed  bool

	inbox []Event // what may be delivered at any time, in any order

	begun     map[checkpoint.ID]bool
	kinds     map[checkpoint.ID]checkpoint.Kind
	lastBegun checkpoint.ID
	// triggering is the checkpoint whose trigger phase has begun last; 0: that is over.
	triggering checkpoint.ID
	ended      map[checkpoint.ID]string
	durable    map[checkpoint.ID]bool // metadata is on disk
	deleted    map[checkpoint.ID]bool
	hooks      map[checkpoint.ID]bool // its master hook has given its state
	doubtful   map[checkpoint.ID]bool // nobody but this test knows whether they are durable
	writing    map[checkpoint.ID]bool
	kept       map[checkpoint.ID]map[job.AttemptID]bool // acks that were answered KEPT
	acks       map[RequestID]Ack
	asked      map[RequestID]bool
	replied    map[RequestID]bool
	request    RequestID
	completed  []checkpoint.ID
	finals     int
	stops      stops
	regions    regions
	shared     sharing
}

func newWorld(seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := &world{
		rng: rng, now: time.UnixMilli(1_700_000_000_000),
		begun: map[checkpoint.ID]bool{}, kinds: map[checkpoint.ID]checkpoint.Kind{}, ended: map[checkpoint.ID]string{},
		durable: map[checkpoint.ID]bool{}, hooks: map[checkpoint.ID]bool{}, deleted: map[checkpoint.ID]bool{}, doubtful: map[checkpoint.ID]bool{}, writing: map[checkpoint.ID]bool{},
		kept: map[checkpoint.ID]map[job.AttemptID]bool{}, acks: map[RequestID]Ack{},
		asked: map[RequestID]bool{}, replied: map[RequestID]bool{}, shared: newSharing(),
	}
	w.options = job.CheckpointOptions{
		Interval:      time.Duration(1+rng.IntN(20)) * 100 * time.Millisecond,
		MinPause:      time.Duration(rng.IntN(3)) * 200 * time.Millisecond,
		Timeout:       time.Duration(1+rng.IntN(30)) * 100 * time.Millisecond,
		MaxConcurrent: 1 + rng.IntN(3), Retained: 1 + rng.IntN(3), TolerableFailures: rng.IntN(3), DegradedAfter: seconds(rng.IntN(4) - 1), IntervalDuringBacklog: seconds(rng.IntN(4) - 1),
	}
	if w.regions = newRegions(hooked(seed, testGraph())); rng.IntN(2) == 0 {
		w.regions = newRegions(hooked(seed, pipelines()))
	}
	w.core = New(Config{Job: testJob, Graph: w.regions.graph, Epoch: 1, Options: w.options, History: 1 + rng.IntN(20)})
	return w
}

func (w *world) fail(format string, args ...any) {
	w.err = errors.Join(w.err, fmt.Errorf(format, args...))
}

func (w *world) tail() string {
	out := ""
	for _, l := range w.log[max(0, len(w.log)-60):] {
		out += l + "\n"
	}
	return out
}

// disturb does one random thing.
func (w *world) disturb() {
	switch n := w.rng.IntN(100); {
	case n < 45:
		w.deliver(w.rng.IntN(4) == 0)
	case n < 65:
		w.pass()
	case n < 75:
		w.ask()
	case n < 80:
		w.garbage()
	case n < 83 && w.attempt > 0:
		w.stop()
	case n < 85 && w.regions.up():
		w.stopPart()
	case n < 87 && w.attempt > 0:
		w.step(EndOfDataReached{})
	case n < 90 && w.attempt > 0:
		w.backlog(w.rng.IntN(3), w.rng.IntN(3) == 0)
	default:
		w.start()
	}
}

// deliver takes a random message out of the inbox; storage answers are never lost or repeated, the network's may be.
func (w *world) deliver(faulty bool) {
	if len(w.inbox) == 0 {
		return
	}
	i := w.rng.IntN(len(w.inbox))
	ev := w.inbox[i]
	switch ev.(type) {
	case Ack, NotifyConfirmed, AbortConfirmed, Decline, TriggerFailed:
		if faulty && w.rng.IntN(2) == 0 { // repeated later
			w.step(ev)
			return
		}
		w.inbox = append(w.inbox[:i], w.inbox[i+1:]...)
		if faulty {
			return // lost
		}
	default:
		w.inbox = append(w.inbox[:i], w.inbox[i+1:]...)
	}
	w.step(w.applyStorage(ev))
}

// applyStorage does what the storage was asked to when its answer is due.
func (w *world) applyStorage(ev Event) Event {
	switch ev := ev.(type) {
	case MetadataWritten:
		delete(w.writing, ev.ID)
		w.durable[ev.ID] = ev.Outcome == Written || ev.Outcome == Uncertain && w.rng.IntN(2) == 0
		w.doubtful[ev.ID] = ev.Outcome == Uncertain
	case Discarded:
		if ev.Err == "" {
			w.deleted[ev.ID] = true
		}
	}
	return ev
}

// pass lets time go by, mostly to the next deadline.
func (w *world) pass() {
	w.now = w.now.Add(time.Duration(w.rng.IntN(100)) * time.Millisecond)
	if at, ok := w.core.Deadline(); ok && w.rng.IntN(3) > 0 && at.After(w.now) {
		w.now = at
	}
	w.step(Tick{})
	if at, ok := w.core.Deadline(); ok && !at.After(w.now) {
		w.fail("after a Tick the deadline %s is not in the future of %s: the loop would spin", at, w.now)
	}
}

func (w *world) ask() {
	w.request++
	w.asked[w.request] = true
	ev := TriggerRequested{Request: w.request, Kind: checkpoint.Checkpoint}
	if w.rng.IntN(2) == 0 {
		ev.Kind = checkpoint.Savepoint
		ev.Directory = []string{"", "/sp"}[w.rng.IntN(2)]
		ev.Stop = w.maybeStop()
	}
	w.step(ev)
}

func (w *world) start() {
	if w.attempt > 0 || w.closed || !w.core.Settled() { // the rule of the loop
		return
	}
	from := checkpoint.ID(0)
	if l := w.core.Latest(); l != nil {
		from = l.Metadata.ID
	}
	if w.deleted[from] {
		w.fail("restore from %d, which is deleted", from)
	}
	for id := range w.durable {
		if w.durable[id] && !w.deleted[id] && w.kinds[id] == checkpoint.Checkpoint && id > from && w.stops.completed == 0 {
			w.fail("restore from %d, and a leader that came now would restore from %d, which is durable", from, id)
		}
	}
	w.started++
	w.attempt = w.started
	if !w.regions.up() {
		w.stops.suspended = 0
	}
	for _, a := range w.regions.start(w.started) {
		if w.stops.suspended != 0 {
			w.stops.resumed[a] = true // it does not stand still
		}
	}
	w.step(TasksRunning{Tasks: w.tasks(), Random: w.rng.Float64()})
}

func (w *world) stop() {
	w.attempt = 0
	w.regions.stopAll()
	w.step(TasksStopped{Reason: checkpoint.TaskFailure})
}

// garbage is what a confused or malicious peer could send.
func (w *world) garbage() {
	id := checkpoint.ID(w.rng.IntN(int(w.lastBegun) + 3))
	a := job.AttemptID{Job: testJob, Task: w.regions.graph.Tasks()[w.rng.IntN(3)], Attempt: w.rng.IntN(w.started + 2)}
	for w.regions.runs(a) {
		a.Attempt++ // the running attempts are honest
	}
	w.request++
	events := []Event{
		Ack{Request: w.request, Epoch: 1, Attempt: a, ID: id},
		Ack{Request: w.request, Epoch: 2, Attempt: a, ID: id},
		Decline{Epoch: 1, Attempt: a, ID: id, Reason: "NONSENSE"},
		TriggerFailed{ID: id, Attempt: a},
		NotifyConfirmed{Attempt: a, ID: id},
		TasksRunning{}, Tick{}, nil,
	}
	ev := events[w.rng.IntN(len(events))]
	if _, ok := ev.(TasksRunning); ok && w.regions.up() {
		return // it is a stop as well
	}
	w.step(ev)
}

func (w *world) step(ev Event) {
	w.log = append(w.log, fmt.Sprintf("%s %v", w.now.Format("05.000"), ev))
	if a, ok := ev.(Ack); ok {
		w.acks[a.Request] = a
	}
	effects := w.core.Step(w.now, ev)
	fails, cancels := false, false
	for _, e := range effects {
		w.log = append(w.log, "         -> "+e.String())
		w.observe(e)
		_, isFail := e.(FailJob)
		fails = fails || isFail
		_, isCancel := e.(CancelJob)
		cancels = cancels || isCancel
	}
	w.check()
	if (fails || cancels) && w.regions.up() {
		w.stop()
	}
	if cancels {
		w.close()
	}
}

// observe plays the loop, and checks each effect against what was before.
func (w *world) observe(e Effect) {
	switch e := e.(type) {
	case InitLocation:
		w.begin(e)
	case CallHooks:
		w.callHooks(e)
	case SendTrigger:
		w.trigger(e)
	case AckReply:
		w.verdict(e)
	case WriteMetadata:
		w.write(e)
	case SendNotifyComplete:
		w.notify(e)
	case SendNotifyAborted:
		w.resume(e)
	case Discard:
		if l := w.core.Latest(); l != nil && l.Metadata.ID == e.ID {
			w.fail("the latest checkpoint %d is discarded", e.ID)
		}
		if w.writing[e.ID] {
			w.fail("checkpoint %d is discarded while its metadata is being written", e.ID)
		}
		w.inbox = append(w.inbox, Discarded{ID: e.ID, Err: w.maybe("busy")})
	case RemoveShared:
		w.removeShared(e)
	case Reply:
		if !w.asked[e.Request] || w.replied[e.Request] {
			w.fail("request %d was answered twice or never asked", e.Request)
		}
		w.replied[e.Request] = true
		if e.Reason == checkpoint.None && (w.ended[e.ID] != "completed" || !w.durable[e.ID]) {
			w.fail("success of %d before it completed", e.ID)
		}
	case Completed:
		w.end(e.ID, "completed")
		if !w.durable[e.ID] {
			w.fail("checkpoint %d completed but its metadata is not durable", e.ID)
		}
		w.completed = append(w.completed, e.ID)
		if e.Final {
			w.finals++
		}
		if e.Stop.EndsTasks() {
			w.stops.completed = e.ID
		}
	case Aborted:
		w.end(e.ID, "aborted")
	}
}

func (w *world) end(id checkpoint.ID, how string) {
	if w.ended[id] != "" || !w.begun[id] {
		w.fail("I1: checkpoint %d %s after it %s", id, how, w.ended[id])
	}
	w.ended[id] = how
}

func (w *world) maybe(text string) string {
	if !w.healed && w.rng.IntN(15) == 0 {
		return text
	}
	return ""
}

// check compares the views of the core with what was seen from outside.
func (w *world) check() {
	w.checkShared()
	c := w.core.Counts()
	if c.InProgress != len(w.begun)-len(w.ended) || c.Completed != len(w.completed) || c.Completed+c.Failed != len(w.ended) {
		w.fail("counts are %+v; %d begun, %d ended, %d completed", c, len(w.begun), len(w.ended), len(w.completed))
	}
	want := checkpoint.ID(0)
	for _, id := range w.completed {
		if w.kinds[id] == checkpoint.Checkpoint {
			want = max(want, id)
		}
	}
	if w.stops.completed != 0 {
		want = w.stops.completed
	}
	got := checkpoint.ID(0)
	if l := w.core.Latest(); l != nil {
		got = l.Metadata.ID
	}
	if got != want && !w.closed {
		w.fail("latest is %d, want %d", got, want)
	}
	if w.core.Settled() && len(w.writing) > 0 {
		w.fail("settled with %d writes in flight", len(w.writing))
	}
}
