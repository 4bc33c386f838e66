package stream

import (
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream/codec"
)

// KeyedStream is a stream whose records are partitioned by a key: all records of one key meet in one subtask.
type KeyedStream[K comparable, T any] struct {
	stream Stream[T]
	key    func(T) K
	hash   func(K) uint64
}

// KeyBy partitions s by a key. key must give the same key for the same record every time. Keys are integers, strings, booleans, or arrays
// and structs of them.
func KeyBy[K comparable, T any](s Stream[T], key func(T) K) KeyedStream[K, T] {
	hash, err := codec.Hash[K]()
	if err != nil {
		s.job.fail("key behind operator %s: %w", s.node.ID, err)
	}
	return KeyedStream[K, T]{stream: s, key: key, hash: hash}
}

// keyed adds an operator behind a KeyBy.
func keyed[K comparable, T, R any](s KeyedStream[K, T], n *Node, states []State[K], build func(base *keyedOperator[K, T], out Collector[R]) *Link) Stream[R] {
	j := s.stream.job
	n.Signature = fmt.Sprintf("%s by %s -> %s", typeName[T](), typeName[K](), typeName[R]())
	n.Stateful = true
	keyCodec, err := codec.For[K]()
	if err != nil {
		j.fail("key of operator %s: %w", n.ID, err)
	}
	for i, st := range states {
		if slices.Contains(n.States, st.name()) {
			j.fail("two states of operator %s have the name %q", n.ID, st.name())
		}
		n.States = append(n.States, st.name())
		if err := st.bind(i, n.ID); err != nil {
			j.Fail(err)
		}
	}
	n.Build = func(env *Env, outs []any) (*Link, error) {
		out, err := collector[R](outs)
		if err != nil {
			return nil, err
		}
		env.openDisk()
		keys := plainKeys(keyCodec, s.hash)
		base := &keyedOperator[K, T]{env: env, key: s.key, ctx: Context[K]{hasher: s.hash, op: newOperatorContext(env)}}
		for _, st := range states {
			base.ctx.tables = append(base.ctx.tables, st.newTable(env, base.ctx.op, keys))
		}
		return build(base, out), nil
	}
	j.add(n)
	edge := newEdgeType[T](j, n)
	edge.hash = func(v T) uint64 { return s.hash(s.key(v)) }
	s.stream.connect(n, job.Hash, edge)
	return Stream[R]{job: j, node: n}
}

// Context is what a keyed operator knows of the record that it processes. It is valid during the call only.
type Context[K comparable] struct {
	key    K
	hash   uint64
	ts     Timestamp
	hasher func(K) uint64
	tables []table
	op     *operatorContext
}

// operatorContext is what all contexts of an operator have in common, whatever their namespaces.
type operatorContext struct {
	maxParallelism int
	clock          *Clock
	watermark      Timestamp
	namespaces     []any        // a *namespace[N] for each type N of the declared states
	timers         timerService // nil: the operator has none
	sweeps         []sweeper    // of the tables whose entries expire
}

func newOperatorContext(env *Env) *operatorContext {
	if env.Clock == nil {
		env.Clock = new(Clock)
	}
	return &operatorContext{maxParallelism: env.MaxParallelism, clock: env.Clock, watermark: NoTimestamp}
}

// Key is the key of the record.
func (c *Context[K]) Key() K { return c.key }

// Timestamp is the event time of the record, or NoTimestamp.
func (c *Context[K]) Timestamp() Timestamp { return c.ts }

// ProcessingTime is the time of the task, in milliseconds. It is the same for all records of a batch, and never goes back within an attempt.
func (c *Context[K]) ProcessingTime() Timestamp { return c.op.clock.now }

// Watermark is how far event time has come in this operator: no record with a timestamp up to it is expected any more. It is NoTimestamp at first, and
// MaxTimestamp at the end of the input.
func (c *Context[K]) Watermark() Timestamp { return c.op.watermark }

func (c *Context[K]) set(key K, ts Timestamp) {
	c.key, c.hash, c.ts = key, c.hasher(key), ts
}

// Process calls f for each record with the states of its key. id must not be empty.
func Process[K comparable, T, R any](s KeyedStream[K, T], id string, f func(c *Context[K], v T, emit func(R) error) error, states ...State[K]) Stream[R] {
	return process(s, id, f, nil, states)
}

// ProcessToEnd is Process for bounded input: at its end it calls end once for each key that has a value in the first state.
func ProcessToEnd[K comparable, T, R any](
	s KeyedStream[K, T], id string,
	f func(c *Context[K], v T, emit func(R) error) error, end func(c *Context[K], emit func(R) error) error, states ...State[K],
) Stream[R] {
	if len(states) == 0 {
		s.stream.job.fail("operator %s: ProcessToEnd needs a state, whose keys it goes through at the end", id)
	} else if _, ok := states[0].(interface{ inNamespaces() }); ok {
		s.stream.job.fail("operator %s: ProcessToEnd goes through the keys of its first state at the end, and that has namespaces: name another state first", id)
	}
	return process(s, id, f, end, states)
}

