package scheduler

import (
	"cmp"
	"fmt"
	"time"

	"github.com/weirstream/weir/internal/job"
)

func (c *Core) executorLost(now time.Time, e ExecutorLost) {
	text := fmt.Sprintf("executor %s lost", e.Executor)
	if e.Message != "" {
		text += ": " + e.Message
	}
	f := infrastructure("%s", text)
	if c.lose(e.Executor, f) {
		c.fail(now, f)
	}
}

// lose ends every attempt on an executor that is gone, and reports whether there were any.
func (c *Core) lose(executor job.ExecutorID, f job.Failure) bool {
	any := false
	for _, t := range c.tasks {
		if t.live() && t.executor == executor {
			any = true
			t.vanish(f)
		}
	}
	return any
}

// vanish ends an attempt that is known to run no more: as wanted if it was to be canceled, else as failed.
func (t *execution) vanish(f job.Failure) {
	if t.cancelSent {
		t.move(job.TaskCanceled)
		return
	}
	t.move(job.TaskFailed)
	t.failure = f
}

// deployFailed restarts the job if the executor has not reported every task of the deployment: else the deployment has worked, and only its
// answer was lost. The attempts are not taken for ended, since the request may have arrived: they are canceled like the others.
func (c *Core) deployFailed(now time.Time, e DeployFailed) {
	f := named(e.Failure, "no reason given")
	if e.Failure.Class == 0 {
		f.Class = job.FailureInfrastructure
	}
	f.Message = fmt.Sprintf("deploy to executor %s: %s", e.Executor, f.Message)
	pending := false
	for _, t := range c.tasks {
		current := e.Attempt == 0 || e.Attempt == t.attempt.Attempt
		if t.executor == e.Executor && current && t.state == job.TaskDeploying {
			pending = true
			t.failure = f
		}
	}
	if !pending {
		c.dropped.stale++
		return
	}
	c.fail(now, f)
}

func (c *Core) tasksUnknown(now time.Time, e TasksUnknown) {
	var first *job.Failure
	for _, id := range e.Attempts {
		t := c.fence(id)
		if t == nil {
			continue
		}
		f := infrastructure("executor %s does not run task %s", t.executor, t.attempt)
		if !t.cancelSent && first == nil {
			first = &f
		}
		t.vanish(f)
	}
	if first != nil {
		c.fail(now, *first)
	}
}

// fail decides what a failure leads to. While the job restarts or ends already, it belongs to that: nothing restarts twice.
func (c *Core) fail(now time.Time, f job.Failure) {
	f = named(f, "the job failed without a reason")
	s := &c.restarts.strategy
	switch c.state {
	case job.Created:
		if f.Class == job.FailurePermanent {
			c.failJob(now, f)
		} // anything else has nothing to restart yet
	case job.Running:
		if f.Class == job.FailurePermanent {
			c.failJob(now, f)
			return
		}
		delay, ok := s.failed(now, f.Class)
		if !ok {
			c.failJob(now, s.giveUp(f))
			return
		}
		c.restart(now, f, delay)
	case job.Restarting:
		c.mergeFailure(now, f)
	default: // the job is ending, or has ended
	}
}

// mergeFailure takes a failure that arrives while the job restarts. The first cause stays, with one exception: a task that fails breaks its
// connections, and the peers' reports of that may be faster than its own. So the first failure of class task takes the place
// of an infrastructure failure, and counts.
func (c *Core) mergeFailure(now time.Time, f job.Failure) {
	s := &c.restarts.strategy
	switch {
	case f.Class == job.FailurePermanent:
		c.failJob(now, f)
	case f.Class == job.FailureTask && c.failure.Class == job.FailureInfrastructure:
		c.failure = f
		if !s.merged(f.Class) {
			c.failJob(now, s.giveUp(f))
		}
	}
}

// restart stops all tasks; the delay runs beside. One region is the whole job.
func (c *Core) restart(now time.Time, f job.Failure, delay time.Duration) {
	c.failure = f
	c.restarts.count++
	c.restarts.at = now.Add(delay)
	c.stopped(f)
	c.enter(job.Restarting, f, fmt.Sprintf("restart %d in %s", c.restarts.count, delay.Round(time.Millisecond)))
	c.cancelTasks(now)
}

// redeploy begins the next execution: a new attempt of every task.
func (c *Core) redeploy() {
	for _, t := range c.tasks {
		next := t.attempt
		next.Attempt++
		*t = execution{attempt: next, state: job.TaskCreated, failure: t.failure}
	}
	c.releaseSlots()
	c.requestSlots()
}

// failJob ends the job as soon as its tasks have ended.
func (c *Core) failJob(now time.Time, f job.Failure) {
	c.failure = f
	c.stopped(f)
	c.enter(job.Failing, f, "")
	c.cancelTasks(now)
}

// stopped says that not all tasks run any more, if that was ever said of this execution.
func (c *Core) stopped(f job.Failure) {
	if c.running {
		c.running = false
		c.emit(TasksStopped{Failure: f})
	}
}

func infrastructure(format string, args ...any) job.Failure {
	return job.Failure{Class: job.FailureInfrastructure, Message: fmt.Sprintf(format, args...)}
}

// named fills in what a failure lacks. An unknown class counts as the user's code: that is the one whose restarts are limited.
func named(f job.Failure, message string) job.Failure {
	f.Class = cmp.Or(f.Class, job.FailureTask)
	f.Message = cmp.Or(f.Message, message)
	return f
}
