package scheduler

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/weirstream/weir/internal/job"
)

// TestTranscripts plays the files in testdata: commands in, effects and state out; -rewrite writes what comes out. The commands are the methods
// of transcript.run.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var tr *transcript
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "job" {
				tr = newTranscript(t, d)
				return "ok"
			}
			if tr == nil {
				d.Fatalf(t, "the first command must be job")
			}
			return tr.run(t, d)
		})
	})
}

var transcriptStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type transcript struct {
	core *Core
	now  time.Time
}

// newTranscript reads "job map=2 sink=1 [edges=(map-forward->sink,...)] [strategy=..] [attempts=..] [initial=..] [cancel-timeout=..]". Without edges
// all tasks are one region; edges=none is the opposite.
func newTranscript(t *testing.T, d *datadriven.TestData) *transcript {
	g := &job.Graph{Name: "test"}
	cfg := Config{Job: "j", Graph: g, Restart: job.RestartOptions{Jitter: -1}}
	connected := true
	for _, a := range d.CmdArgs {
		if a.Key == "edges" {
			connected = false
			g.Edges = edges(t, a.Vals)
			continue
		}
		value := a.SingleVal(t)
		switch a.Key {
		case "strategy":
			cfg.Restart.Strategy = job.Strategy(value)
		case "attempts":
			cfg.Restart.Attempts = atoi(t, value)
		case "initial":
			cfg.Restart.InitialDelay = duration(t, value)
		case "cancel-timeout":
			cfg.CancelTimeout = duration(t, value)
		default:
			g.Vertices = append(g.Vertices, vertexOf(a.Key, atoi(t, value)))
		}
	}
	if connected {
		g.Edges = allToAll(g)
	}
	return &transcript{core: New(cfg), now: transcriptStart}
}

func vertexOf(id string, parallelism int) job.Vertex {
	return job.Vertex{ID: job.VertexID(id), Parallelism: parallelism, Operators: []job.Operator{{ID: id, Stateful: true}}}
}

// replanned reads "map=3 sink=1": vertices that are not named stay as they are.
func (tr *transcript) replanned(t *testing.T, args []datadriven.CmdArg) *job.Graph {
	g := *tr.core.cfg.Graph
	g.Vertices = nil
	for _, v := range tr.core.cfg.Graph.Vertices {
		for _, a := range args {
			if a.Key == string(v.ID) {
				v = vertexOf(a.Key, atoi(t, a.SingleVal(t)))
			}
		}
		g.Vertices = append(g.Vertices, v)
	}
	return &g
}

// allToAll connects every task with every other one. That no real graph has an edge from a vertex to itself is of no interest to the scheduler.
func allToAll(g *job.Graph) (out []job.Edge) {
	for _, v := range g.Vertices {
		out = append(out, job.Edge{From: g.Vertices[0].ID, To: v.ID, Partitioning: job.Hash})
	}
	return out
}

func edges(t *testing.T, list []string) (out []job.Edge) {
	for _, s := range list {
		if s == "none" {
			continue
		}
		names := strings.Split(strings.ReplaceAll(s, "->", "-"), "-") // map-forward->sink
		if len(names) != 3 {
			t.Fatalf("not an edge: %s", s)
		}
		p := map[string]job.Partitioning{"forward": job.Forward, "hash": job.Hash, "rebalance": job.Rebalance, "broadcast": job.Broadcast}[names[1]]
		if p == 0 {
			t.Fatalf("not a partitioning: %s", names[1])
		}
		out = append(out, job.Edge{From: job.VertexID(names[0]), To: job.VertexID(names[2]), Partitioning: p})
	}
	return out
}

