package segment

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

func taskOf(n int) job.AttemptID {
	return job.AttemptID{Job: "j", Task: job.TaskID{Vertex: "v", Subtask: n}, Attempt: 1}
}

func keyOf(id int) Key { return Key{"j", checkpoint.ID(id)} }

// TestTranscripts runs testdata: commands are events, the output is the effects; -rewrite writes what the core does now. Each command takes
// place a millisecond after the one before; the linger is 10 ms, two segments may be open. Commands:
//
//	new      join T      leave T      place ID T      missed SEGMENT T      done ID T      settle ID T [keep]      tick [MILLISECONDS]
//	failed SEGMENT      published SEGMENT
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		core := NewCore(10*time.Millisecond, 2)
		now := time.UnixMilli(1_700_000_000_000)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			now = now.Add(time.Millisecond)
			arg := func(i int) int {
				n, err := strconv.Atoi(d.CmdArgs[i].Key)
				if err != nil {
					d.Fatalf(t, "%s", err)
				}
				return n
			}
			var ev Event
			switch d.Cmd {
			case "join":
				ev = Join{taskOf(arg(0))}
			case "leave":
				ev = Leave{taskOf(arg(0))}
			case "place":
				ev = Place{keyOf(arg(0)), taskOf(arg(1))}
			case "missed":
				ev = Missed{Number(arg(0)), taskOf(arg(1))}
			case "done":
				ev = Done{keyOf(arg(0)), taskOf(arg(1))}
			case "settle":
				ev = Settle{keyOf(arg(0)), taskOf(arg(1)), d.HasArg("keep")}
			case "tick":
				if len(d.CmdArgs) > 0 {
					now = now.Add(time.Duration(arg(0)) * time.Millisecond)
				}
				ev = Tick{}
			case "failed":
				ev = Failed{Number(arg(0))}
			case "published":
				ev = Published{Number(arg(0))}
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			var out []string
			for _, eff := range core.Step(now, ev) {
				out = append(out, eff.String())
			}
			if out == nil {
				return "none"
			}
			return strings.Join(out, "\n")
		})
	})
}

// watched is a segment as the twin knows it: only what was said of it, without a decision.
type watched struct {
	phase   string // open, publishing, published, gone
	key     Key
	members map[job.AttemptID]bool
	done    map[job.AttemptID]bool
	first   time.Time // when the first member was done
	kept    bool
	failed  bool
	removed bool
}

// twin plays tasks and files at random around a core, and holds it to its promises.
type twin struct {
	t        *testing.T
	r        *rand.Rand
	core     *Core
	now      time.Time
	joined   map[job.AttemptID]bool
	said     map[string]bool // key and task
	over     map[string]bool // settled
	segments map[Number]*watched
	log      []string
}

func at(k Key, task job.AttemptID) string { return fmt.Sprint(k, task) }

func (w *twin) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\nafter:\n%s", fmt.Sprintf(format, args...), strings.Join(w.log, "\n"))
}

func (w *twin) step(ev Event) []Effect {
	effects := w.core.Step(w.now, ev)
	w.log = append(w.log, fmt.Sprintf("%T%+v -> %v", ev, ev, effects))
	for _, eff := range effects {
		switch eff := eff.(type) {
		case Open:
			if w.segments[eff.Segment] != nil {
				w.fatalf("segment %d was there before", eff.Segment)
			}
			w.segments[eff.Segment] = &watched{phase: "open", key: eff.Key, members: map[job.AttemptID]bool{}, done: map[job.AttemptID]bool{}}
		case Write:
			if s := w.segments[eff.Segment]; s == nil || s.phase != "open" || s.key != ev.(Place).Key {
				w.fatalf("write into segment %d: %+v", eff.Segment, s)
			}
		case Publish:
			s := w.segments[eff.Segment]
			if s.phase != "open" || len(s.done) == 0 {
				w.fatalf("publish of segment %d: %+v", eff.Segment, s)
			}
			s.phase = "publishing"
		case Discard:
			if s := w.segments[eff.Segment]; len(s.members) > 0 || s.kept {
				w.fatalf("discard of segment %d, which somebody wants: %+v", eff.Segment, s)
			}
		case Remove:
			s := w.segments[eff.Segment]
			if s.phase != "published" || s.kept || len(s.members) > 0 || s.removed {
				w.fatalf("removal of segment %d, which may be referred to: %+v", eff.Segment, s)
			}
			s.removed = true
		}
	}
	return effects
}

// settleTwin books that a task has left a checkpoint.
func (w *twin) settle(k Key, task job.AttemptID, keep bool) {
	w.said[at(k, task)], w.over[at(k, task)] = true, true
	for _, s := range w.segments {
		if s.key == k && s.members[task] {
			s.kept = s.kept || keep
			delete(s.members, task)
			delete(s.done, task)
		}
	}
	w.step(Settle{k, task, keep})
}

