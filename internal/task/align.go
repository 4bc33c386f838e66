package task

import (
	"slices"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/job"
)

// trigger injects a barrier into a task that has no running task in front of it. What such tasks have sent before they finished may still be
// under way: then the task waits for it as for the barriers.
func (c *Core) trigger(now time.Time, cp element.Checkpoint) []Effect {
	id := checkpoint.ID(cp.ID)
	if id <= c.seen {
		return nil // late, or sent twice
	}
	if c.forget(id) {
		return append(c.giveUp(id), ForwardCancel{id}) // the tasks behind may have barriers of it from elsewhere
	}
	effects, ok := c.align(now, cp)
	if ok && c.missing == 0 {
		if cp.Stop == job.StopDrain && len(c.aligned) == 0 {
			effects = append(effects, c.end()...) // what a source drains goes ahead of the barrier
		}
		effects = append(effects, c.take(cp)...)
	}
	return effects
}

// close books a channel on which nothing will come: it has no barrier, and nothing that would have to wait behind one.
func (c *Core) close(channel int) []Effect {
	if c.inputs.closed[channel] {
		return nil
	}
	c.inputs.closed[channel] = true
	c.inputs.running--
	if c.current == nil || c.aligned[channel] {
		return nil
	}
	c.missing--
	if c.missing > 0 {
		return nil
	}
	return c.take(*c.current)
}

// barrier aligns: a channel whose barrier has come is not read until all others have theirs.
func (c *Core) barrier(now time.Time, channel int, cp element.Checkpoint) []Effect {
	id := checkpoint.ID(cp.ID)
	if id <= c.seen {
		return nil // of a checkpoint that is over here
	}
	if c.forget(id) {
		effects := c.giveUp(id)
		return append(effects, ForwardCancel{id})
	}
	effects, ok := c.align(now, cp)
	if !ok || c.aligned[channel] || c.inputs.closed[channel] {
		return effects // twice on one channel: the first one counts
	}
	c.aligned[channel] = true
	c.missing--
	if c.missing > 0 {
		return append(effects, Block{channel})
	}
	return append(effects, c.take(cp)...)
}

// align makes cp the checkpoint that is being aligned, unless that is a later one.
func (c *Core) align(now time.Time, cp element.Checkpoint) ([]Effect, bool) {
	var effects []Effect
	if c.current != nil {
		old := checkpoint.ID(c.current.ID)
		if cp.ID == c.current.ID {
			return nil, true
		}
		if cp.ID < c.current.ID {
			return nil, false
		}
		effects = append(c.giveUp(old), ForwardCancel{old}, Decline{old, checkpoint.Subsumed})
	}
	c.current, c.missing, c.firstAt = &cp, c.inputs.running, now
	return effects, true
}

// take takes the snapshot that all channels are aligned for.
func (c *Core) take(cp element.Checkpoint) []Effect {
	return append([]Effect{c.snapshot(cp)}, c.release()...)
}

// snapshot takes the checkpoint here and now.
func (c *Core) snapshot(cp element.Checkpoint) Effect {
	id := checkpoint.ID(cp.ID)
	c.seen, c.taken = id, id
	c.aborted = slices.DeleteFunc(c.aborted, func(a checkpoint.ID) bool { return a <= id })
	if c.ended && c.last == 0 {
		c.last = id
	}
	c.stop = 0 // an earlier one has failed: no other is triggered before its fate is known
	if cp.Stop.EndsTasks() {
		c.stop = id
	}
	return Snapshot{Checkpoint: cp, FirstAt: c.firstAt}
}

// cancel ends the alignment of a checkpoint that a channel will not have.
func (c *Core) cancel(id checkpoint.ID) []Effect {
	if id <= c.seen || c.current != nil && id < checkpoint.ID(c.current.ID) {
		return nil
	}
	return append(c.giveUp(id), ForwardCancel{id}, Decline{id, checkpoint.BarrierCanceled})
}

// abort ends a checkpoint on the coordinator's word.
func (c *Core) abort(id checkpoint.ID) []Effect {
	if id == c.stop {
		c.stop = 0
	}
	switch {
	case id == c.taken && id > c.stopped:
		c.stopped = id
		return []Effect{StopSnapshot{id}, NotifyAborted{id}}
	case id <= c.seen:
		return nil
	case c.current != nil && checkpoint.ID(c.current.ID) == id:
		return append(c.giveUp(id), ForwardCancel{id})
	}
	c.remember(id)
	return nil
}

// giveUp makes id a checkpoint that will not be taken here.
func (c *Core) giveUp(id checkpoint.ID) []Effect {
	c.seen = max(c.seen, id)
	if c.current == nil || checkpoint.ID(c.current.ID) > id {
		return nil
	}
	return c.release()
}

// release ends the alignment.
func (c *Core) release() []Effect {
	c.current = nil
	clear(c.aligned)
	if len(c.aligned) == 0 {
		return nil
	}
	return []Effect{Unblock{}}
}

// remember keeps an aborted id whose barriers may still come.
func (c *Core) remember(id checkpoint.ID) {
	if slices.Contains(c.aborted, id) {
		return
	}
	c.aborted = append(c.aborted, id)
	if len(c.aborted) > maxRemembered {
		c.aborted = c.aborted[1:]
	}
}

// forget reports whether id was remembered as aborted.
func (c *Core) forget(id checkpoint.ID) bool {
	i := slices.Index(c.aborted, id)
	if i < 0 {
		return false
	}
	c.aborted = slices.Delete(c.aborted, i, i+1)
	return true
}

// complete tells the operators, once for each higher id. The task is done with the first checkpoint that it snapshotted after its end of input,
// or any later one: that has its snapshot too. And it is done with the one that stops the job.
func (c *Core) complete(id checkpoint.ID) []Effect {
	if id <= c.notified {
		return nil
	}
	c.notified = id
	effects := []Effect{NotifyComplete{id}}
	if c.last > 0 && id >= c.last || c.stop > 0 && id >= c.stop {
		effects = append(effects, c.finish()...)
	}
	return effects
}

func (c *Core) finish() []Effect {
	c.finished = true
	return []Effect{Finish{}}
}
