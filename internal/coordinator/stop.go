package coordinator

import (
	"fmt"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// A job is stopped by a savepoint that is marked so, an ordinary checkpoint in all else: it is triggered, acknowledged, declined and written like
// any other. Nothing is triggered beside it. If it completes, the tasks commit and finish; a failure on the way there restarts from it and from
// nothing older, however often, since some of them have committed. If it is aborted the job goes on: suspended sources are told until they
// have confirmed it; drained ones have ended and cannot be brought back, so the job restarts from its latest checkpoint.

const stoppedWhy = "the job has taken the savepoint that stops it and is finishing"

// stopped ends the job with a savepoint that has completed.
func (c *Core) stopped(p *pending) {
	if !p.commits() {
		if c.exec != nil {
			c.finishing("the job has taken the savepoint that it is canceled with")
			c.emit(CancelJob{Dir: p.dir})
		}
		return
	}
	c.store.stop = &checkpoint.Completed{Dir: p.dir, Metadata: p.meta, Stopped: true}
	c.subsume(p.id)
	if c.exec != nil {
		c.finishing(stoppedWhy)
		c.notifyComplete(p.id)
	}
	c.subsumeDoubts(p.id)
}

// Stopping reports whether the job is being stopped with a savepoint, or canceled with one.
func (c *Core) Stopping() bool { return c.stopping() || c.store.stop != nil }

// Stopped is the savepoint that the job was stopped with, nil while it was not.
func (c *Core) Stopped() *checkpoint.Completed { return c.store.stop }

// notDrained restarts the job, because its sources have ended for a savepoint that will not be.
func (c *Core) notDrained(p *pending, f failure) {
	message := fmt.Sprintf("the job was drained, but savepoint %d did not complete: %s: %s", p.id, f.reason, f.message)
	c.emit(FailJob{Failure: job.Failure{Class: job.FailureInfrastructure, Message: message}})
}
