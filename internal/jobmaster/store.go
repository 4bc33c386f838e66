package jobmaster

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/ha"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rescale"
)

// JobStore keeps the records of jobs for the next job master. What has returned without an error is durable; after an error it may be.
type JobStore interface {
	CreateJob(ctx context.Context, j ha.Job) error
	SetProgress(ctx context.Context, id job.ID, p ha.Progress) error
	SetPlan(ctx context.Context, id job.ID, p ha.Plan) error
	SetEnd(ctx context.Context, id job.ID, e ha.End) error
	RemoveJob(ctx context.Context, id job.ID) error
}

const reasonNotRecorded = "JOB_NOT_RECORDED"

// record keeps a job that was submitted, before anybody hears of it.
func (m *JobMaster) record(ctx context.Context, l *jobLoop) error {
	if m.cfg.Store == nil {
		return nil
	}
	j := ha.Job{
		ID: l.id, Order: l.order, Name: l.name, Params: l.params, Options: l.options, Graph: l.graph, Submitted: l.submitted.Round(0),
	}
	if l.restored != nil {
		j.Restore, j.Claimed = l.restored.Dir, l.restored.Claimed
	}
	if err := m.cfg.Store.CreateJob(ctx, j); err != nil {
		m.forget(ctx, []job.ID{l.id}) // it may be there all the same, and must not run some day
		return &gateway.Error{
			Code: gateway.Unavailable, Reason: reasonNotRecorded, Job: l.id,
			Message: "the job could not be recorded: " + err.Error(), Remedy: "see to the data directory of the job master, then submit the job again",
		}
	}
	return nil
}

// forget removes records of jobs that nobody needs. A failure is only logged: such a job has ended, or is removed at the next start.
func (m *JobMaster) forget(ctx context.Context, ids []job.ID) {
	if m.cfg.Store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storageTimeout)
	defer cancel()
	for _, id := range ids {
		if err := m.cfg.Store.RemoveJob(ctx, id); err != nil {
			m.cfg.Log.Warn("remove the records of a job", zap.String("job", string(id)), zap.Error(err))
		}
	}
}

// attemptRecorded says that the tasks of this execution may be deployed: its number and the plan that they go by are recorded.
func (l *jobLoop) attemptRecorded() bool {
	return l.cfg.Store == nil || l.calling.ledger.AttemptReserved() && l.calling.ledger.PlanRecorded()
}

// reserveID reports that the id of a checkpoint is reserved. If not it is held until it is.
func (l *jobLoop) reserveID(e coordinator.InitLocation) bool {
	c := &l.calling
	c.ledger.Draw(e.ID)
	if l.cfg.Store == nil || c.ledger.Reserved(e.ID) {
		return true
	}
	c.held = append(c.held, e)
	return false
}

// completed notes that the job has a checkpoint: from now on it never starts without one.
func (l *jobLoop) completed(e coordinator.Completed) {
	if e.Kind != checkpoint.Checkpoint {
		return
	}
	l.calling.ledger.Completed(e.ID)
}

// recordEnd has the end of the job recorded. Only then are its checkpoints deleted, and only then does anybody hear that it is over: a job
// that was said to have ended never runs again.
func (l *jobLoop) recordEnd(end ha.End) {
	l.calling.recovery.end()
	counts := l.coord.Counts()
	end.Restarts, end.Completed, end.Failed = l.sched.Restarts(), int(counts.Completed), int(counts.Failed)
	end.At = end.At.Round(0)
	end.StoppedWith = l.stoppedWith()
	l.calling.ledger.SetEnd(end)
	if l.cfg.Store == nil {
		l.feed(coordinator.Closed{DeleteAll: end.DeleteAll})
	}
}

func (l *jobLoop) endRecorded() bool { return l.cfg.Store == nil || l.calling.ledger.EndRecorded() }

// record writes what is due, and lets go what has waited for it.
func (l *jobLoop) record(ctx context.Context) {
	c := &l.calling
	if l.cfg.Store == nil {
		return
	}
	c.held = slices.DeleteFunc(c.held, func(e coordinator.InitLocation) bool {
		reserved := c.ledger.Reserved(e.ID)
		if reserved {
			l.initLocation(ctx, e)
		}
		return reserved
	})
	if c.stop != nil && (c.ledger.StopRecorded() || c.ledger.End() != nil) {
		l.feed(c.stop.event)
		c.stop = nil
	}
	if w, due := c.ledger.Due(); due {
		l.write(ctx, w)
	}
}

// write makes a write of a record beside the loop, until it succeeds or ctx ends.
func (l *jobLoop) write(ctx context.Context, w ha.Write) {
	l.work.Go(func() {
		done := l.retry(ctx, "write a record of the job", func(ctx context.Context) error {
			switch {
			case w.End != nil:
				return l.cfg.Store.SetEnd(ctx, l.id, *w.End)
			case w.Plan != nil:
				return l.cfg.Store.SetPlan(ctx, l.id, *w.Plan)
			}
			return l.cfg.Store.SetProgress(ctx, l.id, w.Progress)
		})
		if done {
			l.inbox.Post(recordWritten{w})
		}
	})
}

// stopWritten: the savepoint that stops the job is durable. It is not completed before the next job master would go on from it too, and from
// nothing else: once it is, tasks commit.
type stopWritten struct {
	dir   string
	event coordinator.MetadataWritten
}

func (m stopWritten) apply(l *jobLoop) {
	c := &l.calling
	c.open--
	if l.cfg.Store == nil || c.ledger.End() != nil { // it has ended otherwise meanwhile
		l.feed(m.event)
		return
	}
	c.ledger.Stop(m.dir)
	c.stop = &m
}

// recordWritten: a record is durable.
type recordWritten struct{ write ha.Write }

func (m recordWritten) apply(l *jobLoop) {
	l.calling.ledger.Written(m.write)
	l.changed = true
	if m.write.Plan != nil && l.calling.ledger.PlanRecorded() {
		l.tellRescale(rescale.Recorded{})
	}
	if m.write.End != nil {
		l.feed(coordinator.Closed{DeleteAll: m.write.End.DeleteAll})
	}
}

// retry calls f until it succeeds; false: ctx has ended before. What is begun when ctx ends is brought to its end.
func (l *jobLoop) retry(ctx context.Context, what string, f func(context.Context) error) bool {
	for pause := retryMin; ; pause = min(2*pause, retryMax) {
		err := limited(ctx, f)
		if err == nil {
			return true
		}
		l.log.Warn(what, zap.Error(err), zap.Duration("again in", pause))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
	}
}

func limited(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storageTimeout)
	defer cancel()
	return f(ctx)
}

// sweepJobDir deletes what a job that has ended leaves behind. Without a store the coordinator has deleted what it knew; with one, the
// directory says what was left by earlier job masters.
func (l *jobLoop) sweepJobDir(ctx context.Context) error {
	files, end := &l.cfg.Archive, l.calling.ledger.End()
	if l.cfg.Store == nil {
		return files.CleanUpShared(ctx, l.id)
	}
	if o := l.restored; end.DeleteAll && o != nil && o.Claimed {
		if err := files.DiscardClaimed(ctx, o.Dir); err != nil { // somebody may have taken the place away that it was in
			l.log.Warn("delete the checkpoint that the job was started from", zap.String("dir", o.Dir), zap.Error(err))
		}
	}
	if err := files.CleanUp(ctx, l.id, !end.DeleteAll); err != nil {
		return err
	}
	clean := *end
	clean.Clean = true
	return l.cfg.Store.SetEnd(ctx, l.id, clean)
}
