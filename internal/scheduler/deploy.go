package scheduler

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/job"
)

func (c *Core) start() {
	if c.state != job.Created || c.seats.begun() {
		c.dropped.illegal++
		return
	}
	c.emit(c.seats.request(c.seats.all()))
}

func (c *Core) releaseSlots() {
	if c.seats.release() {
		c.emit(ReleaseSlots{})
	}
	c.setWaiting("")
}

func (c *Core) setWaiting(detail string) {
	if c.waiting != detail {
		c.waiting = detail
		c.emit(Waiting{Detail: detail})
	}
}

func (c *Core) slotsShort(e SlotsShort) {
	if !c.seats.opened {
		c.dropped.stale++
		return
	}
	detail := e.Message
	if detail == "" {
		detail = fmt.Sprintf("needs %s, free are %d", plural(e.Required, "slot"), e.Available)
	}
	c.setWaiting(detail)
}

func (c *Core) slotsAllocated(now time.Time, e SlotsAllocated) {
	if !c.seats.opened {
		c.dropped.stale++
		if c.state.Terminal() {
			c.emit(ReleaseSlots{}) // the answer crossed the withdrawal of the request
		}
		return
	}
	c.setWaiting("")
	if n := len(c.seats.asked); !c.seats.fill(c.cfg.Graph, e.Slots) {
		message := fmt.Sprintf("job %s needs %s and was given %d: this is a bug of the slot pool", c.cfg.Graph.Name, plural(n, "slot"), len(e.Slots))
		c.failJob(now, job.Failure{Class: job.FailurePermanent, Message: message})
	}
}

// resume deploys the regions that wait for nothing any more, and asks for slots for those that lack some. A region that has all its slots does not
// wait for another one's.
func (c *Core) resume(now time.Time) {
	if !c.seats.begun() || c.replanning.held {
		return // Start has not come, or the plan
	}
	if c.replanning.next != nil && !c.swap(now) {
		return // the tasks of the old one have not ended
	}
	for _, r := range c.in(stopping) {
		if !r.live() && !now.Before(r.at) {
			r.renew()
		}
	}
	var ready, short, rest []*region
	for _, r := range c.regions {
		switch {
		case r.phase != pending:
			rest = append(rest, r)
		case c.seats.complete(r):
			ready = append(ready, r)
		default:
			short = append(short, r)
		}
	}
	if len(ready) > 0 || len(c.regions) == 0 && !c.seats.opened {
		c.deploy(ready)
	}
	if len(short) == 0 {
		return
	}
	if wanted := c.seats.wanted(short, append(rest, ready...)); !c.seats.opened || !slices.Equal(wanted, c.seats.asked) {
		c.emit(c.seats.request(wanted))
	}
}

// deploy starts every task of the regions in its slot.
func (c *Core) deploy(regions []*region) {
	c.said.endOfData = false
	executors := map[job.ExecutorID]bool{}
	var placements []job.Placement
	for _, t := range c.tasks {
		if t.region.phase == pending && slices.Contains(regions, t.region) {
			slot := c.seats.slots[c.seats.of[t.attempt.Task]]
			t.executor, t.address = slot.Executor, slot.Address
			t.move(job.TaskScheduled)
			t.move(job.TaskDeploying)
			placements = append(placements, t.placement())
		}
		if t.executor != "" {
			executors[t.executor] = true
		}
	}
	for _, r := range regions {
		r.phase = deployed
	}
	if len(c.in(deployed)) == len(c.regions) {
		detail := fmt.Sprintf("attempt %d: %s on %s", c.restarts.count+1, plural(len(c.tasks), "task"), plural(len(executors), "executor"))
		if len(placements) < len(c.tasks) {
			detail = fmt.Sprintf("attempt %d: %s of %d on %s", c.restarts.count+1, plural(len(placements), "task"), len(c.tasks), plural(len(executors), "executor"))
		}
		c.enter(job.Running, job.Failure{}, detail)
	}
	c.emit(Deploy{Placements: placements})
}

// taskStateChanged takes the report of an executor.
func (c *Core) taskStateChanged(now time.Time, e TaskStateChanged) {
	t := c.fence(e.Attempt)
	if t == nil {
		return
	}
	if t.cancelSent && !e.State.Terminal() {
		if e.State != job.TaskCanceling {
			c.dropped.stale++ // it crossed our CancelTasks
		}
		return
	}
	if e.State != t.state && !legal(t.state, e.State) {
		c.dropped.illegal++
		return
	}
	t.endOfData = t.endOfData || e.EndOfData || e.State == job.TaskFinished
	if e.State == t.state {
		return
	}
	t.move(e.State)
	switch {
	case e.State == job.TaskFinished && t.announced:
		c.emit(TaskFinished{Attempt: t.attempt})
	case e.State == job.TaskFailed:
		t.failure = named(e.Failure, fmt.Sprintf("task %s failed without a reason", t.attempt))
		c.fail(now, t.failure, []*region{t.region})
	case (e.State == job.TaskCanceled || e.State == job.TaskCanceling) && !t.cancelSent:
		t.failure = infrastructure("executor %s canceled task %s by itself", t.executor, t.attempt)
		c.fail(now, t.failure, []*region{t.region})
	}
}

func (t *execution) isRunning() bool    { return t.state == job.TaskRunning }
func (t *execution) hasEndOfData() bool { return t.endOfData }

// takesPart: it runs, or has finished before the others ran, as the tasks of a region do that was not restarted with them.
func (t *execution) takesPart() bool { return t.isRunning() || t.state == job.TaskFinished }

// announce says once per execution that all tasks run, and once that all have reached their end of input.
func (c *Core) announce(now time.Time) {
	if c.state != job.Running {
		return
	}
	if !c.said.running && c.count((*execution).takesPart) == len(c.tasks) {
		c.said.running, c.replanning.trial = true, false
		c.restarts.strategy.runs(now)
		e := TasksRunning{Placements: c.placements((*execution).takesPart)}
		for _, t := range c.tasks {
			t.announced = true
			if t.state == job.TaskFinished {
				e.Finished = append(e.Finished, t.attempt)
			}
		}
		c.emit(e)
	}
	if c.said.running && !c.said.endOfData && c.count((*execution).hasEndOfData) == len(c.tasks) {
		c.said.endOfData = true
		c.emit(EndOfDataReached{})
	}
}

func (c *Core) placements(of func(*execution) bool) []job.Placement {
	var out []job.Placement
	for _, t := range c.tasks {
		if of(t) {
			out = append(out, t.placement())
		}
	}
	return out
}

// finish ends a RUNNING job of which no attempt is live: a failure would have taken it out of RUNNING, so all have FINISHED.
func (c *Core) finish() {
	c.stopped(job.Failure{}, c.regions)
	c.end(job.Finished, job.Failure{})
}

// end enters a terminal state. The status comes last: who sees it may rely on everything being given back.
func (c *Core) end(to job.State, failure job.Failure) {
	for _, t := range c.tasks {
		if t.state == job.TaskCreated {
			t.move(job.TaskCanceled)
		}
	}
	c.releaseSlots()
	c.enter(to, failure, "")
}
