package connectortest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirstream/weir/stream"
)

// SinkTest is what the suite for sinks works on.
type SinkTest[T comparable] struct {
	// New makes the sink, as a process does that rebuilds the job: the sinks write to the same place.
	New func() stream.Sink[T]
	// Record makes the record of a number; different numbers give different records.
	Record func(i int) T
	// Visible reads what a consumer of the output sees.
	Visible func() []T
	// Leftovers names what is there beyond the visible output.
	Leftovers func() []string
}

// Sink runs a job with random records, checkpoints, aborts, crashes at every step and changes of parallelism. After each step the visible output must
// be within the last durable checkpoint, and exactly that when its commit is over. At the end of input everything is visible and nothing is left over.
func Sink[T comparable](t *testing.T, seed uint64, steps int, c SinkTest[T]) {
	t.Helper()
	r := &sinkRun[T]{t: t, SinkTest: c, rnd: rand.New(rand.NewPCG(seed, 2)), seed: seed, attempt: -1}
	r.restart()
	for range steps {
		switch n := r.rnd.IntN(20); {
		case n < 14:
			r.write()
		case n < 19:
			r.checkpoint(fate(r.rnd.IntN(int(fates))))
		default:
			r.restart()
		}
		r.check(false)
	}
	for _, op := range r.operators {
		r.must(op.(stream.Finisher).Finish())
	}
	r.checkpoint(completed)
	r.check(true)
	if left := c.Leftovers(); len(left) > 0 {
		t.Fatalf("seed %d: left over at the end: %v", seed, left)
	}
	r.close()
}

// fate is what happens to a checkpoint.
type fate int

const (
	completed       fate = iota
	aborted              // after everything was persisted
	crashBarrier         // only some subtasks have seen the barrier
	crashPrepared        // before anything was persisted
	crashPersisted       // after it, before the checkpoint was durable
	crashDurable         // before anybody was notified
	crashHalfCommit      // only some subtasks were notified
	notifiedTwice
	fates
)

type sinkRun[T comparable] struct {
	SinkTest[T]
	t    *testing.T
	rnd  *rand.Rand
	seed uint64

	attempt   int
	operators []stream.Operator
	inputs    []stream.Collector[T]
	written   int // records of the input so far: numbers 0 to written-1

	id      int64      // of the last checkpoint
	durable int        // records in the last durable checkpoint
	items   [][][]byte // of its subtasks
}

func (r *sinkRun[T]) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatalf("seed %d, attempt %d: %v", r.seed, r.attempt, err)
	}
}

// restart crashes what runs and continues from the last durable checkpoint.
func (r *sinkRun[T]) restart() {
	r.close()
	r.attempt++
	parallelism := max(len(r.items), 1)
	subtasks := r.items
	if r.rnd.IntN(2) == 0 || subtasks == nil {
		parallelism = 1 + r.rnd.IntN(4)
	}
	if parallelism != len(r.items) {
		subtasks = deal(r.rnd, slices.Concat(r.items...), parallelism, true)
	}
	r.written = r.durable
	r.operators, r.inputs = nil, nil
	for i := range parallelism {
		op, in := r.build(i, parallelism)
		r.operators, r.inputs = append(r.operators, op), append(r.inputs, in)
	}
	for _, i := range r.rnd.Perm(parallelism) {
		if r.durable > 0 || r.id > 0 {
			r.must(r.operators[i].(stream.ItemsStateful).RestoreItems(subtasks[i]))
		}
		r.must(r.operators[i].Open())
	}
	r.items = subtasks
	r.check(true)
}

func (r *sinkRun[T]) build(subtask, parallelism int) (stream.Operator, stream.Collector[T]) {
	j := stream.NewJob("job", nil)
	stream.To(stream.From(j, "source", noSource[T]{}), "sink", r.New())
	r.must(j.Err())
	link, err := j.Nodes()[1].Build(&stream.Env{
		Job: "job", JobID: "3f2a", Operator: "sink", Subtask: subtask, Parallelism: parallelism, MaxParallelism: 128,
		Attempt: r.attempt, Restored: r.attempt > 0, Running: new(int),
	}, nil)
	r.must(err)
	return link.Operator, link.In.(stream.Collector[T])
}

func (r *sinkRun[T]) close() {
	for _, op := range r.operators {
		r.must(op.Close())
	}
}

func (r *sinkRun[T]) write() {
	for range r.rnd.IntN(10) {
		r.must(r.inputs[r.rnd.IntN(len(r.inputs))].Collect(stream.NoTimestamp, r.Record(r.written)))
		r.written++
	}
}

func (r *sinkRun[T]) checkpoint(f fate) {
	r.id++
	items := make([][][]byte, len(r.operators))
	var persist []func() error
	for n, i := range r.rnd.Perm(len(r.operators)) {
		if f == crashBarrier && n == len(r.operators)/2 {
			r.restart()
			return
		}
		snap, err := r.operators[i].(stream.ItemsStateful).SnapshotItems(r.id)
		r.must(err)
		items[i] = snap.Items
		if snap.Persist != nil {
			persist = append(persist, snap.Persist)
		}
	}
	if f == crashPrepared {
		r.restart()
		return
	}
	for _, p := range persist {
		r.must(p())
	}
	switch f {
	case crashPersisted:
		r.restart()
		return
	case aborted:
		for _, op := range r.operators {
			r.must(op.(stream.CheckpointListener).CheckpointAborted(r.id))
		}
		return
	}
	r.durable, r.items = r.written, items
	if f == crashDurable {
		r.restart()
		return
	}
	for n, i := range r.rnd.Perm(len(r.operators)) {
		if f == crashHalfCommit && n == len(r.operators)/2 {
			r.restart()
			return
		}
		r.must(r.operators[i].(stream.CheckpointListener).CheckpointComplete(r.id))
		if f == notifiedTwice {
			r.must(r.operators[i].(stream.CheckpointListener).CheckpointComplete(r.id))
		}
	}
	r.check(true)
}

// check compares the visible output with the durable prefix of the input.
func (r *sinkRun[T]) check(exact bool) {
	r.t.Helper()
	var want []T
	for i := range r.durable {
		want = append(want, r.Record(i))
	}
	got := r.Visible()
	if exact {
		if diff := difference(got, want); diff != "" {
			r.t.Fatalf("seed %d, attempt %d, checkpoint %d: visible output: %s", r.seed, r.attempt, r.id, diff)
		}
		return
	}
	allowed := map[T]bool{}
	for _, v := range want {
		allowed[v] = true
	}
	for _, v := range got {
		if !allowed[v] {
			r.t.Fatalf("seed %d, attempt %d, checkpoint %d: %v is visible twice, or before its checkpoint is durable", r.seed, r.attempt, r.id, v)
		}
		delete(allowed, v)
	}
}

// noSource stands before the sink in the graph; it is never opened.
type noSource[T any] struct{}

func (noSource[T]) Splits(context.Context, int) ([][]byte, error) { return nil, nil }

func (noSource[T]) Open(stream.SourceEnv) (stream.Reader[T], error) {
	return nil, fmt.Errorf("the source of the suite is not for reading")
}
