package coordinator

import (
	"fmt"

	"github.com/weirstream/weir/internal/checkpoint"
)

// Checkpoints of a job share files. Each is triggered with a base, the latest that has completed: its tasks may refer to files of the base, and to those that they
// upload for the checkpoint, and to no others. The ledger knows what retained metadata, kept acks and the bases of pending checkpoints refer to; a file goes
// when none of them does, and when the metadata that was the last to refer to it is gone for sure.

// holdStored notes what the checkpoints refer to that are there at the beginning. Those of another job have files of their own directory.
func (c *Core) holdStored() {
	for _, done := range append(c.Older(), c.store.retained...) {
		if done.Metadata != nil && done.Metadata.Job == c.cfg.Job {
			c.cleaning.ledger.Hold(done.Metadata.ID, done.Metadata.SharedFiles())
		}
	}
}

// chooseBase gives a checkpoint the latest of the job's own as its base. A savepoint has none, because it shares nothing; neither has the first checkpoint
// of a job that was started from another job's or from a savepoint, be it claimed or not: the job's directory is all that it ever refers to.
func (c *Core) chooseBase(p *pending) {
	if n := len(c.store.retained); n > 0 && !p.savepoint() {
		p.request.base = c.store.retained[n-1].Metadata.ID
		c.cleaning.ledger.Begin(p.id, p.request.base)
	}
}

// holdShared notes what an ack refers to. A checkpoint whose task refers to what is nobody's to give, which no task does, is aborted: the file could
// be gone, now or at any time.
func (c *Core) holdShared(p *pending, ev Ack) bool {
	files := ev.State.SharedFiles()
	for _, f := range files {
		if n, ours := checkpoint.ParseSharedFile(f); p.savepoint() || (!ours || n.ID != p.id) && !c.cleaning.ledger.Holds(p.request.base, f) {
			message := fmt.Sprintf("%s refers to shared file %s, which is neither of base %d nor new", ev.Attempt, f, p.request.base)
			c.abort(p, failure{reason: checkpoint.Declined, message: message, byTask: true, attempt: ev.Attempt})
			return false
		}
	}
	if len(files) > 0 {
		c.cleaning.ledger.Hold(p.id, files)
	}
	return true
}

// removeShared has files deleted that nothing refers to.
func (c *Core) removeShared(files []string) {
	if len(files) > 0 {
		c.cleaning.removing++
		c.emit(RemoveShared{Files: files})
	}
}

// sharedRemoved ends such a deletion. What is left after a failure is found by its age.
func (c *Core) sharedRemoved() {
	if c.cleaning.removing == 0 {
		c.stale++
		return
	}
	c.cleaning.removing--
}

// discardCompleted has a completed checkpoint deleted that has fallen out.
func (c *Core) discardCompleted(done *checkpoint.Completed) {
	id := done.Number()
	c.cleaning.deleting.Add(id)
	c.emit(Discard{ID: id, Dir: done.Dir, Claimed: done.Claimed})
}
