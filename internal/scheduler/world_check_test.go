package scheduler

import (
	"slices"

	"github.com/weirstream/weir/internal/job"
)

// deliver gives the core an event, checks what it promises, and does the effects.
func (w *world) deliver(ev Event) {
	w.trace = append(w.trace, "> "+ev.String())
	w.blame(ev)
	before, plans := w.core.Executions(), w.replanned
	for _, e := range w.core.Step(w.now, ev) {
		w.trace = append(w.trace, "    "+e.String())
		w.do(e)
	}
	if w.state != w.core.State() {
		w.fatalf("the job is %s, but its last status was %s", w.core.State(), w.state)
	}
	for i, x := range w.core.Executions() {
		if plans != w.replanned {
			break // they are others; see Replanned
		}
		if b := before[i]; x.Attempt == b.Attempt && b.State.Terminal() && x.State != b.State {
			w.fatalf("%s#%d left %s for %s", x.Task, x.Attempt, b.State, x.State)
		} else if x.Attempt < b.Attempt {
			w.fatalf("%s went back from attempt %d to %d", x.Task, b.Attempt, x.Attempt)
		}
	}
	w.checkProgress()
}

// blame notes which regions have a reason to restart: what happens to an attempt concerns its region only.
func (w *world) blame(ev Event) {
	attempt := func(id job.AttemptID) {
		if w.attempts[id.Task] == id.Attempt {
			w.failed[w.region[id.Task]] = true
		}
	}
	there := func(executor job.ExecutorID) {
		for _, x := range w.core.Executions() {
			if x.Executor == executor {
				w.failed[w.region[x.Task]] = true
			}
		}
	}
	switch ev := ev.(type) {
	case Replan:
		w.allFailed()
	case TaskStateChanged:
		if ev.State == job.TaskFailed || ev.State == job.TaskCanceled || ev.State == job.TaskCanceling {
			attempt(ev.Attempt)
		}
	case TasksUnknown:
		for _, id := range ev.Attempts {
			attempt(id)
		}
	case DeployFailed:
		for _, id := range ev.Attempts {
			attempt(id)
		}
	case ExecutorLost:
		there(ev.Executor)
	case JobFailed:
		if ev.Attempt != (job.AttemptID{}) {
			attempt(ev.Attempt)
			return
		}
		w.allFailed()
	}
}

func (w *world) allFailed() {
	for i := range w.regions {
		w.failed[i] = true
	}
}

// changed checks that nothing of the old plan can run any more, and that no attempt of the new one was used before.
func (w *world) changed(g *job.Graph) {
	for _, e := range w.executors {
		if !e.registered {
			continue
		}
		if len(e.running) > 0 || slices.ContainsFunc(e.commands, func(c command) bool { return c.deploy }) {
			w.fatalf("the plan is changed while %v of the old one runs on %s, or may start: %v", e.running, e.id, e.commands)
		}
	}
	base := w.core.Executions()[0].Attempt - 1
	for task, n := range w.attempts {
		if n > base {
			w.fatalf("attempts of the new plan begin with %d, %s had attempt %d", base+1, task, n)
		}
	}
	if len(w.announced) > 0 {
		w.fatalf("the plan is changed, and %v were announced and not stopped", w.announced)
	}
	w.plan(g, base)
	w.allFailed()
	w.replanned++
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
		w.requests(e)
	case ReleaseSlots:
		w.request++
		w.pool.Release("j")
	case Deploy:
		w.deploy(e.Placements)
	case CancelTasks:
		w.cancelTasks(e.Placements)
	case DropExecutor:
		w.droppedExecutors++
		for _, x := range w.core.Executions() {
			if x.Executor == e.Executor {
				w.failed[w.region[x.Task]] = true
			}
		}
		w.unregisters(w.executor(e.Executor))
	case JobStatusChanged:
		if e.From != w.state || !slices.Contains(jobTransitions[e.From], e.To) {
			w.fatalf("%s, but the job was %s", e, w.state)
		}
		w.state = e.To
	case TasksRunning:
		if w.tasksRunning || w.state != job.Running {
			w.fatalf("%s twice, or not in RUNNING", e)
		}
		w.tasksRunning, w.endOfData = true, false
		for _, p := range e.Placements {
			w.announced[p.Attempt] = true
		}
		if len(e.Placements) != len(w.region) || len(w.announced) != len(w.region) {
			w.fatalf("%s, but the job has %d tasks, and %d attempts were announced and not stopped", e, len(w.region), len(w.announced))
		}
	case Replanned:
		w.changed(e.Graph)
	case ReplanFailed:
		w.plansFailed++
		w.allFailed()
		w.inbox = append(w.inbox, Replan{Graph: w.graph})
	case TasksStopped:
		if len(w.announced) == 0 {
			w.fatalf("%s without a start", e)
		}
		for _, id := range e.Attempts {
			if !w.announced[id] {
				w.fatalf("%s, but %s was not announced, or has stopped before", e, id)
			}
			delete(w.announced, id)
		}
		if e.Attempts == nil {
			clear(w.announced)
		} else if w.restartedAlone++; len(w.announced) == 0 {
			w.fatalf("%s: nothing runs on, and it does not say so", e)
		}
		w.tasksRunning = false
	case EndOfDataReached:
		if w.endOfData || !w.tasksRunning {
			w.fatalf("%s twice, or not while all tasks run", e)
		}
		w.endOfData = true
	}
}