func process[K comparable, T, R any](
	s KeyedStream[K, T], id string, f func(*Context[K], T, func(R) error) error, end func(*Context[K], func(R) error) error, states []State[K],
) Stream[R] {
	return keyed(s, &Node{ID: id, Kind: "process"}, states, func(base *keyedOperator[K, T], out Collector[R]) *Link {
		op := newProcessOperator(base, f, end, out)
		return &Link{Operator: op, In: Collector[T](op)}
	})
}

type processOperator[K comparable, T, R any] struct {
	*keyedOperator[K, T]
	f    func(*Context[K], T, func(R) error) error
	end  func(*Context[K], func(R) error) error // nil: nothing to do at the end
	out  Collector[R]
	emit func(R) error
}

func newProcessOperator[K comparable, T, R any](
	base *keyedOperator[K, T], f func(*Context[K], T, func(R) error) error, end func(*Context[K], func(R) error) error, out Collector[R],
) *processOperator[K, T, R] {
	op := &processOperator[K, T, R]{keyedOperator: base, f: f, end: end, out: out}
	op.emit = op.emitOne
	return op
}

func (o *processOperator[K, T, R]) Collect(ts Timestamp, v T) error {
	o.enterKey(ts, v)
	return o.env.own(o.f(&o.ctx, v, o.emit))
}

func (o *processOperator[K, T, R]) emitOne(r R) error {
	err := o.out.Collect(o.ctx.ts, r)
	o.env.enter() // f goes on
	return err
}

func (o *processOperator[K, T, R]) Finish() error {
	if o.end == nil {
		return nil
	}
	o.env.enter()
	return o.env.own(o.ctx.tables[0].(keyedTable[K]).eachKey(func(key K) error {
		o.ctx.set(key, NoTimestamp)
		return o.end(&o.ctx, o.emit)
	}))
}

// Emit says when a Reduce or an Aggregate emits its results.
type Emit int

// When results are emitted.
const (
	EmitUpdates Emit = iota // the new result of the key after each record
	EmitAtEnd               // the result of each key once, at the end of input: nothing for an unbounded job
)

// Reduce combines the records of each key to one of the same type. id must not be empty.
func Reduce[K comparable, T any](s KeyedStream[K, T], id string, combine func(a, b T) T, when Emit) Stream[T] {
	return aggregate(s, id, "reduce", when, nil,
		func(acc *T, fresh bool, v T) {
			if fresh {
				*acc = v
				return
			}
			*acc = combine(*acc, v)
		},
		func(_ K, acc T) T { return acc })
}

// Aggregator folds the records of a key into an accumulator A and makes a result R of it.
type Aggregator[K comparable, T, A, R any] interface {
	// New is the accumulator of a key without records.
	New() A
	// Add returns the accumulator with one more record. It must not keep or change what acc refers to.
	Add(acc A, v T) A
	// Result is what is emitted for a key.
	Result(key K, acc A) R
}

// AccumulatorMigrator is an Aggregator whose accumulators had other types in older versions of the job, which schema rules do not cover.
type AccumulatorMigrator interface {
	// Migrations are those of accumulators; see Migration.
	Migrations() []Migration
}

// Aggregate folds the records of each key. id must not be empty.
func Aggregate[K comparable, T, A, R any](s KeyedStream[K, T], id string, agg Aggregator[K, T, A, R], when Emit) Stream[R] {
	var old []Migration
	if m, ok := agg.(AccumulatorMigrator); ok {
		old = m.Migrations()
	}
	return aggregate(s, id, "aggregate", when, old,
		func(acc *A, fresh bool, v T) {
			if fresh {
				*acc = agg.New()
			}
			*acc = agg.Add(*acc, v)
		},
		agg.Result)
}

func aggregate[K comparable, T, A, R any](s KeyedStream[K, T], id, kind string, when Emit, old []Migration, add func(acc *A, fresh bool, v T), result func(K, A) R) Stream[R] {
	state := NewValue[K, A]("accumulator").Migrate(old...)
	return keyed(s, &Node{ID: id, Kind: kind}, []State[K]{state}, func(base *keyedOperator[K, T], out Collector[R]) *Link {
		t := base.ctx.tables[0].(*valueTable[K, A])
		op := &aggregateOperator[K, T, A, R]{keyedOperator: base, table: t, updates: when == EmitUpdates, add: add, result: result, out: out}
		return &Link{Operator: op, In: Collector[T](op)}
	})
}

type aggregateOperator[K comparable, T, A, R any] struct {
	*keyedOperator[K, T]
	table   *valueTable[K, A]
	updates bool
	add     func(acc *A, fresh bool, v T)
	result  func(K, A) R
	out     Collector[R]
}

func (o *aggregateOperator[K, T, A, R]) Collect(ts Timestamp, v T) error {
	o.enterKey(ts, v)
	acc, fresh := o.table.rows.Ref(o.ctx.hash, o.ctx.key)
	if own := o.table.of.own; own == nil {
		o.add(acc, fresh, v)
	} else {
		before := *acc
		o.add(acc, fresh, v)
		*acc = own(*acc, before)
	}
	if !o.updates {
		return nil
	}
	return o.out.Collect(ts, o.result(o.ctx.key, *acc))
}

