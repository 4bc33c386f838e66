package coordinator

import "github.com/weirstream/weir/internal/checkpoint"

// ack books the snapshot of a task and answers with what became of it. The executor deletes its files on TooLate and Unknown, so these
// two are said only when nothing can refer to them; an ack whose first reply was lost must never lead to a deletion.
func (c *Core) ack(ev Ack) {
	c.emit(AckReply{Request: ev.Request, Verdict: c.book(ev)})
	if p := c.lookup(ev.ID); p != nil {
		c.finalizeIfComplete(p)
	}
}

func (c *Core) book(ev Ack) checkpoint.Verdict {
	if ev.Epoch != c.cfg.Epoch {
		c.stale++
		return checkpoint.StaleEpoch
	}
	p := c.lookup(ev.ID)
	if p == nil {
		return c.late(ev)
	}
	slot, ok := c.slot(p.exec, ev.Attempt)
	if !ok || p.phase < triggered {
		c.stale++
		return checkpoint.Unknown
	}
	if p.acked[slot] {
		return checkpoint.Duplicate
	}
	if !c.holdShared(p, ev) {
		return checkpoint.TooLate
	}
	p.acked[slot] = true
	p.states[slot] = ev.State
	p.states[slot].Subtask = ev.Attempt.Task.Subtask
	p.missing--
	p.stats.ack(slot, c.now, ev.Metrics)
	return checkpoint.Kept
}

// late classifies an ack for a checkpoint that is not pending.
func (c *Core) late(ev Ack) checkpoint.Verdict {
	c.stale++
	switch {
	case ev.ID >= c.nextID: // never triggered
		return checkpoint.Unknown
	case !c.failures.aborted.Has(ev.ID):
		// It completed, and so every task had acknowledged; or it is too old to know, and nothing is deleted on a guess.
		return checkpoint.Duplicate
	}
	slot, ok := c.slot(c.exec, ev.Attempt)
	if !ok {
		return checkpoint.Unknown
	}
	c.stats.late(ev.ID, slot, c.now, ev.Metrics)
	return checkpoint.TooLate
}

// decline aborts a checkpoint with the reason of the task that could not take its snapshot.
func (c *Core) decline(ev Decline) {
	p := c.lookup(ev.ID)
	if p == nil || ev.Epoch != c.cfg.Epoch || p.phase != triggered {
		c.stale++
		return
	}
	slot, ok := c.slot(p.exec, ev.Attempt)
	if !ok || p.acked[slot] { // it has acknowledged: the decline is of a repeated ack and the state is kept
		c.stale++
		return
	}
	reason := ev.Reason
	if !reason.Known() {
		reason = checkpoint.Declined
	}
	c.abort(p, failure{reason: reason, message: ev.Attempt.String() + ": " + ev.Message, byTask: true, attempt: ev.Attempt})
}

// metadata is the record of a checkpoint that all tasks have acknowledged, in graph order.
func (c *Core) metadata(p *pending) *checkpoint.Metadata {
	g := c.cfg.Graph
	m := &checkpoint.Metadata{
		Job: c.cfg.Job, JobName: c.cfg.JobName, Params: c.cfg.Params,
		ID: p.id, Kind: p.request.kind, Timestamp: p.timestamp,
		Fingerprint: g.Fingerprint, Epoch: c.cfg.Epoch, MasterStates: p.masterStates,
		Vertices: make([]checkpoint.VertexState, len(g.Vertices)),
	}
	slot := 0
	for i, v := range g.Vertices {
		end := slot + v.Parallelism
		m.Vertices[i] = checkpoint.VertexState{
			Vertex: v.ID, Parallelism: v.Parallelism, MaxParallelism: v.MaxParallelism,
			Operators: v.Operators, Subtasks: p.states[slot:end:end],
		}
		slot = end
	}
	return m
}