// deploy checks that whole regions are deployed that have ended everywhere, once for each time that they had a reason to restart.
func (w *world) deploy(placements []job.Placement) {
	deployed := map[int]int{}
	for _, p := range placements {
		task := p.Attempt.Task
		deployed[w.region[task]]++
		if want := w.attempts[task] + 1; p.Attempt.Attempt != want {
			w.fatalf("deploys %s, want attempt %d", p.Attempt, want)
		}
		w.attempts[task]++
		w.checkEnded(p.Attempt)
	}
	for i, n := range deployed {
		if n != len(w.regions[i]) {
			w.fatalf("deploys %d of the %d tasks of region %d", n, len(w.regions[i]), i)
		}
		if !w.failed[i] && w.attempts[w.regions[i][0]] > 1 {
			w.fatalf("deploys region %d again, which has not failed since the last time", i)
		}
		delete(w.failed, i)
	}
	w.send(placements)
}

// checkEnded: no attempt of the region may run, or start later.
func (w *world) checkEnded(a job.AttemptID) {
	for _, e := range w.executors {
		if !e.registered {
			continue
		}
		for id := range e.running {
			if w.region[id.Task] == w.region[a.Task] {
				w.fatalf("deploys %s while %s still runs on %s", a, id, e.id)
			}
		}
		for _, c := range e.commands {
			if c.deploy && w.region[c.attempt.Task] == w.region[a.Task] {
				w.fatalf("deploys %s while %s may still start on %s", a, c.attempt, e.id)
			}
		}
	}
}

// send gives the tasks to their executors, one call each.
func (w *world) send(placements []job.Placement) {
	calls := map[job.ExecutorID][]job.AttemptID{}
	for _, p := range placements {
		calls[p.Executor] = append(calls[p.Executor], p.Attempt)
	}
	for _, e := range w.executors {
		attempts := calls[e.id]
		if attempts == nil {
			continue
		}
		failed := !e.registered || w.chance(0.05)
		if failed {
			failure := job.Failure{Class: job.FailureInfrastructure, Message: "random"}
			w.inbox = append(w.inbox, DeployFailed{Executor: e.id, Attempts: attempts, Failure: failure})
		}
		if e.alive && (!failed || w.rng.IntN(2) == 0) { // a failed call may have arrived all the same
			for _, a := range attempts {
				e.commands = append(e.commands, command{true, a})
			}
		}
	}
}

func (w *world) cancelTasks(placements []job.Placement) {
	for _, p := range placements {
		if (w.state == job.Running || w.state == job.Restarting) && !w.failed[w.region[p.Attempt.Task]] {
			w.fatalf("cancels %s, whose region has not failed", p.Attempt)
		}
		e := w.executor(p.Executor)
		switch {
		case !e.registered:
			w.inbox = append(w.inbox, ExecutorLost{Executor: e.id, Message: "not registered"})
		case e.alive && !w.chance(0.1): // else the order is lost
			e.commands = append(e.commands, command{false, p.Attempt})
		}
	}
}
