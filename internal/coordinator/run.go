package coordinator

import (
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
)

// tasksRunning lets triggering start: the first periodic checkpoint falls at random between min pause and interval, so that the jobs of
// one master do not all fire together.
func (c *Core) tasksRunning(ev TasksRunning) {
	if c.closed {
		c.stale++
		return
	}
	if c.triggering() {
		c.stop(checkpoint.Suspended, "the tasks were started anew")
	}
	exec := c.newExecution(ev.Tasks)
	if exec == nil {
		c.stale++
		return
	}
	for _, p := range c.pending { // FINALIZING ones only, see the rule about Settled in the package comment
		p.outdated = true
		c.stale++
	}
	if c.exec != nil {
		c.carryOver(exec)
	}
	c.exec = exec
	if c.store.stop != nil {
		c.finishing(stoppedWhy)
		c.notifyComplete(c.store.stop.Metadata.ID)
		return
	}
	c.failures.alarm.expect(c.now)
	if pause, interval := c.cfg.Options.MinPause, c.interval(); interval > 0 {
		spread := time.Duration(ev.Random * float64(interval-pause))
		exec.timer = c.now.Add(pause + spread)
	}
}

// tasksStopped ends triggering, and every checkpoint that could not be durable yet.
func (c *Core) tasksStopped(ev TasksStopped) {
	if c.exec == nil {
		c.stale++
		return
	}
	reason := ev.Reason
	if reason == checkpoint.None {
		reason = checkpoint.Suspended
	}
	if len(ev.Attempts) > 0 {
		c.stopPart(reason, ev.Attempts)
		return
	}
	c.stop(reason, "the tasks of the job stopped running")
}

func (c *Core) stop(reason checkpoint.Reason, message string) {
	if c.exec != nil && c.exec.backlog.open > 0 {
		c.failures.alarm.restart(c.now)
	}
	c.exec = nil
	c.abortAll(reason, message)
	c.refuseAll(reason, message)
	c.deleteDoubts()
}

// close ends the coordinator. What is FINALIZING is decided when its write answers; everything else is over now.
func (c *Core) close(ev Closed) {
	if c.closed {
		c.stale++
		return
	}
	c.closed, c.doomed = true, ev.DeleteAll
	c.closeDoubts()
	c.noAlarm()
	c.stop(checkpoint.Shutdown, "the job has ended")
	if c.doomed {
		for _, old := range c.store.clear() {
			c.discardCompleted(old)
		}
	}
}
