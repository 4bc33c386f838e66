package coordinator

import (
	"slices"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
)

// doubtRetry is how long the deletion of a checkpoint that stands in the way of a restore waits after it has failed.
const doubtRetry = time.Second

// doubt is an aborted checkpoint whose metadata may be durable. While the tasks run it does no harm: its files are kept, and the next
// completed one subsumes it. But when the tasks start again from an older one they take back what it holds, and a later leader that finds
// it must not take it for the latest: so it is deleted before, for sure.
type doubt struct {
	id      checkpoint.ID
	dir     string
	asked   bool      // Discard is out
	retryAt time.Time // of a Discard that failed
}

// doubt remembers a checkpoint that may be durable. A savepoint is the user's and nobody restores from it unasked: it is left as it is.
func (c *Core) doubt(p *pending) {
	if p.savepoint() {
		return
	}
	c.store.doubts = append(c.store.doubts, &doubt{id: p.id, dir: p.dir})
	slices.SortFunc(c.store.doubts, func(a, b *doubt) int { return int(a.id - b.id) })
	switch {
	case c.closed:
		c.closeDoubts()
	case !c.triggering():
		c.deleteDoubts()
	}
}

// subsumeDoubts deletes what is older than a completed checkpoint: there is nothing it could stand in the way of any more.
func (c *Core) subsumeDoubts(id checkpoint.ID) {
	c.store.doubts = slices.DeleteFunc(c.store.doubts, func(d *doubt) bool {
		if d.id < id && !d.asked {
			c.discard(d.id, d.dir)
		}
		return d.id < id
	})
}

// deleteDoubts deletes all before a restore; Settled waits for it.
func (c *Core) deleteDoubts() {
	for _, d := range c.store.doubts {
		if !d.asked {
			d.asked, d.retryAt = true, time.Time{}
			c.discard(d.id, d.dir)
		}
	}
}

// closeDoubts ends all doubts with the job. Nothing is restored any more, so what may be durable is deleted or kept as completed ones are.
func (c *Core) closeDoubts() {
	if c.doomed {
		c.deleteDoubts()
	}
	c.store.doubts = nil
}

// doubtDeleted removes a doubt whose deletion has succeeded; one that failed is tried again, for the restore waits for it.
func (c *Core) doubtDeleted(ev Discarded) {
	at := slices.IndexFunc(c.store.doubts, func(d *doubt) bool { return d.id == ev.ID })
	switch {
	case at < 0:
	case ev.Err == "":
		c.store.doubts = slices.Delete(c.store.doubts, at, at+1)
	default:
		c.store.doubts[at].asked, c.store.doubts[at].retryAt = false, c.now.Add(doubtRetry)
	}
}

func (c *Core) retryDoubts() {
	for _, d := range c.store.doubts {
		if !d.retryAt.IsZero() && !c.now.Before(d.retryAt) {
			d.asked, d.retryAt = true, time.Time{}
			c.discard(d.id, d.dir)
		}
	}
}
