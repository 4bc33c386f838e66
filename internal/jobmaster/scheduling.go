package jobmaster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/ha"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/scheduler"
	"github.com/weirstream/weir/internal/slotpool"
)

// schedule does one effect of the scheduler.
func (l *jobLoop) schedule(ctx context.Context, e scheduler.Effect) {
	switch e := e.(type) {
	case scheduler.RequestSlots:
		l.running.request++
		l.granted(l.registry.Request(slotpool.Request{
			Job: l.id, Name: l.name, Order: l.order, Number: l.running.request, Count: e.Count, Prefer: maps.Clone(l.running.used),
		}))
	case scheduler.ReleaseSlots:
		l.running.request++
		l.running.deploying = nil
		l.stopSenders()
		l.registry.Release(l.id)
	case scheduler.Deploy:
		l.prepare(ctx, e.Placements)
	case scheduler.CancelTasks:
		l.cancelTasks(e.Placements)
	case scheduler.DropExecutor:
		l.note(e)
		l.dropExecutor(e)
	case scheduler.JobStatusChanged:
		l.note(e)
		l.statusChanged(e)
	case scheduler.TasksRunning:
		l.note(e)
		l.running.all = true
		l.feed(coordinator.TasksRunning{Tasks: l.coordinated(e.Placements), Random: l.cfg.Random()})
	case scheduler.TasksStopped:
		reason := checkpoint.Suspended
		if e.Failure.Class == job.FailureTask {
			reason = checkpoint.TaskFailure
		}
		l.running.all = false
		l.feed(coordinator.TasksStopped{Reason: reason})
	case scheduler.TaskFinished:
		l.log.Info(e.String())
		l.feed(coordinator.TaskFinished{Attempt: e.Attempt})
	case scheduler.EndOfDataReached:
		l.note(e)
		l.feed(coordinator.EndOfDataReached{})
	case scheduler.Waiting:
		l.note(e)
	default:
		panic(fmt.Sprintf("jobmaster: unknown effect %T", e))
	}
}

func (l *jobLoop) coordinated(placements []job.Placement) []coordinator.Task {
	out := make([]coordinator.Task, len(placements))
	for i, p := range placements {
		out[i] = coordinator.Task{Attempt: p.Attempt, Source: l.graph.IsSource(p.Attempt.Task.Vertex), Behind: l.running.behind[p.Attempt]}
	}
	return out
}

// granted takes news of a request for slots. What answers a request that was withdrawn is of no interest: its slots were given back then.
func (l *jobLoop) granted(a slotpool.Allocation) {
	if a.Number != l.running.request {
		return
	}
	if a.Slots == nil {
		l.feed(scheduler.SlotsShort{Required: a.Short.Required, Available: a.Short.Available, Message: a.Short.Message})
		return
	}
	l.running.sessions = a.Sessions
	l.feed(scheduler.SlotsAllocated{Slots: a.Slots})
}

func (l *jobLoop) statusChanged(e scheduler.JobStatusChanged) {
	if !e.To.Terminal() {
		return
	}
	l.end.at = time.Now()
	l.recordEnd(ha.End{
		State: e.To, Failure: e.Failure.String(), At: l.end.at, DeleteAll: l.options.Checkpoint.DeletedAfter(e.To),
	})
}

// prepare begins an execution. The tasks are sent when the coordinator has settled; see deploy.
func (l *jobLoop) prepare(ctx context.Context, placements []job.Placement) {
	l.stopSenders()
	r := &l.running
	r.deploying = placements
	l.calling.ledger.ReserveAttempt(placements[0].Attempt.Attempt)
	r.placed, r.counts, r.failing = map[job.AttemptID]job.ExecutorID{}, map[job.AttemptID]recordCounts{}, map[job.AttemptID]bool{}
	r.behind = map[job.AttemptID]bool{}
	r.senders, r.used = map[job.ExecutorID]*sender{}, map[job.ExecutorID]bool{}
	for _, p := range placements {
		r.placed[p.Attempt] = p.Executor
		r.used[p.Executor] = true
		if r.senders[p.Executor] == nil {
			r.senders[p.Executor] = l.startSender(ctx, r.sessions[p.Executor])
		}
	}
}

func (l *jobLoop) stopSenders() {
	for _, s := range l.running.senders {
		s.stop()
	}
	l.running.senders = nil
}