func (tr *transcript) run(t *testing.T, d *datadriven.TestData) string {
	var args []string
	for _, a := range d.CmdArgs {
		args = append(args, a.String())
	}
	message := strings.ReplaceAll(strings.TrimSpace(d.Input), "\n", " ")
	switch d.Cmd {
	case "start":
		return tr.step(Start{})
	case "slots": // slots e1 e1 e2
		var slots []job.Slot
		for _, a := range args {
			slots = append(slots, job.Slot{Executor: job.ExecutorID(a), Address: a + ":6122"})
		}
		return tr.step(SlotsAllocated{Slots: slots})
	case "short": // short 4 2: 4 required, 2 available
		return tr.step(SlotsShort{Required: atoi(t, args[0]), Available: atoi(t, args[1]), Message: message})
	case "task": // task map[0]#1 RUNNING [end-of-data] [class], the message below
		ev := TaskStateChanged{Attempt: attempt(t, args[0]), State: taskState(t, args[1])}
		for _, a := range args[2:] {
			if ev.EndOfData = ev.EndOfData || a == "end-of-data"; a != "end-of-data" {
				ev.Failure = job.Failure{Class: class(t, a), Message: message}
			}
		}
		return tr.step(ev)
	case "all": // all RUNNING [end-of-data]: every task's present attempt reports it
		var events []Event
		for _, e := range tr.core.Executions() {
			id := job.AttemptID{Job: "j", Task: e.Task, Attempt: e.Attempt}
			events = append(events, TaskStateChanged{Attempt: id, State: taskState(t, args[0]), EndOfData: len(args) > 1})
		}
		return tr.step(events...)
	case "lose":
		return tr.step(ExecutorLost{Executor: job.ExecutorID(args[0]), Message: message})
	case "deploy-failed": // deploy-failed e1 map[0]#1 map[1]#1 class
		last := len(args) - 1
		return tr.step(DeployFailed{
			Executor: job.ExecutorID(args[0]), Attempts: attempts(t, args[1:last]), Failure: job.Failure{Class: class(t, args[last]), Message: message},
		})
	case "unknown": // unknown map[0]#1
		return tr.step(TasksUnknown{Attempts: attempts(t, args)})
	case "job-failed": // job-failed class [map[0]#1]
		ev := JobFailed{Failure: job.Failure{Class: class(t, args[0]), Message: message}}
		if len(args) > 1 {
			ev.Attempt = attempt(t, args[1])
		}
		return tr.step(ev)
	case "checkpoint":
		return tr.step(CheckpointCompleted{})
	case "cancel":
		return tr.step(CancelRequested{})
	case "replan": // replan map=3 sink=1 [trial]
		return tr.step(Replan{Graph: tr.replanned(t, d.CmdArgs), Trial: d.HasArg("trial")})
	case "tick": // tick +100ms
		tr.now = tr.now.Add(duration(t, args[0]))
		return tr.step(Tick{})
	case "state":
		return tr.state()
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return ""
}

// step prints the effects, and the deadline when there is one.
func (tr *transcript) step(events ...Event) string {
	var b strings.Builder
	for _, ev := range events {
		for _, e := range tr.core.Step(tr.now, ev) {
			fmt.Fprintln(&b, e)
		}
	}
	if at, ok := tr.core.Deadline(); ok {
		fmt.Fprintf(&b, "(tick in %s)\n", at.Sub(tr.now))
	}
	if b.Len() == 0 {
		return "nothing"
	}
	return b.String()
}

func (tr *transcript) state() string {
	var b strings.Builder
	c := tr.core
	fmt.Fprintf(&b, "%s restarts=%d stale=%d illegal=%d", c.State(), c.Restarts(), c.Stale(), c.Illegal())
	if c.Detail() != "" {
		fmt.Fprintf(&b, " (%s)", c.Detail())
	}
	if c.Failure() != (job.Failure{}) {
		fmt.Fprintf(&b, ": %s failure, %s", c.Failure().Class, c.Failure())
	}
	b.WriteByte('\n')
	for _, e := range c.Executions() {
		fmt.Fprintf(&b, "%s#%d %s", e.Task, e.Attempt, e.State)
		if e.Executor != "" {
			fmt.Fprintf(&b, " on %s at %s", e.Executor, e.Address)
		}
		if e.LastFailure != (job.Failure{}) {
			fmt.Fprintf(&b, ", last failure: %s", e.LastFailure)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func atoi(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("not a number: %s", s)
	}
	return n
}

func duration(t *testing.T, s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatalf("not a duration: %s", s)
	}
	return d
}

// attempt reads "map[0]#1".
func attempt(t *testing.T, s string) job.AttemptID {
	id := job.AttemptID{Job: "j"}
	s = strings.NewReplacer("[", " ", "]", " ", "#", " ").Replace(s)
	if _, err := fmt.Sscanf(s, "%s %d %d", &id.Task.Vertex, &id.Task.Subtask, &id.Attempt); err != nil {
		t.Fatalf("not an attempt: %s", s)
	}
	return id
}

func attempts(t *testing.T, list []string) (out []job.AttemptID) {
	for _, a := range list {
		out = append(out, attempt(t, a))
	}
	return out
}

func taskState(t *testing.T, s string) job.TaskState {
	for st := job.TaskCreated; st <= job.TaskFailed; st++ {
		if st.String() == s {
			return st
		}
	}
	t.Fatalf("not a task state: %s", s)
	return 0
}

func class(t *testing.T, s string) job.FailureClass {
	for _, c := range []job.FailureClass{job.FailureTask, job.FailureInfrastructure, job.FailurePermanent} {
		if c.String() == s {
			return c
		}
	}
	t.Fatalf("not a failure class: %s", s)
	return 0
}
