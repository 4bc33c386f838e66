package stream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirstream/weir/internal/cached"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/lsm"
	"github.com/weirstream/weir/stream/codec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(bothBackends{m}) }

// bothBackends runs all tests with state in memory, and then with state on disk, of which very little is in memory.
type bothBackends struct{ m *testing.M }

// onDisk is the directory of the tests that run with state on disk.
var onDisk struct {
	dir   string
	state *cached.Backend
	envs  []*Env
}

func (b bothBackends) Run() int {
	if code := b.m.Run(); code != 0 {
		return code
	}
	dir, err := os.MkdirTemp("", "weir-stream")
	if err != nil {
		panic(err)
	}
	blocks := lsm.NewCache(1 << 20)
	onDisk.dir, onDisk.state = dir, cached.New(lsm.Disk{Cache: blocks}, 64<<10)
	code := b.m.Run()
	for _, env := range onDisk.envs {
		if env.Host.disk != nil {
			_ = env.Host.disk.Close() // some tests leave snapshots open
		}
	}
	blocks.Close()
	if err := os.RemoveAll(dir); err != nil {
		panic(err)
	}
	return code
}

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
	env := &Env{
		Job: "test", JobID: "j1", Operator: operator, Index: 3, Running: new(int), Attempt: 2,
		Parallelism: 1, MaxParallelism: testMaxParallelism, KeyGroups: job.KeyGroupRange{End: testMaxParallelism},
	}
	if onDisk.state != nil {
		onDisk.envs = append(onDisk.envs, env)
		dir := filepath.Join(onDisk.dir, fmt.Sprint(len(onDisk.envs)))
		env.Host = Host{State: onDisk.state, Dir: func() (string, error) { return dir, os.MkdirAll(dir, 0o755) }}
	}
	return env
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
