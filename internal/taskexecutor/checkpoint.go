package taskexecutor

import (
	"context"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/task"
)

// TriggerCheckpoint implements gateway.TaskExecutor. A task that does not run yet declines. One that has finished says nothing: the report of it
// is under way, and tells the job master that there is nothing to wait for.
func (e *Executor) TriggerCheckpoint(ctx context.Context, r gateway.TriggerCheckpoint) ([]job.AttemptID, error) {
	if _, err := e.current(ctx, r.Epoch); err != nil {
		return nil, err
	}
	cp := element.Checkpoint{ID: int64(r.ID), Timestamp: r.Timestamp.UnixMilli(), Dir: r.Dir, Final: r.Final}
	return e.each(r.Attempts, func(t *runningTask) {
		s := t.stateNow()
		if s == job.TaskFinished {
			return
		}
		if s != job.TaskRunning {
			t.Decline(t.ctx, r.ID, checkpoint.TaskNotReady, "the task is "+s.String())
			return
		}
		if err := t.mail.Post(task.Trigger{Checkpoint: cp}); err != nil {
			t.Decline(t.ctx, r.ID, checkpoint.TaskNotReady, err.Error())
		}
	}), nil
}

// NotifyCheckpointComplete implements gateway.TaskExecutor.
func (e *Executor) NotifyCheckpointComplete(ctx context.Context, r gateway.NotifyCheckpointComplete) ([]job.AttemptID, error) {
	return e.notify(ctx, r.Epoch, r.Attempts, task.Completed{ID: r.ID})
}

// NotifyCheckpointAborted implements gateway.TaskExecutor.
func (e *Executor) NotifyCheckpointAborted(ctx context.Context, r gateway.NotifyCheckpointAborted) ([]job.AttemptID, error) {
	return e.notify(ctx, r.Epoch, r.Attempts, task.Aborted{ID: r.ID, Latest: r.LatestCompleted})
}

// notify posts an event to tasks. A full mailbox is no loss: heartbeats repeat what was completed, and a checkpoint that was aborted is overtaken by the
// next one.
func (e *Executor) notify(ctx context.Context, epoch job.LeaderEpoch, attempts []job.AttemptID, ev task.Event) ([]job.AttemptID, error) {
	if _, err := e.current(ctx, epoch); err != nil {
		return nil, err
	}
	return e.each(attempts, func(t *runningTask) {
		if err := t.mail.Post(ev); err != nil {
			t.log.Warn("notification not taken", zap.Error(err))
		}
	}), nil
}
