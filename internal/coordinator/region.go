package coordinator

import (
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// triggering reports whether checkpoints may be triggered: all tasks run.
func (c *Core) triggering() bool { return c.exec != nil && !c.exec.partial }

// stopPart stops triggering while some failover regions are started again. Their tasks are taken out; the others still hear of checkpoints that
// complete, because they commit then, and of those that are aborted, because they may be aligning for them.
func (c *Core) stopPart(reason checkpoint.Reason, attempts []job.AttemptID) {
	e := c.exec
	if e.backlog.open > 0 {
		c.failures.alarm.restart(c.now)
	}
	e.partial, e.timer = true, time.Time{}
	for _, a := range attempts {
		slot, ok := c.slot(e, a)
		if !ok {
			c.stale++
		} else if !e.finished[slot] {
			c.takeOut(slot)
		}
	}
	message := "tasks of another region are started again"
	c.abortAll(reason, message)
	c.refuseAll(reason, message)
	c.deleteDoubts()
	e.final = final{}
}

// takeOut takes a task out of the execution: it takes part in nothing any more, and is told nothing.
func (c *Core) takeOut(slot int) (heads []int) {
	heads = c.plan.finish(c.exec, slot)
	c.completionKnown(slot)
	c.exec.resume.confirm(slot)
	c.exec.backlog.set(slot, false)
	return heads
}

// carryOver gives the next execution what the tasks that have run on have not confirmed. Those that were started again have it from the checkpoint
// that they were restored from.
func (c *Core) carryOver(next *execution) {
	next.notify = c.exec.notify.after(c.exec, next)
	next.resume = c.exec.resume.after(c.exec, next)
}

// after is what of a notifier is left for the tasks that run on in the next execution.
func (n *notifier) after(old, next *execution) notifier {
	if n.open == 0 {
		return notifier{}
	}
	out := notifier{id: n.id, waiting: make([]bool, len(n.waiting)), retryAt: n.retryAt}
	for slot, waiting := range n.waiting {
		if waiting && next.all[slot] == old.all[slot] && !next.finished[slot] {
			out.waiting[slot] = true
			out.open++
		}
	}
	if out.open == 0 {
		return notifier{}
	}
	return out
}
