package taskexecutor

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/plan"
	"github.com/weirstream/weir/internal/task"
)

// DeployTasks implements gateway.TaskExecutor. All receiving ends of the request are there before any task starts.
func (e *Executor) DeployTasks(ctx context.Context, r gateway.DeployTasks) error {
	s, err := e.current(ctx, r.Epoch)
	if err != nil {
		return err
	}
	p, err := e.program(r.Graph.Name, r.Graph.Params, optionsFor(r))
	if err != nil {
		return err
	}
	if diff := plan.Diff(r.Graph, p.Graph); diff != "" {
		return &gateway.Error{
			Code: gateway.FailedPrecondition, Reason: gateway.ReasonFingerprint, Job: r.Job,
			Message: fmt.Sprintf("executor %s has another build of job %s: %s", e.cfg.ID, r.Graph.Name, diff),
			Remedy:  "run the same binary on every executor, or submit the job again",
		}
	}
	var started []*runningTask
	for _, d := range r.Tasks {
		t, err := e.admit(s, r, d, p)
		if err != nil {
			for _, t := range started {
				e.drop(t)
			}
			return err
		}
		if t != nil {
			started = append(started, t)
		}
	}
	e.keepRestored(r.Job, started)
	for _, t := range started {
		e.start(t)
	}
	return nil
}

// optionsFor are the options under which the graph was planned: what it fixed must not be decided again here.
func optionsFor(r gateway.DeployTasks) job.Options {
	o := r.Options
	for _, v := range r.Graph.Vertices {
		o.MaxParallelism = v.MaxParallelism
	}
	return o
}

// admit books a task and opens its receiving end. It returns nil for one that was accepted before.
func (e *Executor) admit(s *session, r gateway.DeployTasks, d gateway.TaskDeployment, p *plan.Program) (*runningTask, error) {
	v := r.Graph.Vertex(d.Attempt.Task.Vertex)
	if err := checkDeployment(r, d, v); err != nil {
		return nil, err
	}
	t := newRunningTask(s, r, d, p, v)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.session != s {
		return nil, gateway.StaleEpoch(r.Epoch, s.epoch)
	}
	if e.mu.tasks[d.Attempt] != nil {
		return nil, nil
	}
	for a := range e.mu.tasks {
		if a.Job == r.Job && a.Task == d.Attempt.Task && a.Attempt > d.Attempt.Attempt {
			return nil, gateway.UnknownAttempt(d.Attempt)
		}
	}
	if inputs := t.gateInputs(); len(inputs) > 0 {
		t.gate = e.cfg.Network.OpenGate(d.Attempt, inputs, r.Options.Exchange.Credits, t.mail.Wake)
	}
	e.mu.tasks[d.Attempt] = t
	return t, nil
}

func checkDeployment(r gateway.DeployTasks, d gateway.TaskDeployment, v *job.Vertex) error {
	bad := func(format string, args ...any) error {
		return &gateway.Error{Code: gateway.InvalidArgument, Reason: gateway.ReasonUnknownAttempt, Job: r.Job, Message: fmt.Sprintf(format, args...)}
	}
	if v == nil || d.Attempt.Job != r.Job || d.Attempt.Task.Subtask < 0 || d.Attempt.Task.Subtask >= v.Parallelism {
		return bad("attempt %s is of no task of job %s", d.Attempt, r.Graph.Name)
	}
	for _, i := range d.Splits {
		if i < 0 || i >= len(v.Splits) {
			return bad("attempt %s is to read split %d, its source has %d", d.Attempt, i, len(v.Splits))
		}
	}
	return nil
}

// drop takes back an admitted task that never ran.
func (e *Executor) drop(t *runningTask) {
	if t.gate != nil {
		e.cfg.Network.CloseGate(t.gate)
	}
	e.forget(t)
}

// start runs a task until it ends, and reports what it does.
func (e *Executor) start(t *runningTask) {
	e.tasks.Go(func() {
		t.report(job.TaskInitializing, job.Failure{})
		err := e.runTask(t)
		state, failure := outcome(t.ctx, err)
		close(t.ended)
		t.logEnd(state, failure)
		t.report(state, failure)
		e.dropCopies(t)
	})
}

func (e *Executor) runTask(t *runningTask) (err error) {
	defer func() {
		if r := recover(); r != nil { // a task guards its operators itself; what is left must not take the other tasks along
			t.log.Error("panic", zap.Any("value", r), zap.Stack("stack"))
			err = fmt.Errorf("the task could not be run: panic: %v", r)
		}
	}()
	if t.gate != nil {
		defer e.cfg.Network.CloseGate(t.gate)
	}
	outs, err := e.cfg.Network.Connect(t.ctx, t.attempt, t.outputSpecs(), func(err error) { e.cancel(t, err) })
	if err != nil {
		return err
	}
	defer outs.Close()
	files, err := e.openFiles(t)
	if err != nil {
		return err
	}
	defer func() {
		if err := e.cfg.Dir.RemoveTask(t.attempt); err != nil {
			t.log.Warn("files of the task left behind", zap.Error(err))
		}
	}()
	cfg, err := e.assemble(t, outs, files)
	if err != nil {
		return err
	}
	defer e.segments.Join(t.ctx, t.attempt)()
	running := task.New(cfg, t.mail)
	t.setTask(running)
	if err := running.Run(t.ctx); err != nil {
		return err
	}
	outs.Finish()
	return nil
}

// gateInputs are the edges that end in the task, a channel for each sender.
func (t *runningTask) gateInputs() []exchange.GateInput {
	var out []exchange.GateInput
	for _, edge := range t.deploy.Graph.Inputs(t.attempt.Task.Vertex) {
		in := exchange.GateInput{Edge: edge.ID, Codec: t.program.EdgeType(edge.ID)}
		for _, p := range t.peers(edge.From, edge.Partitioning) {
			in.Senders = append(in.Senders, p.Attempt)
		}
		out = append(out, in)
	}
	return out
}

func (t *runningTask) outputSpecs() []exchange.OutputSpec {
	var out []exchange.OutputSpec
	for _, edge := range t.deploy.Graph.Outputs(t.attempt.Task.Vertex) {
		out = append(out, exchange.OutputSpec{
			Edge: edge.ID, Codec: t.program.EdgeType(edge.ID),
			Receivers: t.peers(edge.To, edge.Partitioning),
		})
	}
	return out
}

// peers are the tasks of a vertex at the other end of an edge: all of them, or the one of the same number.
func (t *runningTask) peers(v job.VertexID, p job.Partitioning) []job.Placement {
	var out []job.Placement
	for _, pl := range t.deploy.Placements {
		task := pl.Attempt.Task
		if task.Vertex == v && (p != job.Forward || task.Subtask == t.attempt.Task.Subtask) {
			out = append(out, pl)
		}
	}
	return out
}
