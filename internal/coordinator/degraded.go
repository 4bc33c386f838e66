package coordinator

import (
	"fmt"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
)

// The default of CheckpointOptions.DegradedAfter: so many intervals, and at least so long that one slow checkpoint is no alarm.
const (
	degradedIntervals = 10
	degradedAtLeast   = 30 * time.Second
)

// alarm is the condition DEGRADED: the job runs, but for too long no checkpoint has completed, so a failure would take it far back. Failures
// in a row do not tell it: a coordinator that never gets to trigger has none, and neither has a job that restarts again and again.
type alarm struct {
	since     time.Time // of the latest completed checkpoint, or when the tasks ran first; zero: checkpoints are not expected
	on        bool
	after     time.Duration // it has gone off after
	lastAbort string        // since then
}

// degradedAfter is the time without a completed checkpoint that is too long, as things are; 0 or less: none is.
func (c *Core) degradedAfter() time.Duration {
	interval := c.interval()
	switch after := c.cfg.Options.DegradedAfter; {
	case interval == 0 && (after == 0 || c.cfg.Options.Interval > 0):
		return 0 // nobody expects any, or none until a backlog is done
	case after != 0:
		return after
	}
	return max(degradedIntervals*interval, degradedAtLeast)
}

// expect starts the clock when the tasks run first. It goes on while they do not: a job that only restarts is degraded too.
func (a *alarm) expect(now time.Time) {
	if a.since.IsZero() {
		a.since = now
	}
}

// restart starts the clock anew after a time in which fewer checkpoints were expected, or none.
func (a *alarm) restart(now time.Time) {
	if !a.on && !a.since.IsZero() {
		a.since = now
	}
}

// at is when the alarm goes off; zero: it does not, or is on already.
func (c *Core) alarmAt() time.Time {
	a := &c.failures.alarm
	if after := c.degradedAfter(); !a.on && !a.since.IsZero() && after > 0 {
		return a.since.Add(after)
	}
	return time.Time{}
}

func (c *Core) checkAlarm() {
	if at := c.alarmAt(); !at.IsZero() && !c.now.Before(at) {
		c.failures.alarm.on, c.failures.alarm.after = true, c.degradedAfter()
		c.emit(Degraded{Message: c.Degraded()})
	}
}

// calm ends the condition: a checkpoint has completed.
func (c *Core) calm() {
	a := &c.failures.alarm
	if a.on {
		c.emit(Recovered{After: c.now.Sub(a.since)})
	}
	*a = alarm{}
	if c.exec == nil || !c.exec.final.done { // else none is expected any more
		a.since = c.now
	}
}

// noAlarm stops the clock: no checkpoint is expected any more.
func (c *Core) noAlarm() { c.failures.alarm = alarm{} }

// Degraded says that no checkpoint has completed for too long, and what is known of the cause; empty: the job is well.
func (c *Core) Degraded() string {
	if !c.failures.alarm.on {
		return ""
	}
	return fmt.Sprintf("no checkpoint has completed for more than %s: %s", c.failures.alarm.after, c.alarmCause())
}

func (c *Core) alarmCause() string {
	last := c.failures.alarm.lastAbort
	if !c.triggering() {
		return join("not all tasks are running", last)
	}
	for _, p := range c.pending {
		if !p.savepoint() {
			return join(c.whatIsAwaited(p), last)
		}
	}
	if last != "" {
		return last
	}
	if n := c.cleaning.deletions(); n > c.cfg.Options.MaxConcurrent {
		return fmt.Sprintf("%d deletions of checkpoints are not done", n)
	}
	return "none could be triggered"
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// whatIsAwaited says in words what a pending checkpoint waits for.
func (c *Core) whatIsAwaited(p *pending) string {
	switch p.phase {
	case locating:
		return fmt.Sprintf("checkpoint %d waits for its directory", p.id)
	case calling:
		return fmt.Sprintf("checkpoint %d waits for its master hooks (%s)", p.id, c.hooks())
	case finalizing:
		return fmt.Sprintf("checkpoint %d waits for its metadata to be written", p.id)
	default:
		return fmt.Sprintf("checkpoint %d: %s", p.id, p.progress())
	}
}

// remember keeps why the latest checkpoint was aborted, to name the cause of an alarm. What a newer one subsumed is not it.
func (a *alarm) remember(p *pending, f failure) {
	if p.savepoint() || f.reason == checkpoint.Subsumed {
		return
	}
	a.lastAbort = fmt.Sprintf("checkpoint %d was aborted: %s: %s", p.id, f.reason, f.message)
}
