package scheduler

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/job"
)

func (c *Core) cancelJob(now time.Time) {
	if c.state.Terminal() || c.state == job.Cancelling {
		return
	}
	c.stopped(job.Failure{}, c.regions)
	c.enter(job.Cancelling, job.Failure{}, "")
	c.cancelTasks(now, c.regions)
}

// cancelTasks tells every live attempt of regions to end that was not told yet.
func (c *Core) cancelTasks(now time.Time, regions []*region) {
	var told []job.Placement
	for _, t := range c.tasks {
		if !t.live() || t.cancelSent || !slices.Contains(regions, t.region) {
			continue
		}
		t.cancelSent, t.giveUp = true, now.Add(c.cfg.CancelTimeout)
		if t.state != job.TaskCanceling {
			t.move(job.TaskCanceling)
		}
		told = append(told, t.placement())
	}
	if len(told) > 0 {
		c.cancelAgain = now.Add(cancelRetry)
		c.emit(CancelTasks{Placements: told})
	}
}

// ending reports whether the attempt was told to end and has not.
func (t *execution) ending() bool { return t.live() && t.cancelSent }

// chaseCanceled repeats CancelTasks, and gives executors up that do not end their attempts: one that hangs must not stop the job for ever.
func (c *Core) chaseCanceled(now time.Time) {
	for _, t := range c.tasks {
		if !t.ending() || now.Before(t.giveUp) {
			continue
		}
		message := fmt.Sprintf("executor %s did not end task %s within %s of its cancellation", t.executor, t.attempt, c.cfg.CancelTimeout)
		c.emit(DropExecutor{Executor: t.executor, Message: message})
		c.giveUp(now, t.executor, infrastructure("%s", message))
	}
	if now.Before(c.cancelAgain) {
		return
	}
	if ending := c.placements((*execution).ending); len(ending) > 0 {
		c.cancelAgain = now.Add(cancelRetry)
		c.emit(CancelTasks{Placements: ending})
	}
}

// giveUp ends every attempt on an executor that did not answer; unlike one that is lost, it may still run them. Regions that were not to end lose
// their tasks there too.
func (c *Core) giveUp(now time.Time, executor job.ExecutorID, f job.Failure) {
	c.seats.lose(executor)
	failed := c.regionsOf(func(t *execution) bool { return t.live() && !t.cancelSent && t.executor == executor })
	for _, t := range c.tasks {
		if t.live() && t.executor == executor {
			t.move(job.TaskFailed)
			t.failure = f
		}
	}
	if len(failed) > 0 {
		c.fail(now, f, failed)
	}
}
