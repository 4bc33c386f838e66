package coordinator

import (
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// notifier tells the tasks of an execution of the highest completed checkpoint until each has confirmed it: a sink commits on this, and
// a lost message would delay the commit until the next checkpoint, or for ever at the end of input.
type notifier struct {
	id      checkpoint.ID
	waiting []bool // by slot
	open    int
	retryAt time.Time // zero: all have confirmed
}

// notifyComplete starts over with a newer checkpoint; it stands for every earlier one.
func (c *Core) notifyComplete(id checkpoint.ID) {
	n := &c.exec.notify
	if id < n.id {
		return
	}
	if n.waiting == nil {
		n.waiting = make([]bool, len(c.exec.all))
	}
	for slot := range n.waiting {
		n.waiting[slot] = !c.exec.finished[slot]
	}
	n.id, n.open = id, len(n.waiting)-c.exec.over
	if n.open > 0 {
		c.sendNotify(c.exec.runningSet())
	}
}

func (c *Core) sendNotify(attempts []job.AttemptID) {
	n := &c.exec.notify
	n.retryAt = c.now.Add(c.cfg.NotifyRetry)
	c.emit(SendNotifyComplete{ID: n.id, Attempts: attempts})
}

// repeatNotify sends to those that have not confirmed in time.
func (c *Core) repeatNotify() {
	n := &c.exec.notify
	if n.retryAt.IsZero() || c.now.Before(n.retryAt) {
		return
	}
	attempts := make([]job.AttemptID, 0, n.open)
	for slot, waiting := range n.waiting {
		if waiting {
			attempts = append(attempts, c.exec.all[slot])
		}
	}
	c.sendNotify(attempts)
}

// notifyConfirmed books a confirmation. One of an earlier checkpoint says nothing about this one.
func (c *Core) notifyConfirmed(ev NotifyConfirmed) {
	slot, ok := c.slot(c.exec, ev.Attempt)
	if !ok || ev.ID > c.exec.notify.id || c.exec.notify.waiting == nil {
		c.stale++
		return
	}
	n := &c.exec.notify
	if ev.ID < n.id || !n.waiting[slot] {
		return
	}
	c.confirm(slot)
}

func (c *Core) confirm(slot int) {
	n := &c.exec.notify
	n.waiting[slot] = false
	n.open--
	if n.open == 0 {
		n.retryAt = time.Time{}
		c.stats.notified(n.id, c.now)
	}
}

// notNotified takes out a task that has finished: there is no use in telling it any more.
func (c *Core) notNotified(slot int) {
	if n := &c.exec.notify; n.waiting != nil && n.waiting[slot] {
		c.confirm(slot)
	}
}
