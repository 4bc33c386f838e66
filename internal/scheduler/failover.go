package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/job"
)

func (c *Core) executorLost(now time.Time, e ExecutorLost) {
	text := fmt.Sprintf("executor %s lost", e.Executor)
	if e.Message != "" {
		text += ": " + e.Message
	}
	f := infrastructure("%s", text)
	if lost := c.lose(e.Executor, f); len(lost) > 0 {
		c.fail(now, f, lost)
	}
}

// lose ends every attempt on an executor that is gone, and returns the regions that had any there.
func (c *Core) lose(executor job.ExecutorID, f job.Failure) []*region {
	c.seats.lose(executor)
	there := func(t *execution) bool { return t.live() && t.executor == executor }
	lost := c.regionsOf(there)
	for _, t := range c.tasks {
		if there(t) {
			t.vanish(f)
		}
	}
	return lost
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

// deployFailed restarts the regions of which the executor has not reported every task of the deployment: else the deployment has worked, and only
// its answer was lost. The attempts are not taken for ended, since the request may have arrived: they are canceled like the others.
func (c *Core) deployFailed(now time.Time, e DeployFailed) {
	f := named(e.Failure, "no reason given")
	if e.Failure.Class == 0 {
		f.Class = job.FailureInfrastructure
	}
	f.Message = fmt.Sprintf("deploy to executor %s: %s", e.Executor, f.Message)
	var failed []*region
	for _, id := range e.Attempts {
		t := c.byTask[id.Task]
		if t == nil || t.attempt != id || t.executor != e.Executor || t.state != job.TaskDeploying {
			continue
		}
		t.failure = f
		if !slices.Contains(failed, t.region) {
			failed = append(failed, t.region)
		}
	}
	if failed == nil {
		c.dropped.stale++
		return
	}
	c.fail(now, f, failed)
}

func (c *Core) tasksUnknown(now time.Time, e TasksUnknown) {
	var first *job.Failure
	var failed []*region
	for _, id := range e.Attempts {
		t := c.fence(id)
		if t == nil {
			continue
		}
		f := infrastructure("executor %s does not run task %s", t.executor, t.attempt)
		if !t.cancelSent && first == nil {
			first = &f
		}
		if !t.cancelSent && !slices.Contains(failed, t.region) {
			failed = append(failed, t.region)
		}
		t.vanish(f)
	}
	if first != nil {
		c.fail(now, *first, failed)
	}
}

// jobFailed restarts the region of the attempt that is to blame, or all of them.
func (c *Core) jobFailed(now time.Time, e JobFailed) {
	if e.Attempt == (job.AttemptID{}) {
		c.fail(now, e.Failure, c.regions)
		return
	}
	if t := c.fence(e.Attempt); t != nil {
		t.failure = named(e.Failure, "no reason given")
		c.fail(now, t.failure, []*region{t.region})
	}
}

// fail decides what a failure of regions leads to. While they restart already, or the job fails, it belongs to that: nothing restarts twice.
func (c *Core) fail(now time.Time, f job.Failure, failed []*region) {
	if c.replanning.ignores() {
		return
	}
	f = named(f, "the job failed without a reason")
	s := &c.restarts.strategy
	switch c.state {
	case job.Created:
		if f.Class == job.FailurePermanent {
			c.failJob(now, f)
		} // anything else has nothing to restart yet
	case job.Running, job.Restarting:
		if f.Class == job.FailurePermanent {
			c.failJob(now, f)
			return
		}
		var fresh []*region
		for _, r := range c.restartSet(failed) {
			if r.phase == deployed {
				fresh = append(fresh, r)
			}
		}
		if c.state == job.Restarting && (len(fresh) == 0 || now.Before(c.restarts.at)) {
			c.mergeFailure(now, f, fresh)
			return
		}
		delay, ok := s.failed(now, f.Class)
		if !ok {
			c.failJob(now, s.giveUp(f))
			return
		}
		c.failure = f
		c.restarts.count++
		c.restarts.at = now.Add(delay)
		c.restart(now, f, fresh)
	case job.Failing:
		c.realCause(f)
	default: // the job is canceled, or has ended
	}
}

// realCause takes a failure that comes while the job fails. The first one stays, unless it was only the peers' report of what this one did to their
// connections; see mergeFailure. The end of the job says which.
func (c *Core) realCause(f job.Failure) {
	switch {
	case c.failure.Class != job.FailureInfrastructure:
	case f.Class == job.FailureTask:
		c.failure = c.restarts.strategy.giveUp(f)
	case f.Class == job.FailurePermanent:
		c.failure = f
	}
}

// mergeFailure takes a failure that belongs to the restart that is planned: of a region that restarts already, or of another one while the delay
// runs. The first cause stays, with one exception: a task that fails breaks its connections, and the peers' reports of that may be faster than
// its own. So the first failure of class task takes the place of an infrastructure failure, and counts.
func (c *Core) mergeFailure(now time.Time, f job.Failure, fresh []*region) {
	s := &c.restarts.strategy
	if f.Class == job.FailureTask && c.failure.Class == job.FailureInfrastructure {
		c.failure = f
		if !s.merged(f.Class) {
			c.failJob(now, s.giveUp(f))
			return
		}
	}
	if len(fresh) > 0 {
		c.restart(now, f, fresh)
	}
}

// restart stops the tasks of regions; the delay runs beside.
func (c *Core) restart(now time.Time, f job.Failure, regions []*region) {
	for _, r := range regions {
		r.phase, r.at = stopping, c.restarts.at
	}
	c.stopped(f, regions)
	detail := fmt.Sprintf("restart %d in %s", c.restarts.count, c.restarts.at.Sub(now).Round(time.Millisecond))
	if n := tasksOf(regions); n < len(c.tasks) {
		detail += fmt.Sprintf(": %s of %d", plural(n, "task"), len(c.tasks))
	}
	if c.state == job.Restarting {
		c.detail = detail
		c.emit(RegionsRestart{Failure: f, Detail: detail})
	} else {
		c.enter(job.Restarting, f, detail)
	}
	c.cancelTasks(now, regions)
}

// failJob ends the job as soon as its tasks have ended.
func (c *Core) failJob(now time.Time, f job.Failure) {
	if c.replanning.trial {
		c.replanFailed(now, f)
		return
	}
	c.failure = f
	c.stopped(f, c.regions)
	c.enter(job.Failing, f, "")
	c.cancelTasks(now, c.regions)
}

// stopped says that the tasks of regions do not run any more, if it was ever said that they do.
func (c *Core) stopped(f job.Failure, regions []*region) {
	e := TasksStopped{Failure: f}
	for _, r := range regions {
		for _, t := range r.tasks {
			if t.announced {
				t.announced = false
				e.Attempts = append(e.Attempts, t.attempt)
			}
		}
	}
	if len(e.Attempts) == 0 {
		return
	}
	c.said.running = false
	if !slices.ContainsFunc(c.tasks, func(t *execution) bool { return t.announced }) {
		e.Attempts = nil
	}
	c.emit(e)
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
