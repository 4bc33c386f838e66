package scheduler

import (
	"fmt"
	"time"

	"github.com/weirstream/weir/internal/job"
)

func (c *Core) start() {
	if c.state != job.Created || c.slots != slotsNone {
		c.dropped.illegal++
		return
	}
	c.requestSlots()
}

func (c *Core) requestSlots() {
	c.slots = slotsAsked
	c.emit(RequestSlots{Count: c.cfg.Graph.MaxVertexParallelism()})
}

func (c *Core) releaseSlots() {
	if c.slots != slotsNone {
		c.slots = slotsNone
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
	if c.slots != slotsAsked {
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
	if c.slots != slotsAsked {
		c.dropped.stale++
		if c.state.Terminal() {
			c.emit(ReleaseSlots{}) // the answer crossed the withdrawal of the request
		}
		return
	}
	c.slots = slotsHeld
	c.setWaiting("")
	slots, err := place(c.cfg.Graph, e.Slots)
	if err != nil {
		c.fail(now, job.Failure{Class: job.FailurePermanent, Message: err.Error()})
		return
	}
	c.deploy(slots)
}

// deploy starts every task in its slot.
func (c *Core) deploy(slots []job.Slot) {
	c.running, c.endOfData = false, false
	executors := map[job.ExecutorID]bool{}
	var placements []job.Placement
	for i, t := range c.tasks {
		t.executor, t.address = slots[i].Executor, slots[i].Address
		executors[t.executor] = true
		t.move(job.TaskScheduled)
		t.move(job.TaskDeploying)
		placements = append(placements, t.placement())
	}
	detail := fmt.Sprintf("attempt %d: %s on %s", c.restarts.count+1, plural(len(c.tasks), "task"), plural(len(executors), "executor"))
	c.enter(job.Running, job.Failure{}, detail)
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
	case e.State == job.TaskFinished && c.running:
		c.emit(TaskFinished{Attempt: t.attempt})
	case e.State == job.TaskFailed:
		t.failure = named(e.Failure, fmt.Sprintf("task %s failed without a reason", t.attempt))
		c.fail(now, t.failure)
	case (e.State == job.TaskCanceled || e.State == job.TaskCanceling) && !t.cancelSent:
		t.failure = infrastructure("executor %s canceled task %s by itself", t.executor, t.attempt)
		c.fail(now, t.failure)
	}
}

func (t *execution) isRunning() bool    { return t.state == job.TaskRunning }
func (t *execution) hasEndOfData() bool { return t.endOfData }

// announce says once per execution that all tasks run, and once that all have reached their end of input.
func (c *Core) announce(now time.Time) {
	if c.state != job.Running {
		return
	}
	if !c.running && c.count((*execution).isRunning) == len(c.tasks) {
		c.running = true
		c.restarts.strategy.runs(now)
		c.emit(TasksRunning{Placements: c.placements((*execution).isRunning)})
	}
	if c.running && !c.endOfData && c.count((*execution).hasEndOfData) == len(c.tasks) {
		c.endOfData = true
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
	c.stopped(job.Failure{})
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
