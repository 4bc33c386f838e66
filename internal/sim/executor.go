package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/scheduler"
	"github.com/weirstream/weir/internal/task"
)

// executor is a task executor: a process that dies and comes back.
type executor struct {
	s     *Sim
	id    job.ExecutorID
	slots int

	alive       bool
	incarnation int
	session     *session // that it believes to have; nil: none
	partitioned bool     // nothing goes in or out of it but data
	resetting   bool     // it ends its tasks and registers anew
	tasks       []*simTask
}

func newExecutor(s *Sim, i int) *executor {
	return &executor{s: s, id: job.ExecutorID(fmt.Sprintf("x%d", i))}
}

// reaches reports whether a request of a session arrives and is of the session that the executor has, or is about to have. One of another leader
// epoch is refused.
func (x *executor) reaches(s *session) bool {
	return x.alive && !x.partitioned && !s.over && x.incarnation == s.incarnation && !x.resetting && (x.session == nil || x.session.m == s.m)
}

// boot starts a new process.
func (x *executor) boot() {
	if x.alive {
		return
	}
	x.alive, x.resetting, x.session, x.tasks = true, false, nil, nil
	x.incarnation++
	x.register()
	x.beat()
}

// register opens a session. Tasks may be deployed before its answer is there; without an answer they end before the next try.
func (x *executor) register() {
	incarnation := x.incarnation
	var got *session
	x.call("register", func(m *master) {
		if x.alive && x.incarnation == incarnation && (got == nil || got.m == m) { // else the connection is gone, and with it the registration
			m.take(func() { got = m.registry.begin(x, incarnation) })
		}
	}, func(err error) {
		x.session = got
		if err != nil || got == nil || got.over {
			x.reset("the registration broke")
		}
	})
}

// crash ends the process; nothing of it goes on.
func (x *executor) crash(why string) {
	if !x.alive {
		return
	}
	s := x.s
	s.note("FAULT executor %s dies: %s", x.id, why)
	x.alive = false
	for _, t := range x.tasks {
		if t.live() {
			t.die()
		}
	}
	x.tasks = nil
	notice := s.upTo(200 * time.Millisecond)
	if s.rng.IntN(5) == 0 {
		notice = 2 * heartbeatTimeout // nobody notices but by the heartbeats
	}
	incarnation := x.incarnation
	s.after(notice, "connection broke", func() {
		for _, open := range s.master.registry.sessions {
			if open.executor == x && open.incarnation == incarnation {
				s.master.take(func() { s.master.registry.finish(open, "its connection broke") })
				return
			}
		}
	})
	s.after(100*time.Millisecond+s.upTo(maxDown), "boot", x.boot)
}

// reset ends all tasks and registers anew, as an incarnation that runs none.
func (x *executor) reset(why string) {
	if x.resetting || !x.alive {
		return
	}
	x.s.note("%s resets: %s", x.id, why)
	x.resetting = true
	for _, t := range x.tasks {
		t.cancel()
	}
	x.awaitEnd(x.incarnation, x.s.now.Add(cancelTimeout))
}

// awaitEnd goes on with a reset when no task lives. A process whose tasks hang has to die.
func (x *executor) awaitEnd(incarnation int, patience time.Time) {
	x.s.after(20*time.Millisecond, "reset", func() {
		switch {
		case !x.alive || x.incarnation != incarnation:
		case !slices.ContainsFunc(x.tasks, (*simTask).live):
			x.tasks, x.session, x.resetting = nil, nil, false
			x.incarnation++
			x.s.after(x.s.upTo(500*time.Millisecond), "register", func() {
				if x.alive && x.incarnation == incarnation+1 {
					x.register()
				}
			})
			x.beat()
		case x.s.now.After(patience):
			x.crash("its tasks do not end")
		default:
			x.awaitEnd(incarnation, patience)
		}
	})
}

// beat sends heartbeats for as long as the incarnation lives.
func (x *executor) beat() {
	incarnation := x.incarnation
	x.s.after(heartbeatInterval, "heartbeat due", func() {
		if !x.alive || x.incarnation != incarnation {
			return
		}
		if x.session != nil && !x.resetting {
			x.heartbeat()
		}
		x.beat()
	})
}

