package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/slotpool"
)

// TestRandomEvents plays seeded random faults against the core in a small world of executors and a slot pool. After every step the promises
// of the package are checked; after the faults have stopped the job must run, or end as it should. A failing seed is replayed with
// -run 'TestRandomEvents/seed=N$'.
func TestRandomEvents(t *testing.T) {
	reached := map[job.State]int{}
	dropped, alone, replanned, plansFailed := 0, 0, 0, 0
	for seed := range uint64(400) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			w := newWorld(t, seed)
			w.deliver(Start{})
			for range 300 {
				w.random(true)
			}
			w.calm()
			for range 5000 {
				if w.done() {
					break
				}
				w.random(false)
			}
			if !w.done() {
				w.fatalf("faults have stopped, but the job is %s: %s", w.core.State(), w.core.Detail())
			}
			reached[w.core.State()]++
			dropped += w.droppedExecutors
			alone += w.restartedAlone
			replanned += w.replanned
			plansFailed += w.plansFailed
		})
	}
	for _, s := range []job.State{job.Running, job.Finished, job.Canceled, job.Failed} {
		if reached[s] == 0 && !t.Failed() {
			t.Errorf("no seed ends in %s: the test does not test it", s)
		}
	}
	if dropped == 0 && !t.Failed() {
		t.Error("no seed drops an executor: the test does not test it")
	}
	if (replanned < 100 || plansFailed == 0) && !t.Failed() {
		t.Errorf("%d changes of the plan, %d of plans that failed: the test does not test them", replanned, plansFailed)
	}
	if alone == 0 && !t.Failed() {
		t.Error("no seed restarts a region while others run: the test does not test it")
	}
}

type world struct {
	t     *testing.T
	rng   *rand.Rand
	core  *Core
	now   time.Time
	trace []string

	executors []*fakeExecutor
	inbox     []Event // of the loop: from the pool and failed calls
	history   []Event // delivered reports, for replays
	pool      slotpool.Pool
	request   int // number of the latest request
	graph     *job.Graph
	regions   [][]job.TaskID
	region    map[job.TaskID]int
	attempts  map[job.TaskID]int     // that were deployed last
	failed    map[int]bool           // regions that have a reason to restart
	announced map[job.AttemptID]bool // of TasksRunning, and of no TasksStopped since

	bounded          bool // the job's input ends
	cancelable       bool
	canceled         bool
	endOfData        bool
	tasksRunning     bool
	state            job.State
	droppedExecutors int
	restartedAlone   int // regions
	replanned        int
	plansFailed      int
}

type fakeExecutor struct {
	id         job.ExecutorID
	registered bool // as the registry believes
	alive      bool
	hung       bool
	commands   []command // delivered in order
	reports    []Event
	running    map[job.AttemptID]job.TaskState
}

type command struct {
	deploy  bool
	attempt job.AttemptID
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), now: transcriptStart, state: job.Created}
	w.bounded, w.cancelable = seed%3 == 0, seed%5 == 0
	g := &job.Graph{Name: "random"}
	for i := range 1 + w.rng.IntN(3) {
		v := job.Vertex{ID: job.VertexID(fmt.Sprintf("v%d", i)), Parallelism: 1 + w.rng.IntN(3)}
		if i > 0 && w.chance(0.7) {
			p := []job.Partitioning{job.Forward, job.Forward, job.Hash}[w.rng.IntN(3)]
			g.Edges = append(g.Edges, job.Edge{From: g.Vertices[w.rng.IntN(i)].ID, To: v.ID, Partitioning: p})
		}
		g.Vertices = append(g.Vertices, v)
	}
	w.announced = map[job.AttemptID]bool{}
	w.plan(g, 0)
	w.core = New(Config{Job: "j", Graph: g, Restart: job.RestartOptions{Attempts: 12, MaxDelay: time.Second}, CancelTimeout: 3 * time.Second})
	for i := range 3 {
		e := &fakeExecutor{id: job.ExecutorID(fmt.Sprintf("e%d", i)), alive: true, running: map[job.AttemptID]job.TaskState{}}
		w.executors = append(w.executors, e)
		w.registers(e)
	}
	return w
}

