package stream

import (
	"context"
	"fmt"
	"reflect"

	"github.com/weirstream/weir/internal/job"
)

// Node is one operator of a job's graph before chaining. Runtimes and tools read it; definitions make it through functions such as Map.
type Node struct {
	ID          string
	Kind        string
	Signature   string
	Parallelism int // 0: the job's
	NoChain     bool
	Stateful    bool
	States      []string
	Inputs      []*Edge
	Outputs     []*Edge

	// Build makes the operator for one subtask. outs are the collectors of the node's outputs, in the order of Outputs.
	Build func(env *Env, outs []any) (*Link, error)
	// Splits, of a source, finds the parts of the input; see Source.
	Splits func(ctx context.Context, parallelism int) ([][]byte, error)
	// Check, of a sink, refuses at submission what would fail at run time.
	Check func(ctx context.Context) error
}

// Link is an operator built for one subtask.
type Link struct {
	Operator Operator
	In       any    // Collector[In] of the operator; nil for a source
	Source   Poller // of a source
	// Inputs, of an operator whose inputs are of several types, are the collectors of the node's inputs, in the order of Inputs; In is nil then.
	Inputs []any
}

// Input is the collector of an input of the node, by its place in Node.Inputs.
func (l *Link) Input(i int) any {
	if l.Inputs == nil {
		return l.In // inputs of one type, as many as there are
	}
	return l.Inputs[i]
}

// Edge connects two nodes.
type Edge struct {
	From, To     *Node
	Partitioning job.Partitioning // 0: forward when the parallelism of both ends agrees, else rebalance
	Type         EdgeType
}

// Stream is the records of type T that an operator emits.
type Stream[T any] struct {
	job          *Job
	node         *Node
	partitioning job.Partitioning
}

// Rebalance gives the records to the subtasks of the next operator in turn.
func (s Stream[T]) Rebalance() Stream[T] { s.partitioning = job.Rebalance; return s }

// Broadcast gives each record to every subtask of the next operator.
func (s Stream[T]) Broadcast() Stream[T] { s.partitioning = job.Broadcast; return s }

// Forward gives the records of subtask i to subtask i of the next operator; the parallelism of both must agree.
func (s Stream[T]) Forward() Stream[T] { s.partitioning = job.Forward; return s }

// WithParallelism sets the parallelism of the operator that emits s.
func (s Stream[T]) WithParallelism(n int) Stream[T] {
	if n < 1 {
		s.job.fail("operator %s of job %s: parallelism %d is not positive", s.node.ID, s.job.name, n)
	}
	s.node.Parallelism = n
	return s
}

// WithoutChaining keeps the operator that emits s from running in one task with the one before it.
func (s Stream[T]) WithoutChaining() Stream[T] { s.node.NoChain = true; return s }

// connect adds an input to n.
func (s Stream[T]) connect(n *Node, partitioning job.Partitioning, typ EdgeType) {
	e := &Edge{From: s.node, To: n, Partitioning: partitioning, Type: typ}
	s.node.Outputs = append(s.node.Outputs, e)
	n.Inputs = append(n.Inputs, e)
}

// single returns a collector for all outputs of an operator: the only one, a tee, or one that drops.
func collector[T any](outs []any) (Collector[T], error) {
	list := make([]Collector[T], len(outs))
	for i, o := range outs {
		c, ok := o.(Collector[T])
		if !ok {
			return nil, fmt.Errorf("output %d takes %T, the operator emits %s", i, o, typeName[T]())
		}
		list[i] = c
	}
	switch len(list) {
	case 0:
		return drop[T]{}, nil
	case 1:
		return list[0], nil
	}
	return tee[T](list), nil
}

type drop[T any] struct{}

func (drop[T]) Collect(Timestamp, T) error { return nil }

type tee[T any] []Collector[T]

func (t tee[T]) Collect(ts Timestamp, v T) error {
	for _, c := range t {
		if err := c.Collect(ts, v); err != nil {
			return err
		}
	}
	return nil
}

func typeName[T any]() string { return reflect.TypeFor[T]().String() }

func signature[In, Out any]() string { return typeName[In]() + " -> " + typeName[Out]() }
