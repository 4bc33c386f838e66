package stream

import "github.com/weirstream/weir/internal/job"

// ProcessFunction is what an operator without keys does, with operator state. Its functions are called on the task's goroutine, and are shared by all
// subtasks: what they remember must be in declared states. An error ends the attempt, or, marked by Permanent, the job.
type ProcessFunction[T, R any] struct {
	// Open is called once before the first record, when the states are restored; nil: there is nothing to do. It is where an operator takes its
	// part of a union list state.
	Open func(c *OperatorContext) error
	// Process is called for each record. It returns the error that emit returned.
	Process func(c *OperatorContext, v T, emit func(R) error) error
	// Finish is called behind the last record, when the input ends; nil: there is nothing to do. What it gives out it must take out of its states:
	// after a restore in which only other subtasks had ended it is called again.
	Finish func(c *OperatorContext, emit func(R) error) error
}

// ProcessStream adds an operator without keys. id must not be empty when there are states.
func ProcessStream[T, R any](s Stream[T], id string, f ProcessFunction[T, R], states ...OperatorState) Stream[R] {
	n := &Node{ID: id, Kind: "process", Stateful: len(states) > 0}
	out := transform(s, n, func(env *Env, out Collector[R]) *Link {
		op := newProcessFunctionOperator(env, f, out, states)
		return &Link{Operator: op, In: Collector[T](op)}
	})
	bindStates(s.job, n, states)
	if f.Process == nil {
		s.job.fail("operator %s has no function Process", n.ID)
	}
	return out
}

type processFunctionOperator[T, R any] struct {
	operatorStates
	env  *Env
	f    ProcessFunction[T, R]
	ctx  OperatorContext
	out  Collector[R]
	emit func(R) error
}

func newProcessFunctionOperator[T, R any](env *Env, f ProcessFunction[T, R], out Collector[R], states []OperatorState) *processFunctionOperator[T, R] {
	o := &processFunctionOperator[T, R]{operatorStates: newOperatorStates(env, states), env: env, f: f, out: out}
	o.ctx = OperatorContext{env: env, ts: NoTimestamp, holders: o.holders}
	o.emit = o.emitOne
	return o
}

func (o *processFunctionOperator[T, R]) Open() error {
	if o.f.Open == nil {
		return nil
	}
	o.env.enter()
	return o.env.fail(o.f.Open(&o.ctx))
}

func (o *processFunctionOperator[T, R]) Collect(ts Timestamp, v T) error {
	o.env.enter()
	o.ctx.ts = ts
	return o.env.own(o.f.Process(&o.ctx, v, o.emit))
}

func (o *processFunctionOperator[T, R]) emitOne(r R) error {
	err := o.out.Collect(o.ctx.ts, r)
	o.env.enter() // the function goes on
	return err
}

func (o *processFunctionOperator[T, R]) Finish() error {
	if o.f.Finish == nil {
		return nil
	}
	o.env.enter()
	o.ctx.ts = NoTimestamp
	return o.env.own(o.f.Finish(&o.ctx, o.emit))
}

func (*processFunctionOperator[T, R]) Close() error { return nil }

// BroadcastFunction is what an operator does with the records of a main stream and the elements of a broadcast stream. Its functions are called on the
// task's goroutine, one at a time, and are shared by all subtasks.
type BroadcastFunction[T, B, R any] struct {
	// Process is called for each record of the main stream. It reads broadcast states and may have list states of its own.
	Process func(c *OperatorContext, b *ReadOnlyContext, v T, emit func(R) error) error
	// Broadcast is called in every subtask for each element of the broadcast stream. It writes broadcast states, in the same way in all subtasks.
	Broadcast func(c *BroadcastContext, v B, emit func(R) error) error
}

// ProcessBroadcast adds an operator with two inputs: the records of s, and the elements of broadcast, each of which goes to every subtask. The order
// between the two is not defined. id must not be empty.
func ProcessBroadcast[T, B, R any](s Stream[T], broadcast Stream[B], id string, f BroadcastFunction[T, B, R], states ...OperatorState) Stream[R] {
	n := &Node{ID: id, Kind: "broadcast-process", Stateful: true, Signature: signature[T, R]() + " with " + typeName[B]()}
	n.Build = func(env *Env, outs []any) (*Link, error) {
		out, err := collector[R](outs)
		if err != nil {
			return nil, err
		}
		main := newProcessFunctionOperator(env, ProcessFunction[T, R]{}, out, states)
		reader := &ReadOnlyContext{main.holders}
		main.f.Process = func(c *OperatorContext, v T, emit func(R) error) error { return f.Process(c, reader, v, emit) }
		side := newBroadcastSide(env, f.Broadcast, out, main.holders)
		return &Link{Operator: main, Inputs: []any{Collector[T](main), Collector[B](side)}}, nil
	}
	s.job.add(n)
	bindStates(s.job, n, states)
	s.connect(n, s.partitioning, newEdgeType[T](s.job, n))
	connectBroadcast(n, broadcast, s.job, f.Process == nil || f.Broadcast == nil)
	return Stream[R]{job: s.job, node: n}
}