func (o *aggregateOperator[K, T, A, R]) Finish() error {
	if o.updates {
		return nil
	}
	return o.table.rows.Range(func(key K, acc A) error {
		o.env.enter()
		return o.out.Collect(NoTimestamp, o.result(key, acc))
	})
}

// keyedOperator is what all keyed operators have: the key of the current record, and states by key group.
type keyedOperator[K comparable, T any] struct {
	env *Env
	key func(T) K
	ctx Context[K]
}

func (o *keyedOperator[K, T]) enterKey(ts Timestamp, v T) {
	o.env.enter()
	o.ctx.set(o.key(v), ts)
}

// RunningKey is the key of the record in work, for the report of a panic.
func (o *keyedOperator[K, T]) RunningKey() string { return fmt.Sprint(o.ctx.key) }

// Open implements Operator.
func (o *keyedOperator[K, T]) Open() error {
	if err := o.openState(); err != nil {
		return err
	}
	if o.ctx.op.timers == nil {
		return nil
	}
	return o.env.fail(o.ctx.op.timers.load())
}

// openState makes the state ready, unless a restore has done that.
func (o *keyedOperator[K, T]) openState() error {
	if o.env.Host.disk == nil {
		return nil
	}
	return o.env.fail(o.env.Host.disk.Open())
}

// Close implements Operator.
func (o *keyedOperator[K, T]) Close() error {
	if o.env.Host.disk == nil {
		return nil
	}
	return o.env.fail(o.env.Host.disk.Close())
}

// Tick implements TimeListener.
func (o *keyedOperator[K, T]) Tick() (Timestamp, error) {
	op, next := o.ctx.op, MaxTimestamp
	for _, s := range op.sweeps {
		next = min(next, s.sweep(op.clock.now))
	}
	if op.timers == nil {
		return next, nil
	}
	if _, err := op.timers.fire(ProcessingTime, op.clock.now); err != nil {
		return next, o.env.own(err)
	}
	return min(next, op.timers.next(ProcessingTime)), nil
}

// AdvanceWatermark implements TimeListener.
func (o *keyedOperator[K, T]) AdvanceWatermark(ts Timestamp) (more bool, err error) {
	op := o.ctx.op
	op.watermark = max(op.watermark, ts)
	if op.timers == nil {
		return false, nil
	}
	more, err = op.timers.fire(EventTime, op.watermark)
	return more, o.env.own(err)
}

func (o *keyedOperator[K, T]) Schemas() []StateSchema {
	out := make([]StateSchema, len(o.ctx.tables))
	for i, t := range o.ctx.tables {
		out[i] = t.schema()
	}
	return out
}

func (o *keyedOperator[K, T]) SnapshotKeyed() (KeyedSnapshot, error) {
	if o.env.Host.disk == nil {
		return o.snapshotTables()
	}
	state, err := o.env.Host.disk.Operator.Snapshot(true)
	if err != nil {
		return nil, o.env.fail(err)
	}
	o.env.Host.disk.taking = state
	defer func() { o.env.Host.disk.taking = nil }()
	tables, err := o.snapshotTables()
	if err != nil {
		state.Release()
		return nil, err
	}
	return &diskKeyedSnapshot{tables, state}, nil
}

func (o *keyedOperator[K, T]) snapshotTables() (keyedSnapshot, error) {
	var snap keyedSnapshot
	for _, t := range o.ctx.tables {
		s, err := t.snapshot()
		if err != nil {
			snap.Release()
			return nil, o.env.fail(err)
		}
		snap = append(snap, s)
	}
	return snap, nil
}

func (o *keyedOperator[K, T]) RestoreGroup(group int, written []StateSchema, data []byte) error {
	if err := o.openState(); err != nil {
		return err
	}
	for _, w := range written {
		t := o.tableNamed(w.Name)
		if t == nil {
			return Permanent(o.env.fail(fmt.Errorf("the checkpoint has a state %q that the operator no longer declares", w.Name)))
		}
		rest, err := t.restore(group, w, data)
		if err != nil {
			return o.env.fail(fmt.Errorf("restore state %q: %w", w.Name, err))
		}
		data = rest
	}
	if len(data) != 0 {
		return o.env.fail(fmt.Errorf("restore key group %d: %d bytes left over", group, len(data)))
	}
	return nil
}

func (o *keyedOperator[K, T]) tableNamed(name string) table {
	for _, t := range o.ctx.tables {
		if t.schema().Name == name {
			return t
		}
	}
	return nil
}

// keyedSnapshot is the snapshots of an operator's states, in order of declaration.
type keyedSnapshot []tableSnapshot

func (s keyedSnapshot) AppendGroup(dst []byte, group int) ([]byte, error) {
	var err error
	for _, t := range s {
		if dst, err = t.appendGroup(dst, group); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func (s keyedSnapshot) ReleaseGroup(group int) {
	for _, t := range s {
		t.releaseGroup(group)
	}
}

func (s keyedSnapshot) Release() {
	for _, t := range s {
		t.release()
	}
}
