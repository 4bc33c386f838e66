package taskexecutor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/localstate"
	"github.com/weirstream/weir/internal/task"
)

// TriggerCheckpoint implements gateway.TaskExecutor. A task that does not run yet declines. One that has finished, or takes no mail any more because
// it is about to, says nothing: the report of it is under way, and tells the job master that there is nothing to wait for.
func (e *Executor) TriggerCheckpoint(ctx context.Context, r gateway.TriggerCheckpoint) ([]job.AttemptID, error) {
	if _, err := e.current(ctx, r.Epoch); err != nil {
		return nil, err
	}
	cp := element.Checkpoint{ID: int64(r.ID), Timestamp: r.Timestamp.UnixMilli(), Dir: r.Dir, Final: r.Final, Stop: r.Stop, Base: int64(r.Base), Format: r.Format}
	unknown := e.each(r.Attempts, func(t *runningTask) {
		if s := t.stateNow(); s != job.TaskRunning && s != job.TaskFinished {
			t.Decline(t.ctx, r.ID, checkpoint.TaskNotReady, "the task is "+s.String())
			return
		}
		if err := t.mail.Post(task.Trigger{Checkpoint: cp}); err != nil && !errors.Is(err, task.ErrMailboxClosed) {
			t.Decline(t.ctx, r.ID, checkpoint.TaskNotReady, err.Error())
		}
	})
	return slices.DeleteFunc(unknown, e.hasFinished), nil
}

// hasFinished reports whether a task is FINISHED and its report still under way.
func (e *Executor) hasFinished(a job.AttemptID) bool {
	e.mu.Lock()
	t := e.mu.tasks[a]
	e.mu.Unlock()
	return t != nil && t.stateNow() == job.TaskFinished
}

// NotifyCheckpointComplete implements gateway.TaskExecutor.
func (e *Executor) NotifyCheckpointComplete(ctx context.Context, r gateway.NotifyCheckpointComplete) ([]job.AttemptID, error) {
	if _, err := e.current(ctx, r.Epoch); err != nil {
		return nil, err
	}
	unknown, err := e.notify(ctx, r.Epoch, r.Attempts, task.Completed{ID: r.ID})
	e.copiesOf(r.Attempts, func(s *localstate.Store, j job.ID) { s.Completed(j, r.ID) })
	return unknown, err
}

// NotifyCheckpointAborted implements gateway.TaskExecutor.
func (e *Executor) NotifyCheckpointAborted(ctx context.Context, r gateway.NotifyCheckpointAborted) ([]job.AttemptID, error) {
	if _, err := e.current(ctx, r.Epoch); err != nil {
		return nil, err
	}
	unknown, err := e.notify(ctx, r.Epoch, r.Attempts, task.Aborted{ID: r.ID, Latest: r.LatestCompleted})
	e.copiesOf(r.Attempts, func(s *localstate.Store, j job.ID) {
		s.Completed(j, r.LatestCompleted)
		s.Aborted(j, r.ID)
	})
	return unknown, err
}

// notify posts an event to tasks. When a mailbox is full the job master hears so: it tells the tasks again.
func (e *Executor) notify(ctx context.Context, epoch job.LeaderEpoch, attempts []job.AttemptID, ev task.Event) ([]job.AttemptID, error) {
	if _, err := e.current(ctx, epoch); err != nil {
		return nil, err
	}
	var full error
	unknown := e.each(attempts, func(t *runningTask) {
		if err := t.mail.Post(ev); errors.Is(err, task.ErrMailboxFull) { // else it has ended
			full = &gateway.Error{Code: gateway.Unavailable, Message: fmt.Sprintf("task %s: %s", t.attempt, err), Remedy: "send it again"}
		}
	})
	return unknown, full
}
