package localstate

import (
	"slices"

	"github.com/weirstream/weir/internal/checkpoint"
)

// MaxPending is how many checkpoints of a job may have copies beside the latest completed one. More can only come from checkpoints of whose
// end nobody was told.
const MaxPending = 8

// copies are the checkpoints of one job that have copies here. Each method returns those whose copies must be deleted.
type copies struct {
	completed checkpoint.ID // the latest; 0: none is known to be
	ids       []checkpoint.ID
	aborted   []checkpoint.ID // newest last, at most maxAborted
}

// maxAborted bounds the aborted checkpoints that are remembered, to discard what comes late.
const maxAborted = 64

// wants reports whether a copy of the checkpoint may be kept.
func (c *copies) wants(id checkpoint.ID) bool {
	return id >= c.completed && !slices.Contains(c.aborted, id)
}

// add says that the checkpoint has a copy.
func (c *copies) add(id checkpoint.ID) (gone []checkpoint.ID) {
	at, found := slices.BinarySearch(c.ids, id)
	if found {
		return nil
	}
	c.ids = slices.Insert(c.ids, at, id)
	pending := c.ids
	if len(pending) > 0 && pending[0] == c.completed {
		pending = pending[1:]
	}
	if n := len(pending) - MaxPending; n > 0 {
		return c.remove(slices.Clone(pending[:n])...)
	}
	return nil
}

func (c *copies) remove(ids ...checkpoint.ID) []checkpoint.ID {
	var gone []checkpoint.ID
	c.ids = slices.DeleteFunc(c.ids, func(id checkpoint.ID) bool {
		if !slices.Contains(ids, id) {
			return false
		}
		gone = append(gone, id)
		return true
	})
	return gone
}

// complete: nothing older than the checkpoint is wanted any more.
func (c *copies) complete(id checkpoint.ID) []checkpoint.ID {
	if id <= c.completed {
		return nil
	}
	c.completed = id
	var older []checkpoint.ID
	for _, have := range c.ids {
		if have < id {
			older = append(older, have)
		}
	}
	return c.remove(older...)
}

// abort: the checkpoint will never complete. What is said of a completed one is late.
func (c *copies) abort(id checkpoint.ID) []checkpoint.ID {
	if id <= c.completed {
		return nil
	}
	if !slices.Contains(c.aborted, id) {
		c.aborted = append(c.aborted, id)
		c.aborted = c.aborted[max(0, len(c.aborted)-maxAborted):]
	}
	return c.remove(id)
}

// restored: tasks start from the checkpoint, so that it is the latest and no other is pending.
func (c *copies) restored(id checkpoint.ID) []checkpoint.ID {
	c.completed = id
	var others []checkpoint.ID
	for _, have := range c.ids {
		if have != id {
			others = append(others, have)
		}
	}
	return c.remove(others...)
}
