package scheduler

import (
	"fmt"
	"time"

	"github.com/weirstream/weir/internal/job"
)

func (c *Core) cancelJob(now time.Time) {
	if c.state.Terminal() || c.state == job.Cancelling {
		return
	}
	c.stopped(job.Failure{})
	c.enter(job.Cancelling, job.Failure{}, "")
	c.cancelTasks(now)
}

// cancelTasks tells every live attempt to end that was not told yet.
func (c *Core) cancelTasks(now time.Time) {
	var told []job.Placement
	for _, t := range c.tasks {
		if !t.live() || t.cancelSent {
			continue
		}
		t.cancelSent = true
		if t.state != job.TaskCanceling {
			t.move(job.TaskCanceling)
		}
		told = append(told, t.placement())
	}
	if len(told) > 0 {
		c.cancel.again = now.Add(cancelRetry)
		c.cancel.giveUp = now.Add(c.cfg.CancelTimeout)
		c.emit(CancelTasks{Placements: told})
	}
}

// canceling reports whether the job waits for its attempts to end.
func (c *Core) canceling() bool {
	return c.state == job.Restarting || c.state == job.Failing || c.state == job.Cancelling
}

// chaseCanceled repeats CancelTasks, and gives executors up that do not end their attempts: one that hangs must not stop the job for ever.
func (c *Core) chaseCanceled(now time.Time) {
	if !c.canceling() || c.liveTasks() == 0 {
		return
	}
	if now.Before(c.cancel.giveUp) {
		if !now.Before(c.cancel.again) {
			c.cancel.again = now.Add(cancelRetry)
			c.emit(CancelTasks{Placements: c.placements((*execution).live)})
		}
		return
	}
	for _, t := range c.tasks {
		if !t.live() {
			continue
		}
		message := fmt.Sprintf("executor %s did not end task %s within %s of its cancellation", t.executor, t.attempt, c.cfg.CancelTimeout)
		c.emit(DropExecutor{Executor: t.executor, Message: message})
		c.giveUp(t.executor, infrastructure("%s", message))
	}
}

// giveUp ends every attempt on an executor that did not answer; unlike one that is lost, it may still run them.
func (c *Core) giveUp(executor job.ExecutorID, f job.Failure) {
	for _, t := range c.tasks {
		if t.live() && t.executor == executor {
			t.move(job.TaskFailed)
			t.failure = f
		}
	}
}