// KeyedBroadcastFunction is a BroadcastFunction whose main stream has keys.
type KeyedBroadcastFunction[K comparable, T, B, R any] struct {
	// Process is called for each record of the main stream, with the keyed states of its key. It reads broadcast states.
	Process func(c *Context[K], b *ReadOnlyContext, v T, emit func(R) error) error
	// Broadcast is called in every subtask for each element of the broadcast stream. It writes broadcast states, in the same way in all subtasks.
	Broadcast func(c *BroadcastContext, v B, emit func(R) error) error
}

// ProcessKeyedBroadcast is ProcessBroadcast for a main stream with keys, whose records have keyed states beside. id must not be empty.
func ProcessKeyedBroadcast[K comparable, T, B, R any](
	s KeyedStream[K, T], broadcast Stream[B], id string, f KeyedBroadcastFunction[K, T, B, R], keyedStates []State[K], states ...OperatorState,
) Stream[R] {
	j := s.stream.job
	n := &Node{ID: id, Kind: "keyed-broadcast-process"}
	r := keyed(s, n, keyedStates, func(base *keyedOperator[K, T], out Collector[R]) *Link {
		op := &keyedBroadcastOperator[K, T, R]{
			processOperator: processOperator[K, T, R]{keyedOperator: base, out: out},
			operatorStates:  newOperatorStates(base.env, states),
		}
		op.emit = op.emitOne
		reader := &ReadOnlyContext{op.holders}
		op.f = func(c *Context[K], v T, emit func(R) error) error { return f.Process(c, reader, v, emit) }
		side := newBroadcastSide(base.env, f.Broadcast, out, op.holders)
		return &Link{Operator: op, Inputs: []any{Collector[T](op), Collector[B](side)}}
	})
	n.Signature += " with " + typeName[B]()
	bindStates(j, n, states)
	connectBroadcast(n, broadcast, j, f.Process == nil || f.Broadcast == nil)
	return r
}

type keyedBroadcastOperator[K comparable, T, R any] struct {
	processOperator[K, T, R]
	operatorStates
}

// DescribeStates implements StateDescriber: both kinds of states.
func (o *keyedBroadcastOperator[K, T, R]) DescribeStates() []job.DeclaredState {
	return append(o.processOperator.DescribeStates(), o.operatorStates.DescribeStates()...)
}

// connectBroadcast adds the broadcast stream as the last input of n.
func connectBroadcast[B any](n *Node, broadcast Stream[B], j *Job, lacksFunction bool) {
	if lacksFunction {
		j.fail("operator %s needs both a function Process and a function Broadcast", n.ID)
	}
	if broadcast.job != j {
		j.fail("operator %s: the broadcast stream is of another job", n.ID)
	}
	broadcast.connect(n, job.Broadcast, newEdgeType[B](j, n))
}

// broadcastSide takes the broadcast elements of a two-input operator.
type broadcastSide[B, R any] struct {
	env  *Env
	f    func(c *BroadcastContext, v B, emit func(R) error) error
	ctx  BroadcastContext
	out  Collector[R]
	emit func(R) error
}

func newBroadcastSide[B, R any](env *Env, f func(*BroadcastContext, B, func(R) error) error, out Collector[R], holders []holder) *broadcastSide[B, R] {
	o := &broadcastSide[B, R]{env: env, f: f, out: out, ctx: BroadcastContext{holders: holders, env: env}}
	o.emit = o.emitOne
	return o
}

func (o *broadcastSide[B, R]) Collect(ts Timestamp, v B) error {
	o.env.enter()
	o.ctx.ts = ts
	return o.env.own(o.f(&o.ctx, v, o.emit))
}

func (o *broadcastSide[B, R]) emitOne(r R) error {
	err := o.out.Collect(o.ctx.ts, r)
	o.env.enter() // the function goes on
	return err
}
