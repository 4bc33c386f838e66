package stream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream/codec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// record is what a test collects.
type record[T any] struct {
	ts Timestamp
	v  T
}

// collecting is a collector that keeps what it gets. fail, when not nil, is its answer.
type collecting[T any] struct {
	got  []record[T]
	fail error
}

func (c *collecting[T]) Collect(ts Timestamp, v T) error {
	c.got = append(c.got, record[T]{ts, v})
	return c.fail
}

func (c *collecting[T]) values() (out []T) {
	for _, r := range c.got {
		out = append(out, r.v)
	}
	return out
}

// nowhere is a source for definitions whose other operators are tested.
type nowhere[T any] struct{}

func (nowhere[T]) Splits(context.Context, int) ([][]byte, error) { return nil, nil }
func (nowhere[T]) Open(SourceEnv) (Reader[T], error)             { return nil, errors.New("not to be opened") }

const testMaxParallelism = 16

func testEnv(operator string) *Env {
	return &Env{
		Job: "test", JobID: "j1", Operator: operator, Index: 3, Running: new(int), Attempt: 2,
		Parallelism: 1, MaxParallelism: testMaxParallelism, KeyGroups: job.KeyGroupRange{End: testMaxParallelism},
	}
}

// built is an operator that a test drives.
type built[In, Out any] struct {
	Operator
	in  Collector[In]
	out *collecting[Out]
	env *Env
}

// build makes the operator that def adds behind a source of In.
func build[In, Out any](t testing.TB, def func(Stream[In]) Stream[Out]) *built[In, Out] {
	t.Helper()
	j := NewJob("test", nil)
	s := def(From(j, "source", nowhere[In]{}))
	if err := j.Err(); err != nil {
		t.Fatal(err)
	}
	b := &built[In, Out]{out: &collecting[Out]{}, env: testEnv(s.node.ID)}
	link, err := s.node.Build(b.env, []any{Collector[Out](b.out)})
	if err != nil {
		t.Fatal(err)
	}
	b.Operator, b.in = link.Operator, link.In.(Collector[In])
	if err := b.Open(); err != nil {
		t.Fatal(err)
	}
	return b
}

// put gives records to the operator, with the timestamps 1, 2 and so on.
func (b *built[In, Out]) put(t *testing.T, in ...In) {
	t.Helper()
	for i, v := range in {
		if err := b.in.Collect(Timestamp(i+1), v); err != nil {
			t.Fatal(err)
		}
	}
	if len(in) > 0 && *b.env.Running != b.env.Index {
		t.Errorf("operator %d is marked as running, want %d", *b.env.Running, b.env.Index)
	}
}

func (b *built[In, Out]) expect(t *testing.T, want ...record[Out]) {
	t.Helper()
	if got := fmt.Sprint(b.out.got); got != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// groups snapshots the keyed state, by key group.
func (b *built[In, Out]) groups(t *testing.T) map[int][]byte {
	t.Helper()
	s, err := b.Operator.(KeyedStateful).SnapshotKeyed()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	out := map[int][]byte{}
	for g := range testMaxParallelism {
		if out[g], err = s.AppendGroup(nil, g); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// restore gives keyed state of another operator.
func (b *built[In, Out]) restore(written []StateSchema, groups map[int][]byte) error {
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		if err := b.Operator.(KeyedStateful).RestoreGroup(g, written, groups[g]); err != nil {
			return err
		}
	}
	return nil
}

func newEdge[T any](t testing.TB) *edgeType[T] {
	t.Helper()
	c, err := codec.For[T]()
	if err != nil {
		t.Fatal(err)
	}
	return &edgeType[T]{codec: c}
}

// must returns v, or fails the test.
func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
