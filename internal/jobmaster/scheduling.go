package jobmaster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/ha"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rescale"
	"github.com/weirstream/weir/internal/scheduler"
	"github.com/weirstream/weir/internal/slotpool"
)

// schedule does one effect of the scheduler.
func (l *jobLoop) schedule(ctx context.Context, e scheduler.Effect) {
	switch e := e.(type) {
	case scheduler.RequestSlots:
		l.running.request++
		a := l.registry.Request(slotpool.Request{
			Job: l.id, Name: l.name, Order: l.order, Number: l.running.request, Count: e.Count, Keep: slotpool.PerExecutor(e.Keep), Prefer: slotpool.PerExecutor(e.Prefer),
		})
		if e.Count > 0 {
			l.granted(a)
		}
	case scheduler.ReleaseSlots:
		l.running.request++
		l.running.deploying = nil
		l.stopSenders()
		clear(l.running.sessions)
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
		l.allRun(time.Now())
		l.feed(coordinator.TasksRunning{Tasks: l.coordinated(e), Random: l.cfg.Random()})
	case scheduler.TasksStopped:
		l.running.all = false
		l.feed(coordinator.TasksStopped{Reason: e.AbortReason(), Attempts: e.Attempts})
	case scheduler.TaskFinished:
		l.log.Info(e.String())
		l.feed(coordinator.TaskFinished{Attempt: e.Attempt})
	case scheduler.EndOfDataReached:
		l.note(e)
		l.feed(coordinator.EndOfDataReached{})
	case scheduler.Replanned:
		l.note(e)
		l.replanned(e.Graph)
	case scheduler.ReplanFailed:
		l.note(e)
		l.tellRescale(rescale.Failed{Failure: e.Failure})
	case scheduler.Waiting:
		l.note(e)
		if e.Detail != "" {
			l.tellRescale(rescale.Short{})
		}
	case scheduler.RegionsRestart:
		l.note(e)
	default:
		panic(fmt.Sprintf("jobmaster: unknown effect %T", e))
	}
}

