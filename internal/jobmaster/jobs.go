package jobmaster

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/inbox"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/location"
)

// List implements gateway.Jobs, in order of submission.
func (m *JobMaster) List(context.Context) ([]gateway.JobStatus, error) {
	out := []gateway.JobStatus{}
	for _, l := range m.loops() {
		out = append(out, l.board.Read().Status)
	}
	return out, nil
}

// Get implements gateway.Jobs.
func (m *JobMaster) Get(_ context.Context, id job.ID) (gateway.JobStatus, error) {
	l := m.loop(id)
	if l == nil {
		return gateway.JobStatus{}, gateway.JobNotFound(id)
	}
	return l.board.Read().Status, nil
}

// Watch implements gateway.Jobs. When it returns without an error the job's deletions are done, except those that must wait for metadata
// that is still being written. A slow f misses versions in between, but no event that is still remembered.
func (m *JobMaster) Watch(ctx context.Context, id job.ID, f func(gateway.JobStatus, []gateway.JobEvent) error) error {
	l := m.loop(id)
	if l == nil {
		return gateway.JobNotFound(id)
	}
	seen := 0
	for {
		g := l.board.Look(seen)
		seen = g.Noted
		if err := f(g.View.Status, g.Events); err != nil {
			return err
		}
		if g.Complete {
			if !g.View.Status.State.Terminal() {
				return gateway.ShuttingDown()
			}
			return nil
		}
		select {
		case <-g.Changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Cancel implements gateway.Jobs. For a job that has ended it gives the state in which it did. As with Watch, the job's deletions are done
// when it returns.
func (m *JobMaster) Cancel(ctx context.Context, id job.ID) (job.State, error) {
	l := m.loop(id)
	if l == nil {
		return 0, gateway.JobNotFound(id)
	}
	if err := l.inbox.Offer(ctx, cancelRequest{}); err != nil && !errors.Is(err, inbox.ErrEnded) {
		return 0, err
	}
	var state job.State
	err := m.Watch(ctx, id, func(s gateway.JobStatus, _ []gateway.JobEvent) error {
		state = s.State
		return nil
	})
	return state, err
}

// TriggerCheckpoint implements gateway.Jobs.
func (m *JobMaster) TriggerCheckpoint(ctx context.Context, id job.ID, epoch job.LeaderEpoch) (gateway.CheckpointResult, error) {
	return m.trigger(ctx, id, epoch, triggerRequest{kind: checkpoint.Checkpoint})
}

// TriggerSavepoint implements gateway.Jobs.
func (m *JobMaster) TriggerSavepoint(ctx context.Context, r gateway.TriggerSavepoint) (gateway.CheckpointResult, error) {
	dir, err := m.savepointDir(r.Job, r.Directory)
	if err != nil {
		return gateway.CheckpointResult{}, err
	}
	return m.trigger(ctx, r.Job, r.Epoch, triggerRequest{kind: checkpoint.Savepoint, directory: dir, format: r.Format})
}

// savepointDir is where a savepoint goes; empty: nobody has said where.
func (m *JobMaster) savepointDir(id job.ID, dir string) (string, error) {
	if dir == "" {
		dir = m.cfg.SavepointDir
	}
	if dir != "" && !location.Is(dir) {
		return "", &gateway.Error{
			Code: gateway.InvalidArgument, Reason: gateway.ReasonBadParameter, Job: id,
			Message: fmt.Sprintf("savepoint directory %q is relative", dir), Remedy: "give an absolute path or a URL that the job master can reach",
		}
	}
	return dir, nil
}

func (m *JobMaster) trigger(ctx context.Context, id job.ID, epoch job.LeaderEpoch, r triggerRequest) (gateway.CheckpointResult, error) {
	if epoch != 0 && epoch != m.cfg.Epoch {
		return gateway.CheckpointResult{}, gateway.StaleEpoch(epoch, m.cfg.Epoch)
	}
	l := m.loop(id)
	if l == nil {
		return gateway.CheckpointResult{}, gateway.JobNotFound(id)
	}
	got, err := inbox.Ask(ctx, l.inbox, func(answer chan<- coordinator.Reply) message {
		r.answer = answer
		return r
	})
	switch {
	case errors.Is(err, inbox.ErrEnded):
		state := l.board.Read().Status.State
		if !state.Terminal() {
			return gateway.CheckpointResult{}, gateway.ShuttingDown()
		}
		return gateway.CheckpointResult{}, &gateway.Error{
			Code: gateway.FailedPrecondition, Reason: gateway.ReasonJobTerminal, Job: id,
			Message: fmt.Sprintf("job %s is %s and takes no checkpoints any more", id, state), Remedy: "weir checkpoint list shows those that it took",
		}
	case err != nil:
		return gateway.CheckpointResult{}, err
	case got.Reason != checkpoint.None:
		return gateway.CheckpointResult{}, triggerError(id, r.kind, got)
	}
	return gateway.CheckpointResult{ID: got.ID, Path: l.location(got.Dir), Duration: got.Duration}, nil
}

// triggerError says why a requested checkpoint did not complete.
func triggerError(id job.ID, kind checkpoint.Kind, r coordinator.Reply) error {
	e := &gateway.Error{Code: gateway.Aborted, Reason: gateway.ReasonCheckpointFailed, Job: id, Checkpoint: r.ID, Remedy: "try again"}
	switch r.Reason {
	case checkpoint.NotAllRunning, checkpoint.Shutdown, checkpoint.JobStopping:
		e.Code, e.Remedy = gateway.FailedPrecondition, "GetJob shows the state of the job and its tasks"
	case checkpoint.TooManyRequests:
		e.Code = gateway.ResourceExhausted
	case checkpoint.SavepointDirNeeded:
		e.Code, e.Reason = gateway.InvalidArgument, gateway.ReasonBadParameter
		e.Remedy = "name a directory in the request, or start the job master with --savepoint-dir"
	default: // it was tried, and may come about the next time
	}
	if r.ID == 0 {
		e.Message = fmt.Sprintf("no %s of job %s was taken: %s: %s", kind, id, r.Reason, r.Message)
	} else {
		e.Message = fmt.Sprintf("%s %d of job %s did not complete: %s: %s", kind, r.ID, id, r.Reason, r.Message)
	}
	return e
}

// Checkpoints implements gateway.Jobs.
func (m *JobMaster) Checkpoints(_ context.Context, id job.ID) (gateway.CheckpointHistory, error) {
	l := m.loop(id)
	if l == nil {
		return gateway.CheckpointHistory{}, gateway.JobNotFound(id)
	}
	return l.board.Read().History(l.location), nil
}

// Checkpoint implements gateway.Jobs.
func (m *JobMaster) Checkpoint(_ context.Context, id job.ID, n checkpoint.ID) (gateway.CheckpointDetail, error) {
	l := m.loop(id)
	if l == nil {
		return gateway.CheckpointDetail{}, gateway.JobNotFound(id)
	}
	v := l.board.Read()
	for _, s := range v.Checkpoints {
		if s.ID != n {
			continue
		}
		return v.Detail(s, l.location), nil
	}
	return gateway.CheckpointDetail{}, &gateway.Error{
		Code: gateway.NotFound, Reason: gateway.ReasonCheckpointUnknown, Job: id, Checkpoint: n,
		Message: fmt.Sprintf("job %s has no checkpoint %d that is remembered", id, n), Remedy: "weir checkpoint list, or ListCheckpoints, lists them",
	}
}
