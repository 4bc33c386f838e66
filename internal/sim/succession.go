package sim

import (
	"strings"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/ha"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/scheduler"
)

// leaders is what the invariants remember over job masters.
type leaders struct {
	epoch    job.LeaderEpoch
	restarts int // of those that are gone
	deployed map[job.AttemptID]job.LeaderEpoch
	doubtful map[checkpoint.ID]bool // written, and nobody knows whether
	stops    map[checkpoint.ID]job.StopMode
	// discarding are those of which a deletion has begun: one that failed may leave metadata that comes back after a crash of the machine.
	discarding map[checkpoint.ID]bool
	// cancelsWith is a savepoint after which the job is to be canceled, if its tasks still run.
	cancelsWith string
	kept        []*checkpoint.Completed
	last        []scheduler.Execution // when the job entered its terminal state
	end         *ha.End               // nil: it may go on
}

// leads: epochs strictly increase.
func (w *watcher) leads(s *Sim, epoch job.LeaderEpoch) {
	if epoch <= w.leaders.epoch {
		s.violate("epoch", "a job master leads with epoch %d after %d", epoch, w.leaders.epoch)
	}
	w.leaders.epoch = epoch
}

// leaderless: nobody answers requests now, and what is retained stays as it is.
func (w *watcher) leaderless(s *Sim) {
	w.running = false
	clear(w.unanswered)
	if w.stopMode == job.StopCancel && w.leaders.end == nil { // the job goes on as if it had not been asked for
		w.stop, w.stopMode = "", job.StopNone
	}
	w.leaders.restarts += s.master.sched.Restarts()
}

// retained are the checkpoints that must be whole: those that the job master keeps, or the latest while it does not know of any.
func (w *watcher) retained(m *master) []*checkpoint.Completed {
	l := &w.leaders
	if !m.life.over && !m.records.recovering {
		l.kept = m.coord.Retained()
		out := l.kept
		if l.end != nil && l.end.DeleteAll {
			return out
		}
		for _, c := range m.coord.Older() {
			dir, id := c.Dir, c.Number()
			if dir == m.records.job.Restore || !w.completed[id] || w.leaders.discarding[id] {
				continue // an earlier job master may have deleted it in its turn, or part of it, or has never known that it was written
			}
			out = append(out, &checkpoint.Completed{Dir: dir})
		}
		return out
	}
	if w.leaders.end != nil {
		return nil
	}
	return l.kept[max(len(l.kept)-1, 0):]
}

// recovered: a job goes on from the latest checkpoint that has completed, or from a later one of which nobody has heard, but never from one that
// was given up for sure.
func (w *watcher) recovered(s *Sim, c *checkpoint.Completed) {
	if c == nil {
		if w.latest > 0 {
			s.violate("I3", "the job is recovered without a checkpoint, and %d has completed", w.latest)
		}
		return
	}
	id := c.Metadata.ID
	_, begun := w.started[id]
	switch {
	case !begun || id < w.latest || w.aborted[id] && !w.leaders.doubtful[id]:
		s.violate("I1", "the job is recovered from checkpoint %d: begun %t, aborted %t, completed is %d", id, begun, w.aborted[id], w.latest)
	case !w.completed[id]:
		s.faults["checkpoint completed by recovery"]++
		delete(w.aborted, id)
		w.completed[id] = true
		stop := job.StopNone
		if c.Stopped {
			stop = w.leaders.stops[id]
		}
		w.durable(s, id, stop)
	}
}

// restores: nothing newer than what the tasks start from is there that a later job master would take for the latest.
func (w *watcher) restores(s *Sim, from *checkpoint.Completed) {
	var id checkpoint.ID
	if from != nil {
		id = from.Metadata.ID
	}
	for _, f := range s.list() {
		dir, isMetadata := strings.CutSuffix(f, "/"+checkpoint.MetadataFile)
		if owner, n, ok := checkpoint.ParseDir(dir); isMetadata && ok && owner == s.job && n > id {
			s.violate("I1", "tasks start from checkpoint %d, and the metadata of %d is there", id, n)
		}
	}
}

// deployed: an attempt is started by one job master, once per executor that is told to.
func (w *watcher) deployed(t *simTask) {
	if by, twice := w.leaders.deployed[t.attempt]; twice && by != t.epoch {
		t.s.violate("attempts", "%s is deployed by job masters %d and %d", t.attempt, by, t.epoch)
	}
	w.leaders.deployed[t.attempt] = t.epoch
	w.onePlan(t)
}

// reads notes which splits a source has: the restored ones, or in a fresh start those that it was given. One that had ended keeps what it had.
func (w *watcher) reads(o *sourceOp) {
	if o.t.attempt.Job != o.t.s.job || o.t.attempt.Attempt < o.t.s.plans.attempt || len(o.splits) == 0 {
		return
	}
	var splits []int
	for _, sp := range o.splits {
		splits = append(splits, sp.split)
	}
	w.splits[o.t.attempt.Task] = splits
}

// stopped: the job ends with a savepoint.
func (w *watcher) stopped(s *Sim, dir string, mode job.StopMode) {
	if mode == job.StopCancel && w.leaders.cancelsWith != dir {
		w.leaders.cancelsWith = dir // CancelJob says whether it is
		return
	}
	s.faults["job stopped, "+mode.String()]++
	w.stop, w.stopMode = dir, mode
}

// ends: a job whose end is recorded never runs again, nor ends in another way.
func (w *watcher) ends(s *Sim, e ha.End) {
	if w.leaders.end != nil {
		if w.leaders.end.State != e.State {
			s.violate("end", "the job has ended as %s, and now as %s", w.leaders.end.State, e.State)
		}
	} else {
		w.leaders.end = &e
		s.checkEnd(e.State)
	}
	if e.Clean {
		w.cleaned(s)
	}
}

// cleaned: the job is over, and what is left of it in the storage is what was to be kept.
func (w *watcher) cleaned(s *Sim) {
	s.checkRequests()
	s.checkLeft()
	w.over = !s.resume()
}