func (w *twin) place(k Key, task job.AttemptID) {
	for _, eff := range w.step(Place{k, task}) {
		if eff, ok := eff.(Write); ok {
			w.segments[eff.Segment].members[task] = true
		}
	}
}

func (w *twin) done(k Key, task job.AttemptID) {
	w.said[at(k, task)] = true
	for _, s := range w.segments {
		if s.key == k && s.phase == "open" && s.members[task] {
			s.done[task] = true
			if s.first.IsZero() {
				s.first = w.now
			}
		}
	}
	w.step(Done{k, task})
}

func (w *twin) finish(n Number) {
	s := w.segments[n]
	if w.r.IntN(6) == 0 {
		s.phase, s.failed = "gone", true
		w.step(Failed{n})
		return
	}
	s.phase = "published"
	w.step(Published{n})
}

// check: no open segment waits when every task that is here has said that it is done.
func (w *twin) check() {
	for n, s := range w.segments {
		if s.phase != "open" || len(s.done) == 0 {
			continue
		}
		waits := false
		for task := range w.joined {
			waits = waits || !w.said[at(s.key, task)]
		}
		if !waits {
			w.fatalf("segment %d waits for nobody: %+v", n, s)
		}
	}
}

func (w *twin) open() []Number {
	var out []Number
	for n, s := range w.segments {
		if s.phase == "publishing" {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

func (w *twin) random() {
	w.now = w.now.Add(time.Duration(w.r.IntN(3)) * time.Millisecond)
	k, task := keyOf(1+w.r.IntN(3)), taskOf(w.r.IntN(5))
	over, said := w.over[at(k, task)], w.said[at(k, task)]
	switch op := w.r.IntN(10); {
	case op < 4 && w.joined[task] && !said:
		w.place(k, task)
	case op < 6 && w.joined[task] && !said:
		w.done(k, task)
	case op == 6 && w.joined[task] && !over:
		w.settle(k, task, w.r.IntN(2) == 0 && said && w.durable(k, task))
	case op == 7:
		w.step(Tick{})
	case op == 8 && !w.joined[task] && w.r.IntN(4) == 0:
		w.joined[task] = true
		w.step(Join{task})
	default:
		if publishing := w.open(); len(publishing) > 0 {
			w.finish(publishing[w.r.IntN(len(publishing))])
		}
	}
}

// durable: all that the task has is published, as it must be before an ack.
func (w *twin) durable(k Key, task job.AttemptID) bool {
	for _, s := range w.segments {
		if s.key == k && s.members[task] && s.phase != "published" {
			return false
		}
	}
	return true
}

func TestProperty_RandomTasksAndFiles_KeepThePromises(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 7))
		w := &twin{
			t: t, r: r, core: NewCore(10*time.Millisecond, 3), now: time.UnixMilli(1_700_000_000_000),
			joined: map[job.AttemptID]bool{}, said: map[string]bool{}, over: map[string]bool{}, segments: map[Number]*watched{},
			log: []string{fmt.Sprintf("seed %d", seed)},
		}
		for range 120 {
			w.random()
			w.check()
		}
		w.windDown()
	}
}

// windDown: when the linger has passed every segment with somebody who is done is published, and when all have settled the core knows nothing.
func (w *twin) windDown() {
	w.now = w.now.Add(time.Second)
	w.step(Tick{})
	for n, s := range w.segments {
		if s.phase == "open" && len(s.done) > 0 {
			w.fatalf("segment %d has lingered for too long: %+v", n, s)
		}
	}
	for _, n := range w.open() {
		w.finish(n)
	}
	for k := 1; k <= 3; k++ {
		for n := range 5 {
			if task := taskOf(n); !w.over[at(keyOf(k), task)] {
				w.settle(keyOf(k), task, false)
			}
		}
	}
	for n := range 5 {
		w.step(Leave{taskOf(n)})
	}
	if len(w.core.segments)+len(w.core.tasks) > 0 || len(w.core.order) != len(w.core.rounds) || len(w.core.rounds) > 0 {
		w.fatalf("left: %d segments, %d jobs, rounds %v", len(w.core.segments), len(w.core.tasks), w.core.order)
	}
	for n, s := range w.segments {
		if s.phase == "published" && s.kept == s.removed {
			w.fatalf("segment %d is kept and removed, or neither: %+v", n, s)
		}
	}
}

func TestRounds_AreBounded(t *testing.T) {
	c := NewCore(time.Millisecond, 4)
	now := time.UnixMilli(0)
	c.Step(now, Join{taskOf(0)})
	c.Step(now, Join{taskOf(1)}) // which never says anything
	for id := range 10 * maxRounds {
		c.Step(now, Done{keyOf(id + 1), taskOf(0)})
	}
	if len(c.rounds) != maxRounds || len(c.order) != maxRounds {
		t.Errorf("%d rounds are remembered, %d in order, want %d", len(c.rounds), len(c.order), maxRounds)
	}
}
