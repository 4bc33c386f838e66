package jobmaster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/ha"
	"github.com/weirstream/weir/internal/inbox"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rescale"
	"github.com/weirstream/weir/internal/scheduler"
)

// rescaling is what the loop knows of the rescale that is going on, and what it has measured for the next one.
type rescaling struct {
	core       rescale.Core
	asked      int // number of the latest request
	answers    map[int]chan<- rescale.Answer
	checkpoint coordinator.RequestID         // the one that is taken for it; 0: none
	next       rescale.Plan                  // that was recorded last
	untold     *job.Graph                    // in force, and the coordinator has not heard of it; nil: it has
	before     map[job.TaskID]job.ExecutorID // where the tasks ran
	starts     rescale.Starts
	began      time.Time // of the start of all tasks that is under way; zero: none is
}

// Rescale implements gateway.Jobs.
func (m *JobMaster) Rescale(ctx context.Context, r gateway.RescaleJob) (gateway.RescaleResult, error) {
	if r.Epoch != 0 && r.Epoch != m.cfg.Epoch {
		return gateway.RescaleResult{}, gateway.StaleEpoch(r.Epoch, m.cfg.Epoch)
	}
	l := m.loop(r.Job)
	if l == nil {
		return gateway.RescaleResult{}, gateway.JobNotFound(r.Job)
	}
	got, err := inbox.Ask(ctx, l.inbox, func(answer chan<- rescale.Answer) message { return rescaleRequest{r, answer} })
	if errors.Is(err, inbox.ErrEnded) {
		state := l.board.Read().Status.State
		if !state.Terminal() {
			return gateway.RescaleResult{}, gateway.ShuttingDown()
		}
		err = &gateway.Error{
			Code: gateway.FailedPrecondition, Reason: gateway.ReasonJobTerminal, Job: r.Job,
			Message: fmt.Sprintf("job %s is %s and cannot be rescaled", r.Job, state), Remedy: "start it again with --from its checkpoint and another --parallelism",
		}
	}
	if err != nil {
		return gateway.RescaleResult{}, err
	}
	return gateway.RescaleResult{Estimate: got.Estimate, Report: got.Report}, got.Err
}

// rescaleRequest is Jobs.Rescale.
type rescaleRequest struct {
	request gateway.RescaleJob
	answer  chan<- rescale.Answer
}

func (m rescaleRequest) apply(l *jobLoop) {
	s := &l.running.rescaling
	s.asked++
	s.answers[s.asked] = m.answer
	l.feed(rescale.Requested{
		Request: m.request, To: s.asked, NotRunning: l.notRunning(),
		Plan: rescale.Plan{Parallelism: l.options.Parallelism, Operators: l.options.OperatorParallelism, Graph: l.graph},
	})
}

// notRunning says why the job cannot be rescaled now; empty: it can.
func (l *jobLoop) notRunning() string {
	switch state := l.sched.State(); {
	case l.coord.Stopping():
		return "it is being stopped"
	case !l.running.all:
		if detail := l.detail(); detail != "" {
			return fmt.Sprintf("it is %s: %s", state, detail)
		}
		return fmt.Sprintf("it is %s", state)
	}
	return ""
}

// rescale does one effect of the rescale.
func (l *jobLoop) rescale(ctx context.Context, e rescale.Effect) {
	s := &l.running.rescaling
	switch e := e.(type) {
	case rescale.CallPlan:
		l.callPlan(ctx, e)
	case rescale.Survey:
		estimate, err := rescale.Estimate(l.known(e.Graph))
		l.feed(rescale.Surveyed{Estimate: estimate, Problem: err})
	case rescale.TakeCheckpoint:
		l.note(rescale.Note("rescale takes a checkpoint"))
		l.calls.last++
		s.checkpoint = l.calls.last
		l.feed(coordinator.TriggerRequested{Request: s.checkpoint, Kind: checkpoint.Checkpoint})
	case rescale.Record:
		l.note(e)
		s.next = e.Plan
		if l.cfg.Store == nil {
			l.feed(rescale.Recorded{})
			return
		}
		l.calling.ledger.Replan(ha.Plan{Parallelism: e.Plan.Parallelism, OperatorParallelism: e.Plan.Operators, Graph: e.Plan.Graph})
	case rescale.Replan:
		if e.Trial {
			s.before = l.placedTasks()
		}
		l.feed(scheduler.Replan{Graph: e.Graph, Trial: e.Trial})
	case rescale.Answer:
		answer := s.answers[e.To]
		delete(s.answers, e.To)
		l.reply(func() { answer <- e })
	case rescale.Note:
		l.note(e)
	default:
		panic(fmt.Sprintf("jobmaster: unknown effect %T", e))
	}
}

