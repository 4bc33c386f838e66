package linked

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/weirstream/weir/internal/job"
)

const groups = 4

// table is Rows over a Go map. It holds the caller to what Ref promises: its place is no good after the next call.
type table[K comparable, V any] struct {
	rows map[K]V
	ref  *V
	key  K
	hash map[K]uint64

	fault error
}

func newTable[K comparable, V any]() *table[K, V] {
	return &table[K, V]{rows: map[K]V{}, hash: map[K]uint64{}}
}

// settle takes over what was written by way of the last Ref.
func (t *table[K, V]) settle() {
	if t.ref != nil {
		t.rows[t.key], t.ref = *t.ref, nil
	}
}

func (t *table[K, V]) seen(hash uint64, key K) {
	t.settle()
	if old, ok := t.hash[key]; ok && old != hash {
		panic(fmt.Sprintf("%v comes with two hashes", key))
	}
	t.hash[key] = hash
}

func (t *table[K, V]) Get(hash uint64, key K) (V, bool) {
	t.seen(hash, key)
	v, ok := t.rows[key]
	return v, ok
}

func (t *table[K, V]) Ref(hash uint64, key K) (*V, bool) {
	t.seen(hash, key)
	v, ok := t.rows[key]
	t.ref, t.key = &v, key
	t.rows[key] = v
	return t.ref, !ok
}

func (t *table[K, V]) Delete(hash uint64, key K) {
	t.seen(hash, key)
	delete(t.rows, key)
}

func mix(k int) uint64 { return uint64(k) * 0x9E3779B97F4A7C15 }

type world struct {
	*Map[int, int, string]
	heads   *table[int, Head[int]]
	entries *table[Member[int, int], Entry[int, string]]
	twin    map[int][]item
	id      int
}

// item is an entry of the twin; an entry that is deleted and put again is another one.
type item struct {
	user, id int
	value    string
}

func newWorld() *world {
	w := &world{heads: newTable[int, Head[int]](), entries: newTable[Member[int, int], Entry[int, string]](), twin: map[int][]item{}}
	w.Map = New(Config[int, int, string]{Heads: w.heads, Entries: w.entries, Hash: mix, MaxParallelism: groups})
	return w
}

func (w *world) find(key, user int) int {
	return slices.IndexFunc(w.twin[key], func(i item) bool { return i.user == user })
}

// step does something random to both.
func (w *world) step(t *testing.T, rng *rand.Rand, key int) {
	t.Helper()
	user := rng.IntN(12)
	i := w.find(key, user)
	switch what := rng.IntN(20); {
	case what < 9:
		w.id++
		v := fmt.Sprint(w.id)
		w.Put(mix(key), key, user, v)
		if i >= 0 {
			w.twin[key][i].value = v
		} else {
			w.twin[key] = append(w.twin[key], item{user, w.id, v})
		}
	case what < 16:
		if w.Delete(mix(key), key, user) != (i >= 0) {
			t.Fatalf("Delete of %d in %v says otherwise", user, w.twin[key])
		}
		if i >= 0 {
			w.twin[key] = slices.Delete(slices.Clone(w.twin[key]), i, i+1)
		}
	case what < 19:
		v, ok := w.Get(mix(key), key, user)
		if ok != (i >= 0) || ok && v != w.twin[key][i].value {
			t.Fatalf("Get of %d gives %q, %t, want %v", user, v, ok, w.twin[key])
		}
	default:
		w.Clear(mix(key), key)
		delete(w.twin, key)
	}
}

func (w *world) check(t *testing.T, keys int) {
	t.Helper()
	rows := 0
	for key := range keys {
		var got []item
		for user, v := range w.All(mix(key), key) {
			got = append(got, item{user: user, value: v})
		}
		want := slices.Clone(w.twin[key])
		for i := range want {
			want[i].id = 0
		}
		if !slices.Equal(got, want) || w.Len(mix(key), key) != len(want) {
			t.Fatalf("key %d has %v (%d), want %v", key, got, w.Len(mix(key), key), want)
		}
		rows += len(want)
	}
	w.heads.settle()
	w.entries.settle()
	if len(w.entries.rows) != rows {
		t.Fatalf("%d rows for %d entries", len(w.entries.rows), rows)
	}
	for key := range w.heads.rows {
		if len(w.twin[key]) == 0 {
			t.Fatalf("the empty map of key %d has a head", key)
		}
	}
}

func TestMap_RandomOperations_EqualsOrderedLists(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	w := newWorld()
	for range 20_000 {
		w.step(t, rng, rng.IntN(5))
		if rng.IntN(10) == 0 {
			w.check(t, 5)
		}
	}
}

// What is visited next is the first of those that were there at the beginning, are not visited yet, and are still there.
func TestMap_ChangedWhileItIsWalked_VisitsWhatStays(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 4))
		w := newWorld()
		for range 30 {
			w.step(t, rng, rng.IntN(2))
		}
		w.walk(t, rng, rng.IntN(2), 2)
		if len(w.walks) != 0 {
			t.Fatalf("seed %d: a walk is never over", seed)
		}
		w.check(t, 2)
	}
}

