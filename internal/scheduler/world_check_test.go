package scheduler

import (
	"slices"

	"github.com/weirstream/weir/internal/job"
)

// deliver gives the core an event, checks what it promises, and does the effects.
func (w *world) deliver(ev Event) {
	w.trace = append(w.trace, "> "+ev.String())
	before := w.core.Executions()
	for _, e := range w.core.Step(w.now, ev) {
		w.trace = append(w.trace, "    "+e.String())
		w.do(e)
	}
	if w.state != w.core.State() {
		w.fatalf("the job is %s, but its last status was %s", w.core.State(), w.state)
	}
	for i, x := range w.core.Executions() {
		if b := before[i]; x.Attempt == b.Attempt && b.State.Terminal() && x.State != b.State {
			w.fatalf("%s#%d left %s for %s", x.Task, x.Attempt, b.State, x.State)
		} else if x.Attempt < b.Attempt {
			w.fatalf("%s went back from attempt %d to %d", x.Task, b.Attempt, x.Attempt)
		}
	}
	w.checkProgress()
}

// checkProgress: a core that waits for an attempt to end or for a delay has a deadline, so that it cannot wait for ever.
func (w *world) checkProgress() {
	_, deadline := w.core.Deadline()
	state := w.core.State()
	switch {
	case state.Terminal() && deadline:
		w.fatalf("a job that is %s has a deadline", state)
	case (state == job.Failing || state == job.Cancelling) && !deadline:
		w.fatalf("a job that is %s has no deadline", state)
	}
}

func (w *world) do(e Effect) {
	if _, ok := e.(ReleaseSlots); !ok && w.state.Terminal() {
		w.fatalf("%s after the job is %s", e, w.state)
	}
	switch e := e.(type) {
	case RequestSlots:
		if w.asked != 0 {
			w.fatalf("slots are requested twice")
		}
		w.asked = e.Count
	case ReleaseSlots:
		w.asked = 0
	case Deploy:
		w.deploy(e.Placements)
	case CancelTasks:
		w.cancelTasks(e.Placements)
	case DropExecutor:
		w.droppedExecutors++
		w.executor(e.Executor).registered = false
	case JobStatusChanged:
		if e.From != w.state || !slices.Contains(jobTransitions[e.From], e.To) {
			w.fatalf("%s, but the job was %s", e, w.state)
		}
		w.state = e.To
	case TasksRunning:
		if w.tasksRunning || w.state != job.Running {
			w.fatalf("%s twice, or not in RUNNING", e)
		}
		w.tasksRunning = true
	case TasksStopped:
		if !w.tasksRunning {
			w.fatalf("%s without a start", e)
		}
		w.tasksRunning = false
	case EndOfDataReached:
		if w.endOfData || !w.tasksRunning {
			w.fatalf("%s twice, or not while all tasks run", e)
		}
		w.endOfData = true
	}
}

func (w *world) deploy(placements []job.Placement) {
	w.endOfData = false
	w.attempt++
	for _, e := range w.executors {
		if !e.registered {
			continue
		}
		for id := range e.running {
			w.fatalf("deploys attempt %d while %s still runs on %s", w.attempt, id, e.id)
		}
		for _, c := range e.commands {
			if c.deploy {
				w.fatalf("deploys attempt %d while %s may still start on %s", w.attempt, c.attempt, e.id)
			}
		}
	}
	if len(placements) != len(w.core.Executions()) {
		w.fatalf("deploys %d tasks", len(placements))
	}
	failed := map[job.ExecutorID]bool{}
	for i, p := range placements {
		if want := (job.AttemptID{Job: "j", Task: w.core.Executions()[i].Task, Attempt: w.attempt}); p.Attempt != want {
			w.fatalf("deploys %s, want %s", p.Attempt, want)
		}
		e := w.executor(p.Executor)
		if _, seen := failed[e.id]; !seen {
			failed[e.id] = !e.registered || w.chance(0.05)
			if failed[e.id] {
				w.inbox = append(w.inbox, DeployFailed{Executor: e.id, Attempt: w.attempt, Failure: job.Failure{Class: job.FailureInfrastructure, Message: "random"}})
			}
		}
		if e.alive && (!failed[e.id] || w.rng.IntN(2) == 0) { // a failed call may have arrived all the same
			e.commands = append(e.commands, command{true, p.Attempt})
		}
	}
}

func (w *world) cancelTasks(placements []job.Placement) {
	for _, p := range placements {
		e := w.executor(p.Executor)
		switch {
		case !e.registered:
			w.inbox = append(w.inbox, ExecutorLost{Executor: e.id, Message: "not registered"})
		case e.alive && !w.chance(0.1): // else the order is lost
			e.commands = append(e.commands, command{false, p.Attempt})
		}
	}
}
