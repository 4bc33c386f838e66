package stream

import (
	"context"
	"time"
)

// Source is where records come from.
type Source[T any] interface {
	// Splits finds the parts of the input. It runs once, when the job is submitted, so that every subtask and every restart sees the same parts;
	// they are given to the subtasks in turn. An error refuses the submission. parallelism is a hint.
	Splits(ctx context.Context, parallelism int) ([][]byte, error)
	// Open makes the reader of one subtask for its splits. On a restore they are what Positions returned, else what Splits returned.
	Open(env SourceEnv) (Reader[T], error)
}

// SourceEnv is what a reader is opened with.
type SourceEnv struct {
	Job         string // name of the job
	JobID       string
	Operator    string
	Subtask     int
	Parallelism int
	Splits      [][]byte
	Restored    bool
	// Wake makes the runtime call Read again after WaitForWake. It may be called from any goroutine.
	Wake func()
}

// Reader reads the splits of one subtask. Its methods are called on the task's goroutine and must not block for long: a reader that waits
// for a network reads ahead on a goroutine of its own and says Wait.
type Reader[T any] interface {
	// Read emits at most max records and says what to do next.
	Read(out Collector[T], max int) (Next, error)
	// Positions returns what a later Open needs to go on exactly behind the last record that was emitted: an item for each unfinished split.
	Positions() ([][]byte, error)
	Close() error
}

// BacklogReporter is a Reader that knows when it works off a backlog: input that waited before the reader came to it, and for which throughput
// matters more than how soon each record is through. While any subtask says so the job's checkpoints are taken at the interval during backlog.
// It is asked when the reader is open and after each Read, on the task's goroutine, and the answer should change rarely.
type BacklogReporter interface {
	ProcessingBacklog() bool
}

// Next says when a reader wants to be called again. The zero value is More.
type Next struct {
	kind  nextKind
	until time.Time
}

type nextKind uint8

const (
	nextMore nextKind = iota
	nextEnd
	nextWait
)

// More: call Read again at once.
var More = Next{}

// End: the input is over; Read is not called again.
var End = Next{kind: nextEnd}

// WaitForWake: call Read again after SourceEnv.Wake.
var WaitForWake = Next{kind: nextWait}

// WaitUntil: call Read again at t, or earlier after SourceEnv.Wake.
func WaitUntil(t time.Time) Next { return Next{kind: nextWait, until: t} }

// Ended reports whether the input is over.
func (n Next) Ended() bool { return n.kind == nextEnd }

// Waiting reports whether the reader waits, and until when at most; the zero time means for Wake only.
func (n Next) Waiting() (bool, time.Time) { return n.kind == nextWait, n.until }

// Poller is how the runtime drives the source of a chain.
type Poller interface {
	// Poll lets the reader emit at most max records.
	Poll(max int) (Next, error)
	// Emitted is the number of records that were emitted so far.
	Emitted() int64
	// ProcessingBacklog is what the reader says of itself; see BacklogReporter.
	ProcessingBacklog() bool
}

// From adds a source to the job.
func From[T any](j *Job, id string, src Source[T]) Stream[T] {
	n := j.add(&Node{
		ID: id, Kind: "source", Signature: "-> " + typeName[T](), Stateful: true,
		Splits: src.Splits,
		Build: func(env *Env, outs []any) (*Link, error) {
			out, err := collector[T](outs)
			if err != nil {
				return nil, err
			}
			op := &sourceOperator[T]{env: env, src: src, out: emitCounter[T]{to: out}, splits: env.Splits}
			return &Link{Operator: op, Source: op}, nil
		},
	})
	return Stream[T]{job: j, node: n}
}

type sourceOperator[T any] struct {
	env    *Env
	src    Source[T]
	out    emitCounter[T]
	splits [][]byte
	reader Reader[T]
}

// emitCounter counts the records that pass.
type emitCounter[T any] struct {
	to Collector[T]
	n  int64
}

func (c *emitCounter[T]) Collect(ts Timestamp, v T) error {
	c.n++
	return c.to.Collect(ts, v)
}

func (o *sourceOperator[T]) RestoreItems(items [][]byte) error {
	o.splits = items
	return nil
}

func (o *sourceOperator[T]) Open() error {
	o.env.enter()
	r, err := o.src.Open(SourceEnv{
		Job: o.env.Job, JobID: o.env.JobID, Operator: o.env.Operator,
		Subtask: o.env.Subtask, Parallelism: o.env.Parallelism,
		Splits: o.splits, Restored: o.env.Restored, Wake: o.env.Wake,
	})
	o.reader = r
	return o.env.fail(err)
}

func (o *sourceOperator[T]) Poll(maxRecords int) (Next, error) {
	o.env.enter()
	next, err := o.reader.Read(&o.out, maxRecords)
	return next, o.env.own(err)
}

func (o *sourceOperator[T]) Emitted() int64 { return o.out.n }

func (o *sourceOperator[T]) ProcessingBacklog() bool {
	b, ok := o.reader.(BacklogReporter)
	if !ok {
		return false
	}
	o.env.enter()
	return b.ProcessingBacklog()
}

func (o *sourceOperator[T]) SnapshotItems(int64) (Items, error) {
	o.env.enter()
	items, err := o.reader.Positions()
	return Items{Items: items}, o.env.fail(err)
}

func (o *sourceOperator[T]) Close() error {
	if o.reader == nil {
		return nil
	}
	o.env.enter()
	return o.env.fail(o.reader.Close())
}
