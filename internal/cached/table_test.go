package cached_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.uber.org/goleak"

	"github.com/weirstream/weir/internal/cached"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/lsm"
	"github.com/weirstream/weir/stream/codec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const maxParallelism = 16

type pair struct{ A, B int32 }

// op is an operator with three tables.
type op struct {
	*cached.Operator
	text  *cached.Table[int, string]
	count *cached.Table[pair, int64]
	lists *cached.Table[string, []int] // not plain
}

func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func tableOf[K comparable, V any](t testing.TB, o *cached.Operator, name string, plain bool) *cached.Table[K, V] {
	t.Helper()
	return cached.NewTable(o, cached.TableConfig[K, V]{
		Name: name, Keys: must(codec.For[K]())(t), Values: must(codec.For[V]())(t), Hash: must(codec.Hash[K]())(t), Plain: plain,
	})
}

func newDisk(t testing.TB, fs vfs.FS) lsm.Disk {
	t.Helper()
	c := lsm.NewCache(1 << 20)
	t.Cleanup(c.Close)
	return lsm.Disk{Cache: c, FS: fs}
}

func newOp(t testing.TB, b *cached.Backend, dir string, groups job.KeyGroupRange) *op {
	t.Helper()
	o := &op{Operator: b.NewOperator(cached.OperatorConfig{
		Groups: groups, MaxParallelism: maxParallelism, Dir: func() (string, error) { return dir, os.MkdirAll(dir, 0o755) },
	})}
	o.text = tableOf[int, string](t, o.Operator, "text", true)
	o.count = tableOf[pair, int64](t, o.Operator, "count", true)
	o.lists = tableOf[string, []int](t, o.Operator, "lists", false)
	return o
}

// twin is what an operator should have.
type twin struct {
	text  map[int]string
	count map[pair]int64
	lists map[string][]int
}

func newTwin() *twin { return &twin{map[int]string{}, map[pair]int64{}, map[string][]int{}} }

func (w *twin) clone() *twin {
	c := &twin{maps.Clone(w.text), maps.Clone(w.count), map[string][]int{}}
	for k, v := range w.lists {
		c.lists[k] = slices.Clone(v)
	}
	return c
}

var (
	hashInt, _    = codec.Hash[int]()
	hashPair, _   = codec.Hash[pair]()
	hashString, _ = codec.Hash[string]()
)

func in(hash uint64, groups job.KeyGroupRange) bool {
	return groups.Contains(job.KeyGroupOf(hash, maxParallelism))
}

// clip leaves out what is in other key groups.
func (w *twin) clip(groups job.KeyGroupRange) {
	maps.DeleteFunc(w.text, func(k int, _ string) bool { return !in(hashInt(k), groups) })
	maps.DeleteFunc(w.count, func(k pair, _ int64) bool { return !in(hashPair(k), groups) })
	maps.DeleteFunc(w.lists, func(k string, _ []int) bool { return !in(hashString(k), groups) })
}

const keys = 4000

// step does something to both.
func (w *twin) step(t *testing.T, o *op, r *rand.Rand, groups job.KeyGroupRange) {
	t.Helper()
	k := r.IntN(keys)
	if r.IntN(2) == 0 {
		k = r.IntN(20) // some are hot
	}
	p, s := pair{int32(k), 7}, fmt.Sprint("key ", k)
	switch what := r.IntN(3); {
	case what == 0 && in(hashInt(k), groups):
		switch r.IntN(5) {
		case 0:
			o.text.Delete(hashInt(k), k)
			delete(w.text, k)
		case 1, 2:
			v := strings.Repeat("v", r.IntN(60)) + fmt.Sprint(r.Uint32())
			o.text.Put(hashInt(k), k, v)
			w.text[k] = v
		default:
			got, ok := o.text.Get(hashInt(k), k)
			if want, has := w.text[k]; got != want || ok != has {
				t.Fatalf("text %d is %q, %v, want %q, %v", k, got, ok, want, has)
			}
		}
	case what == 1 && in(hashPair(p), groups):
		ref, fresh := o.count.Ref(hashPair(p), p)
		if _, has := w.count[p]; fresh == has || *ref != w.count[p] {
			t.Fatalf("count %v is %d, fresh %v, want %d, %v", p, *ref, fresh, w.count[p], !has)
		}
		*ref++
		w.count[p]++
		if r.IntN(4) == 0 {
			o.count.Delete(hashPair(p), p)
			delete(w.count, p)
		}
	case what == 2 && in(hashString(s), groups):
		ref, _ := o.lists.Ref(hashString(s), s)
		*ref = append(*ref, k)
		w.lists[s] = append(w.lists[s], k)
		if len(*ref) > 20 {
			o.lists.Delete(hashString(s), s)
			delete(w.lists, s)
		}
	}
}