// deploy sends the tasks out, once no checkpoint is FINALIZING: one that becomes durable now is what they must start from.
func (l *jobLoop) deploy() {
	placements := l.running.deploying
	if placements == nil || !l.coord.Settled() || !l.attemptRecorded() {
		return
	}
	l.running.deploying = nil
	from := l.coord.Latest()
	tasks, err := gateway.Deployments(l.graph, placements, from)
	if err != nil {
		l.feed(scheduler.JobFailed{Failure: job.Failure{Class: job.FailurePermanent, Message: "restore: " + err.Error()}})
		l.feed(scheduler.TasksUnknown{Attempts: attemptsOf(placements)}) // they were never sent
		return
	}
	l.running.restored = 0
	if from != nil {
		l.running.restored = from.Metadata.ID
		restored := coordinator.Restored{ID: from.Metadata.ID, Kind: from.Metadata.Kind, Dir: from.Dir}
		l.note(restored, zap.Int64("checkpoint", int64(restored.ID)))
		l.feed(restored)
	}
	for _, executor := range slices.Sorted(maps.Keys(tasks)) {
		request := gateway.DeployTasks{
			Epoch: l.cfg.Epoch, Job: l.id, Graph: l.graph, Options: l.options, Placements: placements, Tasks: tasks[executor],
		}
		l.log.Info("deploys", zap.String("executor", string(executor)), zap.Int("tasks", len(request.Tasks)),
			zap.Int("attempt", request.Tasks[0].Attempt.Attempt))
		l.sendDeploy(executor, request)
	}
}

func (l *jobLoop) sendDeploy(executor job.ExecutorID, r gateway.DeployTasks) {
	failed := func(err error) scheduler.Event {
		return scheduler.DeployFailed{Executor: executor, Attempt: r.Tasks[0].Attempt.Attempt, Failure: deployFailure(err)}
	}
	sent := l.running.senders[executor].send(func(ctx context.Context, e gateway.TaskExecutor) {
		ctx, cancel := context.WithTimeout(ctx, deployTimeout)
		defer cancel()
		if err := e.DeployTasks(ctx, r); err != nil {
			l.inbox.post(fed{failed(err)})
		}
	})
	if !sent {
		l.feed(failed(errTooManyCalls))
	}
}

// deployFailure classifies the refusal of a deployment: an executor that runs another build of the job, or cannot run it at all, will
// refuse it again.
func deployFailure(err error) job.Failure {
	class := job.FailureInfrastructure
	if gateway.ReasonOf(err) == gateway.ReasonFingerprint || gateway.CodeOf(err) == gateway.InvalidArgument {
		class = job.FailurePermanent
	}
	return job.Failure{Class: class, Message: err.Error()}
}

// cancelTasks tells executors to end attempts. Attempts that were not sent yet are not there to be canceled, and never will be.
func (l *jobLoop) cancelTasks(placements []job.Placement) {
	if l.running.deploying != nil {
		l.running.deploying = nil
		l.feed(scheduler.TasksUnknown{Attempts: attemptsOf(placements)})
		return
	}
	l.perExecutor(attemptsOf(placements), func(executor job.ExecutorID, attempts []job.AttemptID) {
		s := l.running.senders[executor]
		if s == nil || s.session.Over() {
			l.feed(scheduler.ExecutorLost{Executor: executor, Message: "it is not registered any more"})
			return
		}
		s.send(func(ctx context.Context, e gateway.TaskExecutor) { // too many calls: the scheduler repeats it
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			unknown, err := e.CancelTasks(ctx, gateway.CancelTasks{Epoch: l.cfg.Epoch, Attempts: attempts})
			if err != nil {
				l.log.Warn("cancel tasks", zap.String("executor", string(executor)), zap.Error(err))
			} else if len(unknown) > 0 {
				l.inbox.post(fed{scheduler.TasksUnknown{Attempts: unknown}})
			}
		})
	})
}

// dropExecutor ends the session of an executor that does not end its attempts: whatever it runs, it has to register anew.
func (l *jobLoop) dropExecutor(e scheduler.DropExecutor) {
	if s := l.running.senders[e.Executor]; s != nil {
		l.registry.Drop(s.session, &gateway.Error{
			Code: gateway.Aborted, Reason: gateway.ReasonReplaced, Message: e.Message, Remedy: "the executor must end its tasks and register again",
		})
	}
}

// perExecutor groups attempts by where they are, in order of executor id. Attempts of earlier executions are left out.
func (l *jobLoop) perExecutor(attempts []job.AttemptID, f func(job.ExecutorID, []job.AttemptID)) {
	groups := map[job.ExecutorID][]job.AttemptID{}
	for _, a := range attempts {
		if executor, ok := l.running.placed[a]; ok {
			groups[executor] = append(groups[executor], a)
		}
	}
	for _, executor := range slices.Sorted(maps.Keys(groups)) {
		f(executor, groups[executor])
	}
}

func attemptsOf(placements []job.Placement) []job.AttemptID {
	out := make([]job.AttemptID, len(placements))
	for i, p := range placements {
		out[i] = p.Attempt
	}
	return out
}