func (l *jobLoop) coordinated(e scheduler.TasksRunning) []coordinator.Task {
	out := make([]coordinator.Task, len(e.Placements))
	for i, p := range e.Placements {
		out[i] = coordinator.Task{
			Attempt: p.Attempt, Source: l.graph.IsSource(p.Attempt.Task.Vertex), Behind: l.running.behind[p.Attempt],
			Finished: slices.Contains(e.Finished, p.Attempt),
		}
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
	for _, executor := range slices.Sorted(maps.Keys(a.Sessions)) {
		s := a.Sessions[executor]
		if old := l.running.sessions[executor]; old != nil && old != s { // the message that says so is under way
			l.feed(scheduler.ExecutorLost{Executor: executor, Message: "it has registered anew"})
		}
		l.running.sessions[executor] = s
	}
	l.feed(scheduler.SlotsAllocated{Slots: a.Slots})
}

func (l *jobLoop) statusChanged(e scheduler.JobStatusChanged) {
	if e.To == job.Running {
		l.tellRescale(rescale.Deployed{})
	}
	if !e.To.Terminal() {
		return
	}
	l.tellRescale(rescale.Ended{State: e.To})
	l.end.at = time.Now()
	l.calling.hooks.stop()
	l.recordEnd(ha.End{
		State: e.To, Failure: e.Failure.String(), At: l.end.at, DeleteAll: l.options.Checkpoint.DeletedAfter(e.To),
	})
}

// prepare begins an execution of all tasks, or of some regions. The tasks are sent when the coordinator has settled; see deploy.
func (l *jobLoop) prepare(ctx context.Context, placements []job.Placement) {
	r := &l.running
	r.deploying = append(r.deploying, placements...)
	l.forgetAttempts(placements)
	if len(placements) == len(l.graph.Tasks()) { // the hooks hear of nothing when a region restarts
		l.calling.hooks.restore, l.calling.hooks.restored = 0, false
	}
	for _, p := range placements {
		l.calling.ledger.ReserveAttempt(p.Attempt.Attempt)
		r.placed[p.Attempt] = p.Executor
	}
	used := map[job.ExecutorID]bool{}
	for _, executor := range r.placed {
		used[executor] = true
	}
	for _, executor := range slices.Sorted(maps.Keys(r.senders)) {
		if s := r.senders[executor]; !used[executor] || s.session != r.sessions[executor] {
			s.stop()
			delete(r.senders, executor)
		}
	}
	for _, p := range placements {
		if r.senders[p.Executor] == nil {
			r.senders[p.Executor] = l.startSender(ctx, r.sessions[p.Executor])
		}
	}
}

// forgetAttempts forgets the attempts that were before these.
func (l *jobLoop) forgetAttempts(placements []job.Placement) {
	tasks := map[job.TaskID]bool{}
	for _, p := range placements {
		tasks[p.Attempt.Task] = true
	}
	old := func(a job.AttemptID) bool { return tasks[a.Task] }
	maps.DeleteFunc(l.running.placed, func(a job.AttemptID, _ job.ExecutorID) bool { return old(a) })
	maps.DeleteFunc(l.running.counts, func(a job.AttemptID, _ recordCounts) bool { return old(a) })
	maps.DeleteFunc(l.running.behind, func(a job.AttemptID, _ bool) bool { return old(a) })
	maps.DeleteFunc(l.running.failing, func(a job.AttemptID, _ bool) bool { return old(a) })
}

func (l *jobLoop) stopSenders() {
	for _, s := range l.running.senders {
		s.stop()
	}
	clear(l.running.senders)
}

// deploy sends the tasks out, once no checkpoint is FINALIZING: one that becomes durable now is what they must start from.
func (l *jobLoop) deploy() {
	if l.running.deploying == nil || !l.coord.Settled() || !l.attemptRecorded() || !l.calling.hooks.restored {
		return
	}
	if l.tellCoordinator() {
		return
	}
	placements := l.awaited(l.running.deploying)
	l.running.deploying = nil
	if len(placements) == 0 {
		return
	}
	from := l.coord.Latest()
	tasks, err := gateway.Deployments(l.graph, placements, from)
	if err != nil {
		l.feed(scheduler.JobFailed{Failure: job.Failure{Class: job.FailurePermanent, Message: "restore: " + err.Error()}})
		l.feed(scheduler.TasksUnknown{Attempts: attemptsOf(placements)}) // they were never sent
		return
	}
	l.running.restored, l.running.rescaling.began = 0, time.Time{}
	if len(placements) == len(l.graph.Tasks()) {
		l.running.rescaling.began = time.Now()
	}
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

// awaited drops the attempts that the scheduler does not want any more. One whose executor is lost before it was sent is such.
func (l *jobLoop) awaited(placements []job.Placement) []job.Placement {
	wanted := map[job.AttemptID]bool{}
	for _, e := range l.sched.Executions() {
		wanted[job.AttemptID{Job: l.id, Task: e.Task, Attempt: e.Attempt}] = e.State == job.TaskDeploying
	}
	return slices.DeleteFunc(placements, func(p job.Placement) bool { return !wanted[p.Attempt] })
}

func (l *jobLoop) sendDeploy(executor job.ExecutorID, r gateway.DeployTasks) {
	failed := func(err error) scheduler.Event {
		return scheduler.DeployFailed{Executor: executor, Attempts: attemptsIn(r.Tasks), Failure: deployFailure(err)}
	}
	sent := l.running.senders[executor].send(func(ctx context.Context, e gateway.TaskExecutor) {
		ctx, cancel := context.WithTimeout(ctx, deployTimeout)
		defer cancel()
		if err := e.DeployTasks(ctx, r); err != nil {
			l.inbox.Post(fed{failed(err)})
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
	waiting := map[job.AttemptID]bool{}
	for _, p := range l.running.deploying {
		waiting[p.Attempt] = true
	}
	var sent, unsent []job.AttemptID
	for _, a := range attemptsOf(placements) {
		if waiting[a] {
			unsent = append(unsent, a)
		} else {
			sent = append(sent, a)
		}
	}
	if len(unsent) > 0 {
		l.feed(scheduler.TasksUnknown{Attempts: unsent})
	}
	l.perExecutor(sent, func(executor job.ExecutorID, attempts []job.AttemptID) {
		s := l.running.senders[executor]
		if s == nil || s.session.Over() {
			l.feed(scheduler.TasksUnknown{Attempts: attempts}) // lost with the session
			return
		}
		s.send(func(ctx context.Context, e gateway.TaskExecutor) { // too many calls: the scheduler repeats it
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			unknown, err := e.CancelTasks(ctx, gateway.CancelTasks{Epoch: l.cfg.Epoch, Attempts: attempts})
			if err != nil {
				l.log.Warn("cancel tasks", zap.String("executor", string(executor)), zap.Error(err))
			} else if len(unknown) > 0 {
				l.inbox.Post(fed{scheduler.TasksUnknown{Attempts: unknown}})
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

func attemptsIn(tasks []gateway.TaskDeployment) []job.AttemptID {
	out := make([]job.AttemptID, len(tasks))
	for i, t := range tasks {
		out[i] = t.Attempt
	}
	return out
}

func attemptsOf(placements []job.Placement) []job.AttemptID {
	out := make([]job.AttemptID, len(placements))
	for i, p := range placements {
		out[i] = p.Attempt
	}
	return out
}
