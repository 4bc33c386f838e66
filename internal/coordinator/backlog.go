package coordinator

import (
	"fmt"
	"time"
)

// backlog is which tasks of an execution have said that they work off a backlog. A task that has finished, and an execution that is over,
// say nothing any more.
type backlog struct {
	tasks []bool // by slot
	open  int
}

func (b *backlog) set(slot int, behind bool) {
	if b.tasks[slot] == behind {
		return
	}
	b.tasks[slot] = behind
	if behind {
		b.open++
	} else {
		b.open--
	}
}

// backlogChanged takes the word of a task. When the last backlog has ended, the timer may move to an earlier time.
func (c *Core) backlogChanged(ev BacklogChanged) {
	slot, ok := c.slot(c.exec, ev.Attempt)
	if !ok || c.exec.finished[slot] {
		c.stale++
		return
	}
	c.setBacklog(slot, ev.Behind)
}

func (c *Core) setBacklog(slot int, behind bool) {
	before := c.interval()
	c.exec.backlog.set(slot, behind)
	if after := c.interval(); after != before {
		c.intervalChanged(before, after)
	}
}

// interval is the time between periodic checkpoints as things are; 0: none is wanted.
func (c *Core) interval() time.Duration {
	o := c.cfg.Options
	if c.exec != nil && c.exec.backlog.open > 0 && o.Interval > 0 {
		return max(o.IntervalDuringBacklog, 0)
	}
	return max(o.Interval, 0)
}

// intervalChanged moves the timer to an earlier time if the new interval allows it, and never to a later one: a trigger that was planned comes,
// unless none is wanted any more when its time has come.
func (c *Core) intervalChanged(before, after time.Duration) {
	e := c.exec
	if e.final.done {
		return
	}
	if after == 0 {
		c.queue.remove(periodic) // it has waited behind another
		return
	}
	if before == 0 || after < before {
		c.failures.alarm.restart(c.now)
	}
	if e.final.wanted {
		return
	}
	if next := c.now.Add(after); e.timer.IsZero() || next.Before(e.timer) {
		e.timer = next
	}
}

// Backlog says in words that tasks work off a backlog, and what that means for checkpoints; empty: none does.
func (c *Core) Backlog() string {
	if c.exec == nil || c.exec.backlog.open == 0 {
		return ""
	}
	text, named := "", false
	for slot, behind := range c.exec.backlog.tasks {
		if behind && !named {
			text, named = c.plan.tasks[slot].String(), true
		}
	}
	if more := c.exec.backlog.open - 1; more > 0 {
		text = fmt.Sprintf("%s and %d more work off a backlog", text, more)
	} else {
		text += " works off a backlog"
	}
	switch normal, now := c.cfg.Options.Interval, c.interval(); {
	case normal <= 0 || now == normal:
		return text
	case now == 0:
		return text + "; no periodic checkpoints until it is done"
	default:
		return fmt.Sprintf("%s; a checkpoint every %s until it is done, then every %s", text, now, normal)
	}
}
