package coordinator

import (
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// notifier tells the tasks of an execution of a checkpoint until each has confirmed it. Of the highest completed one, because a sink commits on
// that, and a lost message would delay the commit until the next checkpoint, or for ever at the end of input. And of an aborted one that was to stop
// the job, because sources stand still for it. Other aborts are told once: who misses one learns so from the next barrier.
type notifier struct {
	id      checkpoint.ID
	waiting []bool // by slot
	open    int
	retryAt time.Time // zero: all have confirmed
}

// begin starts over with a checkpoint, and gives those who are to be told.
func (n *notifier) begin(id checkpoint.ID, e *execution, retryAt time.Time) []job.AttemptID {
	if n.waiting == nil {
		n.waiting = make([]bool, len(e.all))
	}
	for slot := range n.waiting {
		n.waiting[slot] = !e.finished[slot]
	}
	n.id, n.open, n.retryAt = id, len(n.waiting)-e.over, retryAt
	if n.open == 0 {
		n.retryAt = time.Time{}
	}
	return e.runningSet()
}

// due gives those that have not confirmed in time, if it is time, and sets the next one.
func (n *notifier) due(now time.Time, retry time.Duration, e *execution) []job.AttemptID {
	if n.retryAt.IsZero() || now.Before(n.retryAt) {
		return nil
	}
	n.retryAt = now.Add(retry)
	attempts := make([]job.AttemptID, 0, n.open)
	for slot, waiting := range n.waiting {
		if waiting {
			attempts = append(attempts, e.all[slot])
		}
	}
	return attempts
}

// confirm takes a task out that need not be told any more, and reports whether that was the last one.
func (n *notifier) confirm(slot int) bool {
	if n.waiting == nil || !n.waiting[slot] {
		return false
	}
	n.waiting[slot] = false
	if n.open--; n.open > 0 {
		return false
	}
	n.retryAt = time.Time{}
	return true
}

// notifyComplete tells of a newer checkpoint; it stands for every earlier one.
func (c *Core) notifyComplete(id checkpoint.ID) {
	n := &c.exec.notify
	if id < n.id {
		return
	}
	if to := n.begin(id, c.exec, c.now.Add(c.cfg.NotifyRetry)); len(to) > 0 {
		c.emit(SendNotifyComplete{ID: id, Attempts: to})
	}
}

// notifyAborted tells the tasks that a checkpoint is over.
func (c *Core) notifyAborted(p *pending) {
	to := p.exec.runningSet()
	if p.request.stop == job.StopSuspend {
		to = p.exec.resume.begin(p.id, p.exec, c.now.Add(c.cfg.NotifyRetry))
	}
	c.emit(SendNotifyAborted{ID: p.id, LatestCompleted: c.store.latestID(), Attempts: to})
}

// repeatNotify sends to those that have not confirmed in time.
func (c *Core) repeatNotify() {
	e, retry := c.exec, c.cfg.NotifyRetry
	if to := e.notify.due(c.now, retry, e); to != nil {
		c.emit(SendNotifyComplete{ID: e.notify.id, Attempts: to})
	}
	if to := e.resume.due(c.now, retry, e); to != nil {
		c.emit(SendNotifyAborted{ID: e.resume.id, LatestCompleted: c.store.latestID(), Attempts: to})
	}
}

// notifyConfirmed books a confirmation. One of an earlier checkpoint says nothing about this one.
func (c *Core) notifyConfirmed(ev NotifyConfirmed) {
	slot, ok := c.slot(c.exec, ev.Attempt)
	if !ok || ev.ID > c.exec.notify.id || c.exec.notify.waiting == nil {
		c.stale++
		return
	}
	if ev.ID == c.exec.notify.id {
		c.completionKnown(slot)
	}
}

// completionKnown takes out a task that knows of the completion, or has finished.
func (c *Core) completionKnown(slot int) {
	if n := &c.exec.notify; n.confirm(slot) {
		c.stats.notified(n.id, c.now)
	}
}

// abortConfirmed books the confirmation of an abort; only one that was to stop the job is waited for.
func (c *Core) abortConfirmed(ev AbortConfirmed) {
	slot, ok := c.slot(c.exec, ev.Attempt)
	if !ok {
		c.stale++
		return
	}
	if n := &c.exec.resume; ev.ID == n.id {
		n.confirm(slot)
	}
}