// tellRescale gives the rescale an event if one is going on.
func (l *jobLoop) tellRescale(ev rescale.Event) {
	if l.running.rescaling.core.Active() {
		l.feed(ev)
	}
}

// callPlan has the job planned again beside the loop.
func (l *jobLoop) callPlan(ctx context.Context, e rescale.CallPlan) {
	r := gateway.PlanJob{JobName: l.name, Params: l.params, Options: l.options, WithoutSplits: true}
	r.Options.Parallelism, r.Options.OperatorParallelism = e.Parallelism, e.Operators
	l.work.Go(func() {
		g, err := plan(ctx, l.registry, r)
		l.inbox.Post(fed{rescale.Planned{Graph: g, Err: err}})
	})
}

// known is what an estimate is made of.
func (l *jobLoop) known(g *job.Graph) rescale.Known {
	s := &l.running.rescaling
	k := rescale.Known{
		Old: l.graph, New: g, Before: l.placedTasks(), After: l.sched.Preview(g), Held: l.sched.Slots(), Free: l.registry.Free(l.name),
		Measured: rescale.Measured{Starts: s.starts},
	}
	if c := l.coord.Latest(); c != nil {
		if k.Latest = c.Metadata; c.Metadata.Fingerprint != l.graph.Fingerprint && s.before != nil {
			k.Before = s.before // the tasks of the plan before have written it
		}
	}
	for _, c := range l.coord.History() { // oldest first
		if c.State == coordinator.StateCompleted && c.Kind == checkpoint.Checkpoint {
			k.Measured.Checkpoint, k.Measured.CheckpointBytes = c.Duration, c.Bytes
		}
	}
	return k
}

func (l *jobLoop) placedTasks() map[job.TaskID]job.ExecutorID {
	out := map[job.TaskID]job.ExecutorID{}
	for a, executor := range l.running.placed {
		out[a.Task] = executor
	}
	return out
}

// replanned: the scheduler goes by another graph. What is known of the attempts of the old one is of no use any more.
func (l *jobLoop) replanned(g *job.Graph) {
	r := &l.running
	p := r.rescaling.next
	l.graph, l.options.Parallelism, l.options.OperatorParallelism = g, p.Parallelism, maps.Clone(p.Operators)
	r.rescaling.untold = g
	r.deploying = nil
	clear(r.placed)
	clear(r.counts)
	clear(r.behind)
	clear(r.failing)
}

// tellCoordinator has the coordinator go by the graph that is in force, once nothing of the old one is pending, and reports whether it had to be told.
func (l *jobLoop) tellCoordinator() bool {
	s := &l.running.rescaling
	if s.untold == nil {
		return false
	}
	l.feed(coordinator.Replanned{Graph: s.untold})
	s.untold = nil
	return true
}

// allRun measures the start that is over, and what of the state has moved with it.
func (l *jobLoop) allRun(now time.Time) {
	s := &l.running.rescaling
	ev := rescale.Running{Graph: l.graph}
	var most int64
	if c := l.coord.Latest(); c != nil && (!s.began.IsZero() || s.core.Active()) {
		ev.Checkpoint = c.Metadata.ID
		if moves, err := rescale.Moves(c.Metadata, l.graph); err == nil { // else nothing could have been deployed
			ev.Moved, ev.Stayed = rescale.Divide(moves, s.before, l.placedTasks())
			most = rescale.Most(moves)
		}
	}
	if !s.began.IsZero() {
		s.starts.Add(now.Sub(s.began), most)
		s.began = time.Time{}
	}
	l.tellRescale(ev)
}
