package sim

import (
	"context"
	"slices"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/ha"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rescale"
	"github.com/weirstream/weir/internal/retention"
	"github.com/weirstream/weir/internal/scheduler"
	"github.com/weirstream/weir/internal/storage"
)

// records is what a job master knows of the job's records, and of what earlier ones have left.
type records struct {
	store      *ha.Store
	job        ha.Job
	known      ha.Progress // when this job master began
	ledger     ha.Ledger
	held       []coordinator.InitLocation   // of checkpoints whose ids are not reserved
	stop       *coordinator.MetadataWritten // of the savepoint that stops the job, until that is recorded
	over       bool                         // the end is durable
	recovering bool                         // the checkpoints are not known yet
}

// state is that of the job, as people see it.
func (m *master) state() job.State {
	if e := m.records.ledger.End(); e != nil {
		return e.State
	}
	return m.sched.State()
}

// reserved reports that the id of a checkpoint is reserved. If not it is held until it is.
func (m *master) reserved(e coordinator.InitLocation) bool {
	r := &m.records
	r.ledger.Draw(e.ID)
	if r.ledger.Reserved(e.ID) {
		return true
	}
	r.held = append(r.held, e)
	m.s.faults["id is waited for"]++
	return false
}

// record writes what is due, and lets go what has waited for it.
func (m *master) record() {
	r := &m.records
	r.held = slices.DeleteFunc(r.held, func(e coordinator.InitLocation) bool {
		reserved := r.ledger.Reserved(e.ID)
		if reserved {
			m.initLocation(e)
		}
		return reserved
	})
	if r.stop != nil && (r.ledger.StopRecorded() || r.ledger.End() != nil) {
		m.feed(*r.stop)
		r.stop = nil
	}
	w, due := r.ledger.Due()
	if !due {
		return
	}
	if r.over {
		m.s.violate("end", "a record is written of a job whose end is durable: %+v", w)
		return
	}
	m.retry("write a record", func(ctx context.Context) error {
		switch {
		case w.End != nil:
			return r.store.SetEnd(ctx, m.s.job, *w.End)
		case w.Plan != nil:
			return r.store.SetPlan(ctx, m.s.job, *w.Plan)
		}
		return r.store.SetProgress(ctx, m.s.job, w.Progress)
	}, func() {
		r.ledger.Written(w)
		if w.Plan != nil && r.ledger.PlanRecorded() {
			m.tellRescale(rescale.Recorded{})
		}
		if w.End != nil {
			r.over = true
			m.s.watch.ends(m.s, *w.End)
			m.feed(coordinator.Closed{DeleteAll: w.End.DeleteAll})
			m.cleanUp()
		}
	})
}

// setEnd has the end of the job recorded, before anything follows from it.
func (m *master) setEnd(e scheduler.JobStatusChanged) {
	m.records.ledger.SetEnd(ha.End{
		State: e.To, Failure: e.Failure.String(), At: m.s.now, Restarts: m.sched.Restarts(),
		DeleteAll: m.records.job.Options.Checkpoint.DeletedAfter(e.To),
	})
}

// cleanUp deletes what the job leaves behind, when every storage call has been answered.
func (m *master) cleanUp() {
	m.s.after(m.s.storageDelay(), "clean up", func() {
		switch {
		case m.life.over:
		case m.open > 0 || !m.coord.Settled():
			m.cleanUp()
		default:
			m.retry("clean up", m.sweepJobDir, func() { m.s.watch.cleaned(m.s) })
		}
	})
}

func (m *master) sweepJobDir(ctx context.Context) error {
	s, end := m.s, m.records.ledger.End()
	files, err := s.filesOf(ctx, checkpoint.JobDir(s.job))
	if err != nil {
		return err
	}
	for _, id := range retention.Leftovers(s.job, files, !end.DeleteAll) {
		if err := storage.DiscardCheckpoint(ctx, s.store, checkpoint.Dir(s.job, id)); err != nil {
			return err
		}
	}
	if o := m.records.job; end.DeleteAll && o.Claimed {
		if err := s.discardClaimed(ctx, o.Restore); err != nil {
			return err
		}
	}
	if err := s.removeSharedLeft(ctx); err != nil {
		return err
	}
	clean := *end
	clean.Clean = true
	return m.records.store.SetEnd(ctx, s.job, clean)
}

// publish makes the metadata in dir durable.
func (m *master) publish(ctx context.Context, dir string, data []byte) error {
	return storage.Publish(ctx, m.s.store, dir+"/"+checkpoint.MetadataFile, data)
}

// filesOf lists the files below a directory.
func (s *Sim) filesOf(ctx context.Context, dir string) ([]string, error) {
	infos, err := s.store.List(ctx, dir)
	var out []string
	for _, i := range infos {
		out = append(out, i.Path)
	}
	return out, err
}
