package jobmaster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/archive"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rescale"
	"github.com/weirstream/weir/internal/scheduler"
)

var errTooManyCalls = errors.New("too many calls wait for the executor")

// coordinate does one effect of the checkpoint coordinator.
func (l *jobLoop) coordinate(ctx context.Context, e coordinator.Effect) {
	switch e := e.(type) {
	case coordinator.InitLocation:
		if l.reserveID(e) {
			l.initLocation(ctx, e)
		}
	case coordinator.CallHooks:
		l.triggerHooks(ctx, e)
	case coordinator.SendTrigger:
		l.log.Debug(e.String())
		l.sendTrigger(e)
	case coordinator.AckReply:
		answer := l.calls.acks[e.Request]
		delete(l.calls.acks, e.Request)
		l.reply(func() { answer <- e.Verdict })
	case coordinator.WriteMetadata:
		l.writeMetadata(ctx, e)
	case coordinator.SendNotifyComplete:
		l.notifyComplete(e)
	case coordinator.SendNotifyAborted:
		l.notifyAborted(e)
	case coordinator.Discard:
		l.discard(ctx, e)
	case coordinator.RemoveShared:
		l.removeShared(ctx, e)
	case coordinator.Reply:
		if s := &l.running.rescaling; e.Request == s.checkpoint {
			s.checkpoint = 0
			l.feed(rescale.Checkpointed{ID: e.ID, Duration: e.Duration, Problem: problemOf(e)})
			return
		}
		answer := l.calls.trigger[e.Request]
		delete(l.calls.trigger, e.Request)
		l.reply(func() { answer <- e })
	case coordinator.Completed:
		l.note(e, zap.Int64("checkpoint", int64(e.ID)))
		l.feed(scheduler.CheckpointCompleted{})
		l.completed(e)
	case coordinator.Aborted:
		l.note(e, zap.Int64("checkpoint", int64(e.ID)))
	case coordinator.Degraded, coordinator.Recovered:
		l.note(e)
	case coordinator.FailJob:
		l.note(e)
		l.feed(scheduler.JobFailed{Failure: e.Failure, Attempt: e.Attempt})
	case coordinator.CancelJob:
		l.end.savepoint = e.Dir
		l.feed(scheduler.CancelRequested{})
	default:
		panic(fmt.Sprintf("jobmaster: unknown effect %T", e))
	}
}

// problemOf is why a checkpoint did not complete; empty: it did.
func problemOf(r coordinator.Reply) string {
	if r.Reason == checkpoint.None {
		return ""
	}
	return fmt.Sprintf("%s: %s", r.Reason, r.Message)
}

// store makes a storage call beside the loop; its answer comes back as an event. It outlives ctx: what was begun when the job master
// shuts down is brought to its end, since nobody would know how far it came.
func (l *jobLoop) store(ctx context.Context, f func(ctx context.Context) coordinator.Event) {
	l.beside(ctx, func(ctx context.Context) message { return stored{f(ctx)} })
}

func (l *jobLoop) beside(ctx context.Context, f func(ctx context.Context) message) {
	l.calling.open++
	ctx = context.WithoutCancel(ctx)
	l.work.Go(func() {
		l.calling.tokens <- struct{}{}
		defer func() { <-l.calling.tokens }()
		ctx, cancel := context.WithTimeout(ctx, storageTimeout)
		defer cancel()
		l.inbox.Post(f(ctx))
	})
}

// initLocation makes the directory into which the tasks write.
func (l *jobLoop) initLocation(ctx context.Context, e coordinator.InitLocation) {
	l.store(ctx, func(ctx context.Context) coordinator.Event {
		out := coordinator.LocationReady{ID: e.ID, Dir: checkpoint.Dir(l.id, e.ID)}
		var err error
		if e.Kind == checkpoint.Savepoint {
			out.Dir, err = l.cfg.Archive.MakeDir(ctx, e.Directory, checkpoint.SavepointDir(l.id, string(l.cfg.NewID())))
		} else {
			err = l.cfg.Archive.Root.MkdirAll(ctx, out.Dir)
		}
		out.Err = text(err)
		return out
	})
}

func (l *jobLoop) writeMetadata(ctx context.Context, e coordinator.WriteMetadata) {
	l.beside(ctx, func(ctx context.Context) message {
		err := l.cfg.Archive.Write(ctx, e.Dir, e.Metadata)
		written := coordinator.MetadataWritten{ID: e.ID, Outcome: outcomeOf(err), Err: text(err)}
		if e.Stops && written.Outcome == coordinator.Written {
			return stopWritten{dir: e.Dir, event: written}
		}
		return stored{written}
	})
}

// outcomeOf tells the three cases apart that matter to the files of a checkpoint: see archive.ErrUncertain.
func outcomeOf(err error) coordinator.WriteOutcome {
	switch {
	case err == nil:
		return coordinator.Written
	case errors.Is(err, archive.ErrUncertain):
		return coordinator.Uncertain
	}
	return coordinator.NotWritten
}

