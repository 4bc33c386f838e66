package taskexecutor

import (
	"fmt"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/plan"
	"github.com/weirstream/weir/internal/task"
	"github.com/weirstream/weir/stream"
)

// assemble puts a task together: routers on the outputs, the chain on the routers, the gate in front of the chain.
func (e *Executor) assemble(t *runningTask, outs *exchange.Outputs, files *stateFiles) (task.Config, error) {
	opts := t.deploy.Options.Exchange
	outputs := map[string]*edgeOutput{}
	var list []task.Output
	for i, edge := range t.deploy.Graph.Outputs(t.attempt.Task.Vertex) {
		o := &edgeOutput{channels: outs.Outputs[i]}
		o.Router = t.program.EdgeType(edge.ID).NewRouter(stream.RouterConfig{
			Partitioning: edge.Partitioning, Subtask: t.attempt.Task.Subtask, Receivers: o.channels.Receivers(),
			MaxParallelism: t.deploy.Graph.Vertex(edge.To).MaxParallelism, BatchSize: opts.BatchSize, Send: o.send,
		})
		outputs[edge.ID] = o
		list = append(list, o)
	}
	groups := job.KeyGroups(t.attempt.Task.Subtask, t.vertex.Parallelism, t.vertex.MaxParallelism)
	built, err := t.program.Build(t.vertex.ID, t.env(groups, e), func(edge string) any { return outputs[edge].In() })
	if err != nil {
		return task.Config{}, err
	}
	cfg := task.Config{
		Attempt: t.attempt, Log: t.log, Chain: t.chain(built), Outputs: list, KeyGroups: groups,
		Files: files, JobMaster: t,
		Shared: &sharedFiles{files: files, taskDir: func() (string, error) { return e.cfg.Dir.Task(t.attempt) }}, Linger: opts.Linger,
		InlineLimit: t.deploy.Options.Checkpoint.InlineLimit, Encoder: e.encoder, Decoder: e.decoder,
	}
	if t.deploy.Options.Checkpoint.Compression == job.ZstdCompression {
		cfg.Compression = checkpoint.Zstd
	}
	if t.gate != nil {
		cfg.Input = t.gate
	}
	if r := t.deployment.Restore; r != nil {
		cfg.Restore = &task.Restore{Checkpoint: r.Checkpoint, Dir: r.Dir, State: r.State, Stopped: r.Stopped}
	}
	return cfg, nil
}

func (t *runningTask) env(groups job.KeyGroupRange, e *Executor) stream.Env {
	env := stream.Env{
		Job: t.deploy.Graph.Name, JobID: string(t.deploy.Job),
		Subtask: t.attempt.Task.Subtask, Parallelism: t.vertex.Parallelism, MaxParallelism: t.vertex.MaxParallelism,
		Attempt: t.attempt.Attempt, KeyGroups: groups, Restored: t.deployment.Restore != nil, Wake: t.mail.Wake,
		Host: stream.Host{Dir: func() (string, error) { return e.cfg.Dir.Task(t.attempt) }},
	}
	if t.deploy.Options.State.Backend == job.PebbleBackend {
		env.Host.State = e.cfg.State
	}
	for _, i := range t.deployment.Splits {
		env.Splits = append(env.Splits, t.vertex.Splits[i])
	}
	return env
}

func (t *runningTask) chain(built *plan.Chain) *task.Chain {
	c := &task.Chain{Source: built.Source, Running: built.Running, Clock: built.Clock}
	for _, op := range built.Operators {
		c.Operators = append(c.Operators, task.Operator{ID: op.ID, Operator: op.Operator})
	}
	if t.gate == nil {
		return c
	}
	// What a channel carries, and which input of the head takes it.
	type end struct {
		records stream.EdgeType
		in      any
	}
	ends := make([]end, t.gate.Channels())
	edges := t.deploy.Graph.Inputs(t.vertex.ID)
	for i := range ends {
		input := t.gate.InputOf(i)
		ends[i] = end{t.program.EdgeType(edges[input].ID), built.Inputs[input]}
	}
	c.Deliver = func(channel int, b element.Batch) error {
		e := &ends[channel]
		return e.records.Deliver(e.in, b)
	}
	return c
}

// edgeOutput is the router of an edge and the channels behind it.
type edgeOutput struct {
	stream.Router
	channels *exchange.Output
	records  int64
}

func (o *edgeOutput) send(receiver int, b element.Batch) error {
	n := b.Len() // the batch is the receiver's once it is sent
	if err := o.channels.Send(receiver, b); err != nil {
		return sendError{fmt.Errorf("edge %s: %w", o.channels.Edge, err)}
	}
	o.records += int64(n)
	return nil
}

// sendError is an error of the exchange on its way up the chain: no operator may take it for its own, since that decides about restarts.
type sendError struct{ error }

func (e sendError) Unwrap() error      { return e.error }
func (sendError) Is(target error) bool { return target == stream.ErrStopped }

func (o *edgeOutput) Broadcast(e element.Element) error { return o.channels.Broadcast(e) }
func (o *edgeOutput) Records() int64                    { return o.records }
