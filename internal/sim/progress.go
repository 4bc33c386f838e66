package sim

import (
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/scheduler"
)

func (w *watcher) status(s *Sim, e scheduler.JobStatusChanged) {
	if e.To.Terminal() {
		w.leaders.last = s.master.sched.Executions()
	}
	if (e.To == job.Failed || e.To == job.Restarting) && e.Failure != (job.Failure{}) && s.cfg.Faults == (Faults{}) { // else it is rescaled
		s.violate("I6", "the job is %s without any fault: %s", e.To, e.Failure)
	}
}

// healed: from now on nothing goes wrong any more.
func (w *watcher) healed(s *Sim) { w.healedAt, w.restarts = s.now, -1 }

// checkProgress is I6: after the faults checkpoints complete and the job comes to its end, and nothing is left open.
func (s *Sim) checkProgress() {
	w, state := &s.watch, s.master.state()
	if state.Terminal() {
		return // it comes to an end when it is cleaned up after
	}
	if !s.cfg.Bounded && w.since >= enough {
		w.over = true
		s.checkRequests()
	}
	rest := w.healedAt.Add(recovery)
	if !s.calm || s.now.Before(rest) {
		return
	}
	if w.restarts < 0 {
		w.restarts = s.master.sched.Restarts()
	}
	if n := s.master.sched.Restarts(); n != w.restarts {
		s.violate("I6", "the job restarts without a fault: %s", s.master.sched.Failure())
	}
	if w.progress.After(rest) {
		rest = w.progress
	}
	o := s.cfg.Checkpoint
	if limit := rest.Add(o.Interval + o.Timeout + o.MinPause); s.now.After(limit) {
		s.violate("I6", "no checkpoint completed since %s, and the job is %s: %s", rest.Sub(s.start), state, s.master.sched.Detail())
	}
}

// enough is how many checkpoints have to complete after the faults before a job without end is let go.
const enough = 10

// checkEnd: a job that FINISHED has written exactly the output of the model.
func (s *Sim) checkEnd(state job.State) {
	if state != job.Finished {
		return
	}
	p := s.watch.prefixes[s.watch.latestDir]
	if p == nil {
		s.violate("I5", "the job finished without a checkpoint")
		return
	}
	stopped := p.dir == s.watch.stop
	for v, offsets := range p.offsets {
		for split, offset := range offsets {
			if !stopped && offset != s.work.splits[v][split] {
				s.violate("I5", "the job finished, and its last checkpoint has split %d of vertex %d at %d of %d", split, v, offset, s.work.splits[v][split])
			}
		}
	}
	for _, e := range s.watch.leaders.last {
		if !p.ended[e.Task] && s.watch.stopMode != job.StopSuspend {
			s.violate("I5", "the job finished, and in its last checkpoint %s had not ended", e.Task)
		}
		if !s.watch.finished[job.AttemptID{Job: s.job, Task: e.Task, Attempt: e.Attempt}] {
			s.violate("I5", "the job finished, and %s had not", e.Task)
		}
	}
	for v, k := range s.work.kinds {
		if k != sink {
			continue
		}
		if err := s.watch.sink(v).complete(s.work, v, p); err != nil {
			s.violate("I5", "the job finished, and at vertex %d %v", v, err)
		}
	}
}

func (s *Sim) checkRequests() {
	if state := s.master.state(); state.Terminal() && len(s.watch.unanswered) > 0 {
		s.violate("reply", "the job is %s, and %d requests have no answer", state, len(s.watch.unanswered))
	}
}
