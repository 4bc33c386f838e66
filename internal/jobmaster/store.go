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
)

// JobStore keeps the records of jobs for the next job master. What has returned without an error is durable; after an error it may be.
type JobStore interface {
	CreateJob(ctx context.Context, j ha.Job) error
	SetProgress(ctx context.Context, id job.ID, p ha.Progress) error
	SetEnd(ctx context.Context, id job.ID, e ha.End) error
	RemoveJob(ctx context.Context, id job.ID) error
}

const reasonNotRecorded = "JOB_NOT_RECORDED"

// records is what the loop knows of the job's records in the store. They are written beside the loop, one at a time; what must not happen
// before a record is durable waits in the loop until the write has answered.
type records struct {
	durable ha.Progress
	wanted  ha.Progress // written when it is due
	writing bool
	lastID  checkpoint.ID              // the highest that may have been drawn
	held    []coordinator.InitLocation // of checkpoints whose ids are not reserved
	end     *ha.End                    // nil: the job has not ended
	ended   bool                       // end is durable
}

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

// reserveAttempt has the number of an execution recorded; attemptRecorded says that tasks with it may be deployed. A job master that recovers
// the job starts above it, so no two tasks ever have the same attempt id.
func (l *jobLoop) reserveAttempt(n int) {
	r := &l.calling.records
	r.wanted.Attempt = max(r.wanted.Attempt, n)
	r.wanted.Reserved = max(r.wanted.Reserved, r.lastID+idBlock)
}

func (l *jobLoop) attemptRecorded() bool {
	r := &l.calling.records
	return l.cfg.Store == nil || r.durable.Attempt >= r.wanted.Attempt
}

// reserveID reports that the id of a checkpoint is reserved. If not it is held until it is; but ids are reserved in blocks and well ahead.
func (l *jobLoop) reserveID(e coordinator.InitLocation) bool {
	r := &l.calling.records
	r.lastID = max(r.lastID, e.ID)
	if r.lastID+idBlock/2 > r.durable.Reserved {
		r.wanted.Reserved = max(r.wanted.Reserved, r.lastID+idBlock)
	}
	if l.cfg.Store == nil || e.ID <= r.durable.Reserved {
		return true
	}
	r.held = append(r.held, e)
	return false
}

// completed notes that the job has a checkpoint: from now on it never starts without one. Checkpoints that an earlier job master completed
// make room for it.
func (l *jobLoop) completed(ctx context.Context, e coordinator.Completed) {
	if e.Kind != checkpoint.Checkpoint {
		return
	}
	r := &l.calling.records
	r.wanted.Completed = max(r.wanted.Completed, e.ID)
	l.subsumeOlder(ctx)
}

// recordEnd has the end of the job recorded. Only then are its checkpoints deleted, and only then does anybody hear that it is over: a job
// that was said to have ended never runs again.
func (l *jobLoop) recordEnd(end ha.End) {
	l.calling.recovery.end()
	counts := l.coord.Counts()
	end.Restarts, end.Completed, end.Failed = l.sched.Restarts(), int(counts.Completed), int(counts.Failed)
	end.At = end.At.Round(0)
	l.calling.records.end = &end
	if l.cfg.Store == nil {
		l.feed(coordinator.Closed{DeleteAll: end.DeleteAll})
	}
}

func (l *jobLoop) endRecorded() bool { return l.cfg.Store == nil || l.calling.records.ended }

// record writes what is due, and lets go what has waited for it.
func (l *jobLoop) record(ctx context.Context) {
	r := &l.calling.records
	if l.cfg.Store == nil {
		return
	}
	r.held = slices.DeleteFunc(r.held, func(e coordinator.InitLocation) bool {
		reserved := e.ID <= r.durable.Reserved
		if reserved {
			l.initLocation(ctx, e)
		}
		return reserved
	})
	d, w := r.durable, r.wanted
	switch {
	case r.writing:
	case r.end != nil && !r.ended:
		end := *r.end
		l.write(ctx, func(ctx context.Context) error { return l.cfg.Store.SetEnd(ctx, l.id, end) }, endWritten{})
	case w.Attempt > d.Attempt || w.Reserved > d.Reserved || d.Completed == 0 && w.Completed > 0:
		l.write(ctx, func(ctx context.Context) error { return l.cfg.Store.SetProgress(ctx, l.id, w) }, progressWritten{w})
	}
}

// write makes a write of a record beside the loop, until it succeeds or ctx ends.
func (l *jobLoop) write(ctx context.Context, f func(context.Context) error, done message) {
	l.calling.records.writing = true
	l.work.Go(func() {
		if l.retry(ctx, "write a record of the job", f) {
			l.inbox.post(done)
		}
	})
}

// progressWritten: a progress is durable.
type progressWritten struct{ progress ha.Progress }

func (m progressWritten) apply(l *jobLoop) {
	l.calling.records.writing = false
	l.calling.records.durable = m.progress
	l.changed = true
}

// endWritten: the end of the job is durable.
type endWritten struct{}

func (endWritten) apply(l *jobLoop) {
	r := &l.calling.records
	r.writing, r.ended = false, true
	l.feed(coordinator.Closed{DeleteAll: r.end.DeleteAll})
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
	dir, end := checkpoint.JobDir(l.id), l.calling.records.end
	files, err := l.cfg.Storage.Files(ctx, dir)
	if err != nil {
		return err
	}
	if l.cfg.Store != nil {
		found := findDirs(l.id, files)
		gone := found.unfinished
		if end.DeleteAll {
			gone = slices.Concat(found.whole, gone)
		}
		for _, id := range gone {
			if err := l.discardDir(ctx, checkpoint.Dir(l.id, id)); err != nil {
				return err
			}
		}
		if o := l.restored; end.DeleteAll && o != nil && o.Claimed {
			if err := l.discardDir(ctx, o.Dir); err != nil { // somebody may have taken the place away that it was in
				l.log.Warn("delete the checkpoint that the job was started from", zap.String("dir", o.Dir), zap.Error(err))
			}
		}
		if files, err = l.cfg.Storage.Files(ctx, dir); err != nil {
			return err
		}
	}
	if len(files) == 0 {
		if err := l.cfg.Storage.RemoveAll(ctx, dir); err != nil {
			return err
		}
	}
	if l.cfg.Store == nil {
		return nil
	}
	clean := *end
	clean.Clean = true
	return l.cfg.Store.SetEnd(ctx, l.id, clean)
}