func (x *executor) heartbeat() {
	incarnation := x.incarnation
	var reports []taskReport
	for _, t := range x.tasks {
		reports = append(reports, taskReport{t.attempt, t.state, t.endOfData, t.core.Notified()})
	}
	var unknown []job.AttemptID
	var completed checkpoint.ID
	registered := true
	epoch := x.session.m.life.epoch
	x.call("heartbeat", func(m *master) {
		unknown, completed, registered = m.heartbeat(epoch, x, incarnation, reports)
	}, func(err error) {
		switch {
		case err != nil:
		case !registered:
			x.reset("it is not registered")
		default:
			x.answered(reports, unknown, completed)
		}
	})
}

// answered takes what the job master says to a heartbeat. Attempts that it does not know must not be told of completed checkpoints: these
// may be of a later execution, which has restored less than what such an attempt has prepared.
func (x *executor) answered(reports []taskReport, unknown []job.AttemptID, completed checkpoint.ID) {
	for _, r := range reports {
		t := x.find(r.attempt)
		if t == nil {
			continue
		}
		if slices.Contains(unknown, r.attempt) {
			t.cancel()
			x.forget(t)
		} else if completed > 0 {
			t.post(task.Completed{ID: completed})
		}
	}
}

// forget removes an attempt that has ended.
func (x *executor) forget(t *simTask) {
	if !t.live() {
		x.tasks = slices.DeleteFunc(x.tasks, func(o *simTask) bool { return o == t })
	}
}

func (x *executor) find(a job.AttemptID) *simTask {
	for _, t := range x.tasks {
		if t.attempt == a {
			return t
		}
	}
	return nil
}

// each gives the live attempts to f and returns the others.
func (x *executor) each(attempts []job.AttemptID, f func(t *simTask)) (unknown []job.AttemptID) {
	for _, a := range attempts {
		if t := x.find(a); t != nil && t.live() {
			f(t)
		} else {
			unknown = append(unknown, a)
		}
	}
	return unknown
}

func (x *executor) deploy(m *master, tasks []gateway.TaskDeployment) {
	for _, d := range tasks {
		if x.find(d.Attempt) != nil || x.resetting {
			continue
		}
		t := newTask(x, m, d)
		x.tasks = append(x.tasks, t)
		t.startUp()
	}
}

// cancel answers the attempts that are not there. Those that have ended report it themselves.
func (x *executor) cancel(attempts []job.AttemptID) (unknown []job.AttemptID) {
	for _, a := range attempts {
		if t := x.find(a); t == nil {
			unknown = append(unknown, a)
		} else if t.live() {
			t.cancel()
		} else {
			x.report(t)
		}
	}
	return unknown
}

func (x *executor) trigger(e coordinator.SendTrigger, attempts []job.AttemptID) []job.AttemptID {
	cp := elementCheckpoint(e)
	running := slices.DeleteFunc(slices.Clone(attempts), func(a job.AttemptID) bool {
		t := x.find(a)
		return t != nil && t.state == job.TaskFinished // its report is under way
	})
	return x.each(running, func(t *simTask) { t.post(task.Trigger{Checkpoint: cp}) })
}

func (x *executor) notifyComplete(id checkpoint.ID, attempts []job.AttemptID) []job.AttemptID {
	return x.each(attempts, func(t *simTask) { t.post(task.Completed{ID: id}) })
}

func (x *executor) notifyAborted(id, latest checkpoint.ID, attempts []job.AttemptID) {
	x.each(attempts, func(t *simTask) { t.post(task.Aborted{ID: id, Latest: latest}) })
}

// report tells the job master the state of a task. A lost report is made up for by the heartbeats.
func (x *executor) report(t *simTask) {
	u := scheduler.TaskStateChanged{Attempt: t.attempt, State: t.state, Failure: t.failure, EndOfData: t.endOfData}
	known := true
	x.call("update", func(m *master) { known = m.update(t.epoch, u) }, func(err error) {
		if err == nil && !known {
			t.cancel()
			x.forget(t)
		}
	})
}
