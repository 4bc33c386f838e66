package stream

import "fmt"

// transform adds an operator with one input and one output.
func transform[In, Out any](s Stream[In], n *Node, build func(env *Env, out Collector[Out]) *Link) Stream[Out] {
	n.Signature = signature[In, Out]()
	n.Build = func(env *Env, outs []any) (*Link, error) {
		out, err := collector[Out](outs)
		if err != nil {
			return nil, err
		}
		return build(env, out), nil
	}
	s.job.add(n)
	s.connect(n, s.partitioning, newEdgeType[In](s.job, n))
	return Stream[Out]{job: s.job, node: n}
}

// stateless is the lifecycle of an operator that has none.
type stateless struct{}

func (stateless) Open() error  { return nil }
func (stateless) Close() error { return nil }

// Map turns each record into another. id may be empty.
func Map[In, Out any](s Stream[In], id string, f func(In) Out) Stream[Out] {
	return transform(s, &Node{ID: id, Kind: "map"}, func(env *Env, out Collector[Out]) *Link {
		op := &mapOperator[In, Out]{env: env, f: f, out: out}
		return &Link{Operator: op, In: Collector[In](op)}
	})
}

type mapOperator[In, Out any] struct {
	stateless
	env *Env
	f   func(In) Out
	out Collector[Out]
}

func (o *mapOperator[In, Out]) Collect(ts Timestamp, v In) error {
	o.env.enter()
	return o.out.Collect(ts, o.f(v))
}

// TryMap turns each record into another or fails the task.
func TryMap[In, Out any](s Stream[In], id string, f func(In) (Out, error)) Stream[Out] {
	return transform(s, &Node{ID: id, Kind: "map"}, func(env *Env, out Collector[Out]) *Link {
		op := &tryMapOperator[In, Out]{env: env, f: f, out: out}
		return &Link{Operator: op, In: Collector[In](op)}
	})
}

type tryMapOperator[In, Out any] struct {
	stateless
	env *Env
	f   func(In) (Out, error)
	out Collector[Out]
}

func (o *tryMapOperator[In, Out]) Collect(ts Timestamp, v In) error {
	o.env.enter()
	r, err := o.f(v)
	if err != nil {
		return o.env.fail(err)
	}
	return o.out.Collect(ts, r)
}

// Filter keeps the records for which f is true. id may be empty.
func Filter[T any](s Stream[T], id string, f func(T) bool) Stream[T] {
	return transform(s, &Node{ID: id, Kind: "filter"}, func(env *Env, out Collector[T]) *Link {
		op := &filterOperator[T]{env: env, f: f, out: out}
		return &Link{Operator: op, In: Collector[T](op)}
	})
}

type filterOperator[T any] struct {
	stateless
	env *Env
	f   func(T) bool
	out Collector[T]
}

func (o *filterOperator[T]) Collect(ts Timestamp, v T) error {
	o.env.enter()
	if !o.f(v) {
		return nil
	}
	return o.out.Collect(ts, v)
}

// FlatMap turns each record into any number of others: f calls emit for each and returns the error that emit returned. id may be empty.
func FlatMap[In, Out any](s Stream[In], id string, f func(v In, emit func(Out) error) error) Stream[Out] {
	return transform(s, &Node{ID: id, Kind: "flat-map"}, func(env *Env, out Collector[Out]) *Link {
		op := &flatMapOperator[In, Out]{env: env, f: f, out: out}
		op.emit = op.emitOne
		return &Link{Operator: op, In: Collector[In](op)}
	})
}

type flatMapOperator[In, Out any] struct {
	stateless
	env  *Env
	f    func(In, func(Out) error) error
	out  Collector[Out]
	ts   Timestamp
	emit func(Out) error
}

func (o *flatMapOperator[In, Out]) Collect(ts Timestamp, v In) error {
	o.env.enter()
	o.ts = ts
	return o.env.own(o.f(v, o.emit))
}

func (o *flatMapOperator[In, Out]) emitOne(v Out) error {
	err := o.out.Collect(o.ts, v)
	o.env.enter() // f goes on
	return err
}

// Union merges streams of one type. The order between them is not defined.
func Union[T any](first Stream[T], others ...Stream[T]) Stream[T] {
	n := first.job.add(&Node{Kind: "union", Signature: signature[T, T](), Build: func(_ *Env, outs []any) (*Link, error) {
		out, err := collector[T](outs)
		if err != nil {
			return nil, err
		}
		return &Link{Operator: stateless{}, In: out}, nil
	}})
	for _, s := range append([]Stream[T]{first}, others...) {
		if s.job != first.job {
			first.job.Fail(fmt.Errorf("operator %s: streams of two jobs cannot be united", n.ID))
		}
		s.connect(n, s.partitioning, newEdgeType[T](s.job, n))
	}
	return Stream[T]{job: first.job, node: n}
}
