package coordinator

import (
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// taskFinished takes a task out of the checkpoints to come, and out of those that still wait for it: it has nothing any more that a restore
// would need, because it finishes when a checkpoint with everything it had is complete, and its sinks have committed. The tasks behind it that
// have no running task in front of them now are told themselves, since no barrier will come to them.
//
// A checkpoint that is older than the one with which the task has finished, which can only be a savepoint, is another matter: the task may have
// passed its barrier before the end of its input, and then what it read in between would be in nobody's snapshot. It is aborted.
func (c *Core) taskFinished(ev TaskFinished) {
	slot, ok := c.slot(c.exec, ev.Attempt)
	if !ok || c.exec.finished[slot] {
		c.stale++
		return
	}
	e := c.exec
	c.setBacklog(slot, false)
	heads := c.takeOut(slot)
	for _, p := range append([]*pending(nil), c.pending...) {
		if p.exec != e || p.phase == finalizing {
			continue
		}
		if !p.acked[slot] && p.phase == triggered && p.id < c.store.latestID() {
			c.abort(p, failure{reason: checkpoint.TaskNotReady, message: ev.Attempt.String() + " finished before it had acknowledged"})
			continue
		}
		if !p.acked[slot] {
			p.finished(slot, ev.Attempt.Task)
		}
		if p.phase < triggered {
			continue // the trigger set is read when the barriers are sent
		}
		c.sendTrigger(p, p.unacked(heads))
		c.finalizeIfComplete(p)
	}
}

// finished books the part of a task that has finished.
func (p *pending) finished(slot int, task job.TaskID) {
	p.acked[slot] = true
	p.states[slot] = checkpoint.SubtaskState{Subtask: task.Subtask, Ended: true}
	p.missing--
	p.stats.finished(slot)
}

// unacked are the attempts in slots that have not acknowledged.
func (p *pending) unacked(slots []int) []job.AttemptID {
	var out []job.AttemptID
	for _, slot := range slots {
		if !p.acked[slot] {
			out = append(out, p.exec.all[slot])
		}
	}
	return out
}

// sendTrigger has barriers injected.
func (c *Core) sendTrigger(p *pending, attempts []job.AttemptID) {
	if len(attempts) == 0 {
		return
	}
	e := SendTrigger{ID: p.id, Dir: p.dir, Timestamp: p.timestamp, Attempts: attempts, Final: p.final(), Kind: p.request.kind, Base: p.request.base, Format: p.request.format}
	if p.request.stop.EndsTasks() {
		e.Stop = p.request.stop
	}
	c.emit(e)
}

func (c *Core) finalizeIfComplete(p *pending) {
	if p.phase == triggered && p.missing == 0 {
		c.finalize(p)
	}
}