// plan takes a graph whose attempts begin above base.
func (w *world) plan(g *job.Graph, base int) {
	w.graph, w.regions, w.region, w.attempts, w.failed = g, g.Regions(), map[job.TaskID]int{}, map[job.TaskID]int{}, map[int]bool{}
	for i, tasks := range w.regions {
		for _, id := range tasks {
			w.region[id], w.attempts[id] = i, base
		}
	}
}

// rescaled is the graph with a vertex at another parallelism.
func (w *world) rescaled() *job.Graph {
	g := *w.graph
	g.Vertices = slices.Clone(g.Vertices)
	g.Vertices[w.rng.IntN(len(g.Vertices))].Parallelism = 1 + w.rng.IntN(4)
	return &g
}

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.trace[max(0, len(w.trace)-60):] {
		w.t.Log(line)
	}
	w.t.Fatalf(format, args...)
}

func (w *world) chance(p float64) bool { return w.rng.Float64() < p }

func (w *world) executor(id job.ExecutorID) *fakeExecutor {
	return w.executors[slices.IndexFunc(w.executors, func(e *fakeExecutor) bool { return e.id == id })]
}

// calm ends what keeps the job from running without being a fault of the moment.
func (w *world) calm() {
	w.canceled = w.canceled || w.cancelable
	if w.cancelable {
		w.deliver(CancelRequested{})
	}
	for _, e := range w.executors {
		if e.hung {
			e.kill()
		}
	}
}

func (w *world) done() bool {
	s := w.core.State()
	if w.bounded || w.cancelable || s.Terminal() {
		return s.Terminal() && (s == job.Failed || (s == job.Canceled) == w.canceled || s == job.Finished)
	}
	return s == job.Running && w.tasksRunning
}

// random does one of the things that can happen next.
func (w *world) random(faults bool) {
	w.now = w.now.Add(time.Duration(w.rng.IntN(20)) * time.Millisecond)
	e := w.executors[w.rng.IntN(len(w.executors))]
	switch n := w.rng.IntN(100); {
	case n < 20:
		e.obey()
	case n < 45:
		if len(e.reports) > 0 {
			ev := e.reports[0]
			e.reports = e.reports[1:]
			w.history = append(w.history, ev)
			w.deliver(ev)
		}
	case n < 60:
		w.work(e, faults)
	case n < 70:
		if len(w.inbox) > 0 {
			ev := w.inbox[0]
			w.inbox = w.inbox[1:]
			if g, ok := ev.(grant); !ok {
				w.deliver(ev)
			} else if g.number == w.request {
				w.deliver(g.Event)
			}
		}
	case n < 78:
		w.deliver(Tick{Random: w.rng.Float64()}) // of a timer that nobody waits for any more
	case n < 84:
		if at, ok := w.core.Deadline(); ok {
			w.now = later(w.now, at)
			w.deliver(Tick{Random: w.rng.Float64()})
		}
	case n < 88:
		w.register(e)
	case n < 90:
		w.deliver(CheckpointCompleted{})
	case n < 92 && len(w.history) > 0:
		w.deliver(w.history[w.rng.IntN(len(w.history))]) // duplicated, or from long ago
	case faults:
		w.fault(e, n)
	}
}