func (w *world) walk(t *testing.T, rng *rand.Rand, key, depth int) {
	t.Helper()
	left := slices.Clone(w.twin[key])
	next := func() (item, bool) {
		for len(left) > 0 {
			i := left[0]
			left = left[1:]
			if n := w.find(key, i.user); n >= 0 && w.twin[key][n].id == i.id {
				return w.twin[key][n], true
			}
		}
		return item{}, false
	}
	for user, v := range w.All(mix(key), key) {
		want, ok := next()
		if !ok || want.user != user || want.value != v {
			t.Fatalf("got %d %q, want %v, %t", user, v, want, ok)
		}
		for range rng.IntN(4) {
			w.step(t, rng, rng.IntN(2))
		}
		if depth > 0 && rng.IntN(4) == 0 {
			w.walk(t, rng, rng.IntN(2), depth-1)
		}
		if rng.IntN(30) == 0 {
			return
		}
	}
	if i, ok := next(); ok {
		t.Fatalf("%v was not visited", i)
	}
}

func TestHashOf_IsInTheGroupOfTheKey_AndSpread(t *testing.T) {
	seen := map[uint64]bool{}
	for key := range 200 {
		for user := range 200 {
			h := HashOf(mix(key), mix(user), 128)
			if job.KeyGroupOf(h, 128) != job.KeyGroupOf(mix(key), 128) {
				t.Fatalf("the entry %d of key %d is in another key group", user, key)
			}
			seen[h] = true
		}
	}
	if len(seen) < 200*200 {
		t.Errorf("%d hashes of 40,000 entries", len(seen))
	}
}

// reader is a table that is only read.
type reader[K comparable, V any] struct{ *table[K, V] }

func (r reader[K, V]) Get(hash uint64, key K) (V, bool, error) {
	v, ok := r.table.Get(hash, key)
	return v, ok, r.fault
}

func TestView_GoesThroughOneKey(t *testing.T) {
	w := newWorld()
	for _, user := range []int{3, 1, 2} {
		w.Put(mix(7), 7, user, fmt.Sprint("v", user))
		w.Put(mix(8), 8, user, "other")
	}
	w.heads.settle()
	w.entries.settle()
	v := View[int, int, string]{Entries: reader[Member[int, int], Entry[int, string]]{w.entries}, Hash: mix, MaxParallelism: groups}
	var got []string
	collect := func(user int, v string) error { got = append(got, fmt.Sprint(user, v)); return nil }
	if err := v.Each(mix(7), 7, w.heads.rows[7], collect); err != nil || strings.Join(got, " ") != "3v3 1v1 2v2" {
		t.Errorf("got %q, %v", got, err)
	}
	stop := errors.New("stop")
	if err := v.Each(mix(7), 7, w.heads.rows[7], func(int, string) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	delete(w.entries.rows, Member[int, int]{7, 1})
	w.entries.fault = errors.New("disk")
	if err := v.Each(mix(7), 7, w.heads.rows[7], collect); !errors.Is(err, w.entries.fault) {
		t.Errorf("got %v", err)
	}
	w.entries.fault = nil
	var broken *BrokenError
	if err := v.Each(mix(7), 7, w.heads.rows[7], collect); !errors.As(err, &broken) || broken.User != 1 {
		t.Errorf("a link into nothing gives %v", err)
	}
}

func TestMap_OwnsItsMemory(t *testing.T) {
	heads, entries := newTable[int, Head[string]](), newTable[Member[int, string], Entry[string, string]]()
	text := strings.Repeat("abcdefgh", 8)
	inText := func(s string) bool {
		p, start := uintptr(unsafe.Pointer(unsafe.StringData(s))), uintptr(unsafe.Pointer(unsafe.StringData(text)))
		return p >= start && p < start+uintptr(len(text))
	}
	m := New(Config[int, string, string]{
		Heads: heads, Entries: entries, Hash: func(s string) uint64 { return mix(int(s[0])) }, MaxParallelism: groups,
		OwnUser: strings.Clone, OwnValue: func(v, _ string) string { return strings.Clone(v) },
	})
	for i := range 5 {
		m.Put(mix(1), 1, text[i:i+3], text[i:i+5])
	}
	m.Delete(mix(1), 1, text[2:5])
	heads.settle()
	entries.settle()
	for _, h := range heads.rows {
		if inText(h.First) || inText(h.Last) {
			t.Error("a head keeps the caller's text alive")
		}
	}
	for _, e := range entries.rows { // their keys are the table's to own
		if e.Links&HasPrev != 0 && inText(e.Prev) || e.Links&HasNext != 0 && inText(e.Next) || inText(e.Value) {
			t.Errorf("the entry %+v keeps the caller's text alive", e)
		}
	}
}
