package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
)

// Sink is where records go.
type Sink[T any] interface {
	// Open makes the writer of one subtask.
	Open(env SinkEnv) (Writer[T], error)
}

// Checker is a sink, or another thing, that can say at submission that it will not work.
type Checker interface {
	Check(ctx context.Context) error
}

// SinkEnv is what a writer is opened with.
type SinkEnv struct {
	Job         string
	JobID       string
	Operator    string
	Subtask     int
	Parallelism int
	Attempt     int
	Restored    bool
}

// Writer writes the records of one subtask. All methods are called on the task's goroutine.
//
// A writer that is only a Writer gives at-least-once output: after a failure the records since the last checkpoint come again. A writer that is
// a Committer too gives exactly-once output.
type Writer[T any] interface {
	Write(ts Timestamp, v T) error
	// Flush hands on everything written so far; it is called before each snapshot and at the end of input.
	Flush() error
	Close() error
}

// Committer is a writer with two phases: what was written becomes visible only when the checkpoint that it belongs to is durable.
type Committer interface {
	// Prepare ends the current transaction and returns what Commit needs to make it visible, possibly in another process. Nothing written: the zero value.
	Prepare(checkpoint int64) (Prepared, error)
	// Commit makes a transaction visible. It is called again after a crash, so committing twice must succeed.
	Commit(transaction []byte) error
	// Recover is called once after Open, when every transaction of the restored checkpoint that this subtask has got is committed. What earlier attempts of
	// this subtask have not prepared is not part of any checkpoint and is removed. What they have prepared must stay until the first Prepare: after
	// a change of parallelism it may be another subtask's to commit, which has not opened yet; with the first barrier all have.
	Recover() error
}

// Prepared is a transaction that only waits for its checkpoint.
type Prepared struct {
	Transaction []byte
	// Persist makes the transaction durable. It runs beside the task; the snapshot is acknowledged after it.
	Persist func() error
}

// To adds a sink. id must not be empty.
func To[T any](s Stream[T], id string, sink Sink[T]) {
	n := &Node{ID: id, Kind: "sink", Signature: typeName[T]() + " ->", Stateful: true}
	if c, ok := sink.(Checker); ok {
		n.Check = c.Check
	}
	n.Build = func(env *Env, _ []any) (*Link, error) {
		op := &sinkOperator[T]{env: env, sink: sink}
		return &Link{Operator: op, In: Collector[T](op)}, nil
	}
	s.job.add(n)
	s.connect(n, s.partitioning, newEdgeType[T](s.job, n))
}

type sinkOperator[T any] struct {
	env       *Env
	sink      Sink[T]
	writer    Writer[T]
	committer Committer // nil: the sink has one phase
	pending   []pendingCommit
}

// pendingCommit is a transaction whose checkpoint is not known to be durable.
type pendingCommit struct {
	checkpoint  int64
	transaction []byte
	persist     *persistOnce
}

// persistOnce runs Prepared.Persist until it has succeeded once. A checkpoint that is aborted while it persists leaves its transactions to the
// next one, which must not be acknowledged before they are durable.
type persistOnce struct {
	mu struct {
		sync.Mutex
		f func() error // nil: done
	}
}

func newPersistOnce(f func() error) *persistOnce {
	p := &persistOnce{}
	p.mu.f = f
	return p
}

// run is called from goroutines beside the task, possibly of two checkpoints at a time.
func (p *persistOnce) run() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.f == nil {
		return nil
	}
	if err := p.mu.f(); err != nil {
		return err
	}
	p.mu.f = nil
	return nil
}

func (o *sinkOperator[T]) Open() error {
	o.env.enter()
	w, err := o.sink.Open(SinkEnv{
		Job: o.env.Job, JobID: o.env.JobID, Operator: o.env.Operator, Subtask: o.env.Subtask,
		Parallelism: o.env.Parallelism, Attempt: o.env.Attempt, Restored: o.env.Restored,
	})
	if err != nil {
		return o.env.fail(err)
	}
	o.writer = w
	o.committer, _ = w.(Committer)
	if o.committer == nil {
		if len(o.pending) > 0 {
			return o.env.fail(Permanent(errors.New("the checkpoint has prepared output, but the sink no longer commits")))
		}
		return nil
	}
	// The restored checkpoint is durable, so everything that was prepared up to it must become visible.
	if err := o.commitUpTo(math.MaxInt64); err != nil {
		return err
	}
	return o.env.fail(o.committer.Recover())
}

func (o *sinkOperator[T]) Collect(ts Timestamp, v T) error {
	o.env.enter()
	if err := o.writer.Write(ts, v); err != nil {
		return o.env.fail(err)
	}
	return nil
}

func (o *sinkOperator[T]) Finish() error {
	o.env.enter()
	return o.env.fail(o.writer.Flush())
}

func (o *sinkOperator[T]) SnapshotItems(checkpoint int64) (Items, error) {
	o.env.enter()
	if err := o.writer.Flush(); err != nil {
		return Items{}, o.env.fail(err)
	}
	if o.committer == nil {
		return Items{}, nil
	}
	p, err := o.committer.Prepare(checkpoint)
	if err != nil {
		return Items{}, o.env.fail(fmt.Errorf("prepare checkpoint %d: %w", checkpoint, err))
	}
	if p.Transaction != nil {
		o.pending = append(o.pending, pendingCommit{checkpoint, p.Transaction, newPersistOnce(p.Persist)})
	}
	pending := slices.Clone(o.pending)
	items := Items{Persist: func() error { return persistAll(pending) }}
	for _, c := range pending {
		items.Items = append(items.Items, append(binary.AppendVarint(nil, c.checkpoint), c.transaction...))
	}
	return items, nil
}

func persistAll(pending []pendingCommit) error {
	for _, c := range pending {
		if err := c.persist.run(); err != nil {
			return err
		}
	}
	return nil
}

func (o *sinkOperator[T]) RestoreItems(items [][]byte) error {
	for _, item := range items {
		id, n := binary.Varint(item)
		if n <= 0 {
			return o.env.fail(errors.New("restore prepared output: truncated item"))
		}
		o.pending = append(o.pending, pendingCommit{id, item[n:], newPersistOnce(nil)})
	}
	slices.SortStableFunc(o.pending, func(a, b pendingCommit) int { return int(a.checkpoint - b.checkpoint) })
	return nil
}

func (o *sinkOperator[T]) CheckpointComplete(checkpoint int64) error { return o.commitUpTo(checkpoint) }

// CheckpointAborted keeps what was prepared: its records are before the barrier of the next checkpoint, so they are committed with that.
func (o *sinkOperator[T]) CheckpointAborted(int64) error { return nil }

// commitUpTo commits in ascending order; what was committed is forgotten even if a later one fails.
func (o *sinkOperator[T]) commitUpTo(checkpoint int64) error {
	o.env.enter()
	for len(o.pending) > 0 && o.pending[0].checkpoint <= checkpoint {
		p := o.pending[0]
		if err := o.committer.Commit(p.transaction); err != nil {
			return o.env.fail(fmt.Errorf("commit output of checkpoint %d: %w", p.checkpoint, err))
		}
		o.pending = o.pending[1:]
	}
	return nil
}

func (o *sinkOperator[T]) Close() error {
	if o.writer == nil {
		return nil
	}
	o.env.enter()
	return o.env.fail(o.writer.Close())
}