// rows is anything that can be gone through.
func collect[K comparable, V any](t *testing.T, each func(f func(K, V) error) error) map[K]V {
	t.Helper()
	out := map[K]V{}
	if err := each(func(k K, v V) error {
		if _, twice := out[k]; twice {
			t.Errorf("key %v comes twice", k)
		}
		out[k] = v
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func (w *twin) check(t *testing.T, o *op, snap *cached.Snapshot, groups job.KeyGroupRange, what string) {
	t.Helper()
	text := collect(t, func(f func(int, string) error) error { return eachOf(o.text, snap, groups, f) })
	count := collect(t, func(f func(pair, int64) error) error { return eachOf(o.count, snap, groups, f) })
	lists := collect(t, func(f func(string, []int) error) error { return eachOf(o.lists, snap, groups, f) })
	if !maps.Equal(text, w.text) || !maps.Equal(count, w.count) || !maps.EqualFunc(lists, w.lists, slices.Equal) {
		t.Fatalf("%s: there are %d, %d and %d entries, want %d, %d and %d, or some differ", what, len(text), len(count), len(lists), len(w.text), len(w.count), len(w.lists))
	}
	if snap == nil {
		return
	}
	for k := range 40 {
		if !in(hashInt(k), groups) {
			continue
		}
		got, ok, err := o.text.In(snap).Get(hashInt(k), k)
		if want, has := w.text[k]; got != want || ok != has || err != nil {
			t.Fatalf("%s: text %d is %q, %v, %v, want %q, %v", what, k, got, ok, err, want, has)
		}
	}
}

func eachOf[K comparable, V any](table *cached.Table[K, V], snap *cached.Snapshot, groups job.KeyGroupRange, f func(K, V) error) error {
	if snap == nil {
		return table.Range(f)
	}
	for g := groups.Start; g < groups.End; g++ {
		if err := table.In(snap).Range(g, f); err != nil {
			return err
		}
	}
	return nil
}

type old struct {
	snap *cached.Snapshot
	had  *twin
}

// An operator whose share of memory is far too small agrees with Go maps, and so do its snapshots, and operators that are restored from their files.
func TestOperator_AgreesWithMaps(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			b := cached.New(newDisk(t, nil), 64<<10)
			root, groups := t.TempDir(), job.KeyGroupRange{End: maxParallelism}
			o, w := newOp(t, b, filepath.Join(root, "0"), groups), newTwin()
			must(0, o.Open())(t)
			var olds []old
			for step := range 60_000 {
				w.step(t, o, r, groups)
				switch r.IntN(4000) {
				case 0:
					w.check(t, o, nil, groups, fmt.Sprint("step ", step))
				case 1, 2:
					olds = append(olds, old{must(o.Snapshot(r.IntN(2) == 0))(t), w.clone()})
				case 3:
					if len(olds) > 0 {
						i := r.IntN(len(olds))
						olds[i].had.check(t, o, olds[i].snap, groups, fmt.Sprint("a snapshot at step ", step))
						olds[i].snap.Release()
						olds = slices.Delete(olds, i, i+1)
					}
				case 4:
					for _, old := range olds {
						old.snap.Release()
					}
					olds = nil
					o, groups = restored(t, b, r, filepath.Join(root, fmt.Sprint(step+1)), o, groups)
					w.clip(groups)
				}
			}
			w.check(t, o, nil, groups, "the end")
			for _, old := range olds {
				old.had.check(t, o, old.snap, groups, "a snapshot at the end")
				old.snap.Release()
			}
			must(0, o.Close())(t)
			if s := b.Stats(); s.Evicted == 0 || s.Reads == 0 || s.Seals == 0 || s.Operators != 0 {
				t.Errorf("the store was not used: %+v", s)
			}
		})
	}
}