func (w *world) fault(e *fakeExecutor, n int) {
	switch n {
	case 92, 93:
		e.kill()
	case 94:
		e.hung = e.alive
	case 95:
		e.hung = false
	case 96:
		class := job.FailureClass(1 + w.rng.IntN(2))
		if w.chance(0.02) {
			class = job.FailurePermanent
		}
		ev := JobFailed{Failure: job.Failure{Class: class, Message: "random"}}
		if x := w.core.Executions(); w.chance(0.5) {
			some := x[w.rng.IntN(len(x))]
			ev.Attempt = job.AttemptID{Job: "j", Task: some.Task, Attempt: some.Attempt}
		}
		w.deliver(ev)
	case 98:
		if w.chance(0.3) {
			w.deliver(Replan{Graph: w.rescaled(), Trial: w.chance(0.8)})
		}
	case 97:
		if w.cancelable && w.chance(0.1) {
			w.canceled = true
			w.deliver(CancelRequested{})
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (e *fakeExecutor) kill() {
	e.alive, e.hung, e.commands = false, false, nil
	clear(e.running)
}

// obey takes one command.
func (e *fakeExecutor) obey() {
	if !e.alive || e.hung || len(e.commands) == 0 {
		return
	}
	c := e.commands[0]
	e.commands = e.commands[1:]
	_, known := e.running[c.attempt]
	switch {
	case c.deploy:
		e.running[c.attempt] = job.TaskDeploying
	case known:
		delete(e.running, c.attempt)
		e.reports = append(e.reports, TaskStateChanged{Attempt: c.attempt, State: job.TaskCanceled})
	default:
		e.reports = append(e.reports, TasksUnknown{Attempts: []job.AttemptID{c.attempt}})
	}
}

// work moves one running attempt on.
func (w *world) work(e *fakeExecutor, faults bool) {
	if e.hung || len(e.running) == 0 {
		return
	}
	ids := make([]job.AttemptID, 0, len(e.running))
	for id := range e.running {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, job.AttemptID.Compare)
	id := ids[w.rng.IntN(len(ids))]
	report := TaskStateChanged{Attempt: id}
	switch st := e.running[id]; {
	case faults && w.chance(0.05):
		report.State = job.TaskFailed
		report.Failure = job.Failure{Class: job.FailureClass(1 + w.rng.IntN(2)), Message: "random"}
	case st < job.TaskRunning:
		report.State = st + 1
	case w.bounded && w.endOfData && id.Attempt == w.attempts[id.Task]:
		report.State = job.TaskFinished
	case w.bounded:
		report.State, report.EndOfData = job.TaskRunning, true
	default:
		return
	}
	if e.running[id] = report.State; report.State.Terminal() {
		delete(e.running, id)
	}
	e.reports = append(e.reports, report)
}

// register lets the loss of a dead executor be noticed, and then lets it come back with the same id.
func (w *world) register(e *fakeExecutor) {
	switch {
	case !e.alive && e.registered:
		w.unregisters(e)
		if w.chance(0.5) {
			e.reports = nil
		}
		w.deliver(ExecutorLost{Executor: e.id, Message: "connection closed"})
	case !e.alive:
		e.alive = true
		w.registers(e)
	case !e.registered: // it was dropped: a new process
		e.kill()
	}
}

func (w *world) registers(e *fakeExecutor) {
	e.registered = true
	w.pool.Add(slotpool.Executor{ID: e.id, Slots: 2, Jobs: []string{"j"}})
	w.pool.Serve(w.granted)
}

func (w *world) unregisters(e *fakeExecutor) {
	if e.registered {
		e.registered = false
		w.pool.Remove(e.id)
	}
}

// requests asks the pool; the answer waits in the inbox as it does in the loop of a job.
func (w *world) requests(e RequestSlots) {
	w.request++
	r := slotpool.Request{Job: "j", Name: "j", Number: w.request, Count: e.Count, Keep: map[job.ExecutorID]int{}, Prefer: map[job.ExecutorID]int{}}
	for _, id := range e.Keep {
		r.Keep[id]++
	}
	for _, id := range e.Prefer {
		r.Prefer[id]++
	}
	if got := w.pool.Request(r); e.Count > 0 {
		w.granted("j", got)
	}
}

type grant struct {
	Event
	number int
}

func (w *world) granted(_ job.ID, g slotpool.Grant) {
	if g.Slots == nil {
		w.inbox = append(w.inbox, grant{SlotsShort{Required: g.Short.Required, Available: g.Short.Available}, g.Number})
		return
	}
	w.inbox = append(w.inbox, grant{SlotsAllocated{Slots: g.Slots}, g.Number})
}
