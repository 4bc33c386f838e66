package coordinator

import (
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// failure is why a checkpoint is aborted.
type failure struct {
	reason  checkpoint.Reason
	message string
	byTask  bool          // a task said so
	attempt job.AttemptID // that task's
	// uncertain: its metadata may be durable all the same.
	uncertain bool
}

// failures is what is remembered of aborted checkpoints.
type failures struct {
	inARow  int              // counted ones since the last completion
	aborted checkpoint.IDSet // the newest, to tell late acks from repeated ones
	alarm   alarm
}

// abort ends a pending checkpoint. It is the only way out of Core.pending but complete.
func (c *Core) abort(p *pending, f failure) {
	c.forget(p)
	if !f.uncertain { // else its tasks must not delete their files when they repeat an ack
		c.failures.aborted.Add(p.id)
	}
	p.stats.Reason, p.stats.Failure = f.reason, f.message
	duration := c.stats.end(p.stats, StateAborted, c.now)
	c.failures.alarm.remember(p, f)
	running := c.exec != nil && c.exec == p.exec

	c.emit(Aborted{ID: p.id, Kind: p.request.kind, Reason: f.reason, Message: f.message})
	if running && p.phase >= triggered {
		c.notifyAborted(p)
	}
	c.removeShared(c.cleaning.ledger.Decided(p.id))
	switch {
	case p.phase == locating:
		c.cleaning.locating.Add(p.id)
		c.removeShared(c.cleaning.ledger.Gone(p.id)) // no task knows of it
	case f.uncertain:
		c.doubt(p)
	default:
		c.discard(p.id, p.dir)
	}
	if p.request.origin == user {
		c.emit(Reply{Request: p.request.id, ID: p.id, Duration: duration, Reason: f.reason, Message: f.message})
	}
	if running && p.final() && !c.exec.final.done && c.triggering() {
		c.exec.final.retryAt = c.now.Add(finalRetryDelay)
	}
	if running && p.request.stop == job.StopDrain && p.phase >= triggered {
		c.notDrained(p, f)
	} else if running {
		c.count(p, f)
	}
}

// abortAll aborts all that cannot be durable yet.
func (c *Core) abortAll(reason checkpoint.Reason, message string) {
	for _, p := range slices.Clone(c.pending) {
		if p.phase != finalizing {
			c.abort(p, failure{reason: reason, message: message})
		}
	}
}

func (c *Core) forget(p *pending) {
	c.pending = slices.DeleteFunc(c.pending, func(o *pending) bool { return o == p })
}

// count adds a failure and fails the job when there are more in a row than it tolerates. Only the execution that runs is judged, so a
// late failure of an earlier one never hurts it; nor does one that was triggered before the latest that completed. A savepoint that a task declined counts; one that expired or could not be written does
// not: the job itself is well. One that was to stop the job never counts: then it goes on as if nobody had asked.
func (c *Core) count(p *pending, f failure) {
	if !f.reason.Counted() || (p.savepoint() && !f.byTask) || p.stops() || p.id < c.store.latestID() {
		return
	}
	c.failures.inARow++
	tolerable := c.cfg.Options.TolerableFailures
	if c.failures.inARow <= tolerable {
		return
	}
	message := fmt.Sprintf("%s %d failed: %s: %s (%d in a row, %d tolerated)", p.request.kind, p.id, f.reason, f.message, c.failures.inARow, tolerable)
	c.failures.inARow = 0
	c.emit(FailJob{Failure: job.Failure{Class: classOf(f.reason), Message: message}, Attempt: f.attempt})
}

// classOf is the class of a failure that ends an execution: what a task itself refuses is the task's, the rest is the surroundings'.
func classOf(r checkpoint.Reason) job.FailureClass {
	if r == checkpoint.Declined || r == checkpoint.AckTooLarge || r == checkpoint.HookFailure {
		return job.FailureTask
	}
	return job.FailureInfrastructure
}
