package coordinator

import (
	"slices"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/retention"
)

// finalize has the metadata written beside the loop. From here on the checkpoint may be durable at any moment.
func (c *Core) finalize(p *pending) {
	md := c.metadata(p)
	if err := md.CheckUnions(); err != nil {
		c.abort(p, failure{reason: checkpoint.TaskNotReady, message: err.Error()})
		return
	}
	p.phase = finalizing
	p.stats.State = StateFinalizing
	p.meta = md
	c.emit(WriteMetadata{ID: p.id, Dir: p.dir, Metadata: p.meta, Stops: p.request.stop.EndsTasks()})
}

// metadataWritten decides a FINALIZING checkpoint. It also counts when the tasks have stopped meanwhile: it is durable and newer than
// what was there, and a restore must prefer it.
func (c *Core) metadataWritten(ev MetadataWritten) {
	p := c.lookup(ev.ID)
	switch {
	case p == nil || p.phase != finalizing:
		c.stale++
	case ev.Outcome != Written:
		c.abort(p, failure{
			reason: checkpoint.FinalizeFailure, message: "write the checkpoint metadata: " + ev.Err, uncertain: ev.Outcome != NotWritten && !p.outdated,
		})
	case p.outdated && p.commits():
		c.abort(p, failure{reason: checkpoint.Suspended, message: "the tasks were restored from an older checkpoint before this one was durable"})
	case c.doomed && !p.savepoint():
		c.abort(p, failure{reason: checkpoint.Shutdown, message: "the job has ended"})
	default:
		c.complete(p)
	}
}

// complete makes a durable checkpoint the latest. The order is: statistics, the caller, older pending ones, the tasks, clean-up.
func (c *Core) complete(p *pending) {
	c.forget(p)
	c.removeShared(c.cleaning.ledger.Decided(p.id))
	c.failures.inARow = 0
	c.store.lastDone = c.now
	duration := c.stats.end(p.stats, StateCompleted, c.now)
	c.emit(Completed{
		ID: p.id, Kind: p.request.kind, Final: p.afterEnd && !p.savepoint(), Stop: p.request.stop, Duration: duration, Bytes: p.stats.Bytes,
	})
	if p.request.origin == user {
		c.emit(Reply{Request: p.request.id, ID: p.id, Dir: p.dir, Duration: duration})
	}
	if p.stops() {
		c.stopped(p)
		return
	}
	if p.savepoint() {
		return // it is the user's: not restored from by itself, subsumes nothing, commits nothing
	}
	c.calm()
	subsumed := c.store.add(&checkpoint.Completed{Dir: p.dir, Metadata: p.meta}, c.cfg.Options.Retained)
	c.subsume(p.id)
	if c.exec != nil {
		c.notifyComplete(p.id)
		if p.afterEnd && p.exec == c.exec {
			c.finishing("the job has taken its final checkpoint and is finishing")
		}
	}
	for _, old := range subsumed {
		c.discardCompleted(old)
	}
	c.subsumeDoubts(p.id)
}

// subsume aborts what is pending and older than a completed checkpoint.
func (c *Core) subsume(id checkpoint.ID) {
	for _, old := range slices.Clone(c.pending) {
		if old.id < id && old.phase != finalizing && !old.savepoint() {
			c.abort(old, failure{reason: checkpoint.Subsumed, message: "a newer checkpoint completed"})
		}
	}
}

// cleaning is the storage work that nobody waits for.
type cleaning struct {
	deleting checkpoint.IDSet // Discard is out
	locating checkpoint.IDSet // aborted while InitLocation is out: the directory will be an orphan
	removing int              // RemoveShared that are out
	ledger   retention.Ledger // who refers to which shared files
}

// deletions is how many are under way: when they take longer than checkpoints, triggering waits for them.
func (d *cleaning) deletions() int { return d.deleting.Len() + d.removing }

// discard has a checkpoint deleted.
func (c *Core) discard(id checkpoint.ID, dir string) {
	c.cleaning.deleting.Add(id)
	c.emit(Discard{ID: id, Dir: dir})
}

// discarded ends a deletion. A failed one is not repeated: what is left is an orphan without metadata, or found by age.
func (c *Core) discarded(ev Discarded) {
	if !c.cleaning.deleting.Take(ev.ID) {
		c.stale++
		return
	}
	if ev.Err == "" {
		c.stats.discarded(ev.ID)
		c.removeShared(c.cleaning.ledger.Gone(ev.ID))
	} else {
		c.cleaning.ledger.NotGone(ev.ID)
	}
	c.doubtDeleted(ev)
}

// Deleting is the number of deletions that have not been answered; a process that ends waits for them.
func (c *Core) Deleting() int { return c.cleaning.deletions() }