func (l *jobLoop) discard(ctx context.Context, e coordinator.Discard) {
	l.store(ctx, func(ctx context.Context) coordinator.Event {
		discard := l.cfg.Archive.Discard
		if e.Claimed {
			discard = l.cfg.Archive.DiscardClaimed
		}
		err := discard(ctx, e.Dir)
		if err != nil {
			l.log.Warn("delete checkpoint", zap.Int64("checkpoint", int64(e.ID)), zap.String("dir", e.Dir), zap.Error(err))
		}
		return coordinator.Discarded{ID: e.ID, Err: text(err)}
	})
}

// removeShared deletes what no checkpoint refers to any more.
func (l *jobLoop) removeShared(ctx context.Context, e coordinator.RemoveShared) {
	l.store(ctx, func(ctx context.Context) coordinator.Event {
		err := l.cfg.Archive.RemoveShared(ctx, checkpoint.JobDir(l.id), e.Files)
		if err != nil {
			l.log.Warn("delete shared files", zap.Int("files", len(e.Files)), zap.Error(err))
		}
		return coordinator.SharedRemoved{Err: text(err)}
	})
}

// removeJobDir removes the directory of a job that has left nothing in it.
func (l *jobLoop) removeJobDir(ctx context.Context) {
	l.store(ctx, func(ctx context.Context) coordinator.Event {
		dir := checkpoint.JobDir(l.id)
		if err := l.sweepJobDir(ctx); err != nil {
			l.log.Warn("remove the job's checkpoint directory", zap.String("dir", dir), zap.Error(err))
		}
		return nil
	})
}

// sendTrigger tells the executors of the sources to inject the barrier.
func (l *jobLoop) sendTrigger(e coordinator.SendTrigger) {
	l.perExecutor(e.Attempts, func(executor job.ExecutorID, attempts []job.AttemptID) {
		failed := func(a job.AttemptID, why string) coordinator.Event {
			return coordinator.TriggerFailed{ID: e.ID, Attempt: a, Err: "executor " + string(executor) + ": " + why}
		}
		r := gateway.TriggerCheckpoint{
			Epoch: l.cfg.Epoch, ID: e.ID, Timestamp: e.Timestamp, Dir: e.Dir, Attempts: attempts, Final: e.Final, Stop: e.Stop,
			Base: e.Base, Format: e.Format,
		}
		sent := l.send(executor, func(ctx context.Context, x gateway.TaskExecutor) {
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			unknown, err := x.TriggerCheckpoint(ctx, r)
			if err != nil {
				l.inbox.Post(fed{failed(attempts[0], err.Error())})
			}
			for _, a := range unknown {
				l.inbox.Post(fed{failed(a, "it does not run this attempt")})
			}
		})
		if !sent {
			l.feed(failed(attempts[0], errTooManyCalls.Error()))
		}
	})
}

// send queues a call if the executor is there; false: it is not, or too many calls wait.
func (l *jobLoop) send(executor job.ExecutorID, c call) bool {
	s := l.running.senders[executor]
	return s != nil && s.send(c)
}

// notifyComplete tells tasks that a checkpoint is durable. Those that the executor has told have confirmed it; the coordinator tells the
// others again.
func (l *jobLoop) notifyComplete(e coordinator.SendNotifyComplete) {
	l.perExecutor(e.Attempts, func(executor job.ExecutorID, attempts []job.AttemptID) {
		r := gateway.NotifyCheckpointComplete{Epoch: l.cfg.Epoch, ID: e.ID, Attempts: attempts}
		l.send(executor, func(ctx context.Context, x gateway.TaskExecutor) {
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			unknown, err := x.NotifyCheckpointComplete(ctx, r)
			if err != nil {
				l.log.Warn("notify checkpoint complete", zap.Int64("checkpoint", int64(e.ID)), zap.String("executor", string(executor)), zap.Error(err))
				return
			}
			for _, a := range attempts {
				if !slices.Contains(unknown, a) {
					l.inbox.Post(fed{coordinator.NotifyConfirmed{Attempt: a, ID: e.ID}})
				}
			}
		})
	})
}

// notifyAborted tells tasks that a checkpoint will not come. One that misses it learns so from the next barrier, or is told again.
func (l *jobLoop) notifyAborted(e coordinator.SendNotifyAborted) {
	l.perExecutor(e.Attempts, func(executor job.ExecutorID, attempts []job.AttemptID) {
		r := gateway.NotifyCheckpointAborted{Epoch: l.cfg.Epoch, ID: e.ID, LatestCompleted: e.LatestCompleted, Attempts: attempts}
		l.send(executor, func(ctx context.Context, x gateway.TaskExecutor) {
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			if _, err := x.NotifyCheckpointAborted(ctx, r); err != nil {
				l.log.Warn("notify checkpoint aborted", zap.Int64("checkpoint", int64(e.ID)), zap.String("executor", string(executor)), zap.Error(err))
				return
			}
			for _, a := range attempts { // one that it does not run has ended, and needs no news
				l.inbox.Post(fed{coordinator.AbortConfirmed{Attempt: a, ID: e.ID}})
			}
		})
	})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