// restored is an operator with the state of o, which is closed, at the same or a smaller range of key groups.
func restored(t *testing.T, b *cached.Backend, r *rand.Rand, dir string, o *op, groups job.KeyGroupRange) (*op, job.KeyGroupRange) {
	t.Helper()
	snap := must(o.Snapshot(true))(t)
	files := must(snap.Files())(t)
	mine := groups
	if groups.Len() > 4 && r.IntN(2) == 0 {
		mine.Start += r.IntN(3)
		mine.End -= r.IntN(3)
	}
	parts := []cached.Part{{Files: files, First: mine.Start, End: mine.End, Whole: mine == groups}}
	if r.IntN(2) == 0 {
		middle := mine.Start + 1
		parts = []cached.Part{{Files: files, First: mine.Start, End: middle}, {Files: files, First: middle, End: mine.End}}
	}
	next := newOp(t, b, dir, mine)
	must(0, next.Restore(t.Context(), parts))(t)
	snap.Release()
	must(0, o.Close())(t)
	return next, mine
}

// To ask for what is not there looks at the disk once.
func TestTable_RemembersWhatIsNotThere(t *testing.T) {
	b := cached.New(newDisk(t, nil), 1<<20)
	o := newOp(t, b, t.TempDir(), job.KeyGroupRange{End: maxParallelism})
	must(0, o.Open())(t)
	o.text.Put(hashInt(1), 1, "one")
	snap := must(o.Snapshot(false))(t)
	snap.Release()
	for range 3 {
		if _, ok := o.text.Get(hashInt(2), 2); ok {
			t.Error("2 is there")
		}
		if ref, fresh := o.count.Ref(hashPair(pair{}), pair{}); !fresh && *ref == 0 {
			t.Error("a count is there")
		} else {
			*ref = 1
		}
	}
	if reads := b.Stats().Reads; reads != 2 {
		t.Errorf("the store was asked %d times, want once for each key", reads)
	}
	must(0, o.Close())(t)
}

// From one end of a sweep to the next each entry that stays is shown.
func TestTable_SweepShowsWhatStays(t *testing.T) {
	b := cached.New(newDisk(t, nil), 64<<10)
	o := newOp(t, b, t.TempDir(), job.KeyGroupRange{End: maxParallelism})
	must(0, o.Open())(t)
	r := rand.New(rand.NewPCG(5, 5))
	stay := map[int]bool{}
	ends := 0
	for step := range 30_000 {
		k := r.IntN(3000)
		switch {
		case k%3 == 0:
			o.text.Put(hashInt(k), k, "stays")
		case r.IntN(2) == 0:
			o.text.Put(hashInt(k), k, "goes")
		default:
			o.text.Delete(hashInt(k), k)
		}
		if step == 10_000 {
			for i := 0; i < 3000; i += 3 {
				o.text.Put(hashInt(i), i, "stays")
			}
		}
		if step < 10_000 {
			continue
		}
		if o.text.Sweep(10, func(k int, v string) {
			if v == "stays" {
				stay[k] = true
			}
		}) {
			if ends++; ends > 1 && len(stay) != 1000 {
				t.Fatalf("a sweep showed %d entries of 1000 that stay", len(stay))
			}
			clear(stay)
		}
	}
	if ends < 3 {
		t.Errorf("%d sweeps have ended, want some", ends)
	}
	must(0, o.Close())(t)
}

func TestOperator_StatesNeedDifferentNames(t *testing.T) {
	o := newOp(t, cached.New(newDisk(t, nil), 1<<20), t.TempDir(), job.KeyGroupRange{End: maxParallelism})
	tableOf[int, int](t, o.Operator, "text", true)
	if err := o.Open(); err == nil || !strings.Contains(err.Error(), "another name") {
		t.Errorf("got %v, want an error with the remedy", err)
	}
	must(0, o.Close())(t)
}

// When the disk is full the task hears of it in the next call that needs the disk, and in each later one; no snapshot is given.
func TestOperator_FullDiskEndsItsWork(t *testing.T) {
	var full atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
		}
		return nil
	}))
	o := newOp(t, cached.New(newDisk(t, fs), 64<<10), t.TempDir(), job.KeyGroupRange{End: maxParallelism})
	must(0, o.Open())(t)
	fill := func() (err error) {
		defer func() {
			if f, ok := recover().(*cached.Failure); ok {
				err = f
			}
		}()
		for k := range 20_000 {
			o.text.Put(hashInt(k), k, "some text")
		}
		return nil
	}
	must(0, fill())(t)
	full.Store(true)
	for range 2 {
		if err := fill(); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "--data-dir") {
			t.Errorf("got %v, want an error with the remedy", err)
		}
	}
	if _, err := o.Snapshot(true); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a snapshot: %v", err)
	}
	full.Store(false)
	if err := o.Close(); err != nil && !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
}
