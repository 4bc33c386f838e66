package state

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/weirstream/weir/internal/job"
)

// hashUint is a hash for tests (splitmix64).
func hashUint(k uint64) uint64 {
	k += 0x9E3779B97F4A7C15
	k = (k ^ k>>30) * 0xBF58476D1CE4E5B9
	k = (k ^ k>>27) * 0x94D049BB133111EB
	return k ^ k>>31
}

func allGroups(maxParallelism int) job.KeyGroupRange { return job.KeyGroupRange{End: maxParallelism} }

// contents reads a snapshot and checks that each entry is visited once, in its group, and that the lengths agree.
func contents[K comparable, V any](t *testing.T, s *Snapshot[K, V], groupOf func(K) int) map[K]V {
	t.Helper()
	got := map[K]V{}
	for group := s.Groups().Start; group < s.Groups().End; group++ {
		n := 0
		err := s.Range(group, func(k K, v V) error {
			n++
			if _, twice := got[k]; twice {
				return fmt.Errorf("key %v is visited twice", k)
			}
			if groupOf(k) != group {
				return fmt.Errorf("key %v of group %d is in group %d", k, groupOf(k), group)
			}
			got[k] = v
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if n != s.Len(group) {
			t.Fatalf("group %d: %d entries visited, Len says %d", group, n, s.Len(group))
		}
	}
	return got
}

func requireEqual[K, V comparable](t *testing.T, what string, got, want map[K]V) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	for k, v := range want {
		if w, ok := got[k]; !ok || w != v {
			t.Fatalf("%s: key %v is %v (present %t), want %v", what, k, w, ok, v)
		}
	}
	t.Fatalf("%s: %d entries, want %d", what, len(got), len(want))
}

// twin runs random operations on a table and on a map, with up to four open snapshots, each paired with a copy of the map.
type twin[K comparable] struct {
	table  *Table[K, int]
	model  map[K]int
	hash   func(K) uint64
	groups int
	open   []pair[K]
}

type pair[K comparable] struct {
	snapshot *Snapshot[K, int]
	model    map[K]int
	released map[int]bool // key groups
}

// check compares a snapshot with its copy, but for key groups that are released.
func (w *twin[K]) check(t *testing.T, what string, p pair[K]) {
	t.Helper()
	got := map[K]int{}
	for group := range w.groups {
		if p.released[group] {
			continue
		}
		if err := p.snapshot.Range(group, func(k K, v int) error { got[k] = v; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	want := maps.Clone(p.model)
	maps.DeleteFunc(want, func(k K, _ int) bool { return p.released[w.groupOf(k)] })
	requireEqual(t, what, got, want)
}

// releaseGroup lets go of one key group of a snapshot.
func (w *twin[K]) releaseGroup(p pair[K], group int) {
	if !p.released[group] {
		p.snapshot.ReleaseGroup(group)
		p.released[group] = true
	}
}

func (w *twin[K]) groupOf(k K) int { return job.KeyGroupOf(w.hash(k), w.groups) }

func (w *twin[K]) step(t *testing.T, rng *rand.Rand, key K, deletes int) {
	t.Helper()
	h := w.hash(key)
	want, known := w.model[key]
	switch op := rng.IntN(100); {
	case op < deletes:
		if got := w.table.Delete(h, key); got != known {
			t.Fatalf("Delete(%v) = %t, want %t", key, got, known)
		}
		delete(w.model, key)
	case op < 80:
		ref, fresh := w.table.Ref(h, key)
		if fresh == known || *ref != want {
			t.Fatalf("Ref(%v) = %d, fresh %t; want %d, known %t", key, *ref, fresh, want, known)
		}
		*ref = rng.Int()
		w.model[key] = *ref
	case op < 90:
		v := rng.Int()
		w.table.Put(h, key, v)
		w.model[key] = v
	default:
		if got, ok := w.table.Get(h, key); ok != known || got != want {
			t.Fatalf("Get(%v) = %d, %t; want %d, %t", key, got, ok, want, known)
		}
	}
	if w.table.Len() != len(w.model) {
		t.Fatalf("Len() = %d, want %d", w.table.Len(), len(w.model))
	}
}

func (w *twin[K]) snapshots(t *testing.T, rng *rand.Rand) {
	t.Helper()
	if len(w.open) < 4 && rng.IntN(2) == 0 {
		w.open = append(w.open, pair[K]{w.table.Snapshot(), maps.Clone(w.model), map[int]bool{}})
	}
	if len(w.open) > 0 {
		i := rng.IntN(len(w.open))
		if len(w.open[i].released) == 0 {
			requireEqual(t, "snapshot", contents(t, w.open[i].snapshot, w.groupOf), w.open[i].model)
		}
		w.check(t, "snapshot", w.open[i])
		w.releaseGroup(w.open[i], rng.IntN(w.groups))
		if rng.IntN(2) == 0 {
			w.open[i].snapshot.Release()
			w.open = append(w.open[:i], w.open[i+1:]...)
		}
	}
}

func (w *twin[K]) finish(t *testing.T) {
	t.Helper()
	for _, p := range w.open {
		w.check(t, "snapshot at the end", p)
		p.snapshot.Release()
	}
	s := w.table.Snapshot()
	defer s.Release()
	requireEqual(t, "table at the end", contents(t, s, w.groupOf), w.model)
	checkStructure(t, w.table)
}

func TestTable_RandomOperations_EqualAMapAndItsSnapshots(t *testing.T) {
	hashes := map[string]func(uint64) uint64{
		"good":             hashUint,
		"identity":         func(k uint64) uint64 { return k },
		"constant":         func(uint64) uint64 { return 42 },
		"two values":       func(k uint64) uint64 { return hashUint(k % 2) },
		"equal high bits":  func(k uint64) uint64 { return k % 64 },
		"one group in use": func(k uint64) uint64 { return hashUint(k) / 7 * 7 },
	}
	for name, hash := range hashes {
		for _, groups := range []int{1, 7, 128} {
			t.Run(fmt.Sprintf("%s/%d", name, groups), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(groups), uint64(len(name))))
				w := &twin[uint64]{table: NewTable[uint64, int](allGroups(groups), groups), model: map[uint64]int{}, hash: hash, groups: groups}
				// The table grows, is nearly emptied and grows again.
				for phase, deletes := range []int{5, 45, 75, 10} {
					for i := range 6000 {
						w.step(t, rng, rng.Uint64N(1500), deletes)
						if i%100 == 0 {
							w.snapshots(t, rng)
						}
					}
					if t.Failed() {
						t.Fatalf("phase %d", phase)
					}
				}
				w.finish(t)
			})
		}
	}
}

func TestTable_StringKeys_EqualAMapAndItsSnapshots(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	hash := func(k string) uint64 { return hashUint(uint64(len(k))<<32 | uint64(k[0])) }
	w := &twin[string]{table: NewTable[string, int](allGroups(16), 16), model: map[string]int{}, hash: hash, groups: 16}
	for i := range 20000 {
		w.step(t, rng, fmt.Sprint(rng.IntN(5000)), 20)
		if i%200 == 0 {
			w.snapshots(t, rng)
		}
	}
	w.finish(t)
}

// checkPage checks the rules of buckets: the first slots are taken, and who is not at home was passed by full buckets.
func checkPage[K comparable, V any](t *testing.T, p *page[K, V]) {
	t.Helper()
	used := 0
	for b := range p.buckets {
		n := p.buckets[b].count()
		used += n
		for i := range bucketSlots {
			tag := uint8(p.buckets[b].tags >> (8 * i))
			if taken := i < n; taken != (tag != 0) {
				t.Fatalf("slot %d of a bucket with %d entries has tag %x", i, n, tag)
			} else if !taken {
				continue
			}
			for home := p.buckets[b].fingerprint(i).bucket(); home != b; home = (home + 1) & bucketMask {
				if p.passed>>home&1 == 0 {
					t.Fatalf("an entry in bucket %d has passed by bucket %d, which does not say so", b, home)
				}
			}
		}
	}
	if used != int(p.used) {
		t.Fatalf("a page of %d entries has %d in its buckets", p.used, used)
	}
}

// checkStructure checks what the package promises of its layout.
func checkStructure[K comparable, V any](t *testing.T, table *Table[K, V]) {
	t.Helper()
	total := 0
	for n := range table.groups {
		g := &table.groups[n]
		if len(g.dir) != 1<<g.depth() {
			t.Fatalf("group %d: directory of %d slots at depth %d", n, len(g.dir), g.depth())
		}
		count, chained := 0, 0
		for i := 0; i < len(g.dir); {
			head := g.dir[i]
			span := 1 << (g.depth() - head.depth)
			for j := i; j < i+span; j++ {
				if g.dir[j] != head {
					t.Fatalf("group %d: slot %d does not point to the page of slot %d", n, j, i)
				}
			}
			for p := head; ; p = g.overflow[p.next-1] {
				count += int(p.used)
				checkPage(t, p)
				if p.next == 0 {
					break
				}
				chained++
				if p.used != pageSlots {
					t.Fatalf("group %d slot %d: a page with %d entries has a page behind it", n, i, p.used)
				}
			}
			i += span
		}
		if count != g.count || chained != len(g.overflow)-len(g.free) {
			t.Fatalf("group %d: %d entries in pages, count is %d; %d chained pages of %d with %d free", n, count, g.count, chained, len(g.overflow), len(g.free))
		}
		total += count
	}
	if total != table.Len() {
		t.Fatalf("%d entries in groups, Len is %d", total, table.Len())
	}
}

func TestTable_GrowsToAMillion(t *testing.T) {
	const n = 1_000_000
	table := NewTable[uint64, uint64](allGroups(128), 128)
	for k := range uint64(n) {
		ref, fresh := table.Ref(hashUint(k), k)
		if !fresh {
			t.Fatalf("key %d was there already", k)
		}
		*ref = k * 3
	}
	for k := range uint64(n) {
		if v, ok := table.Get(hashUint(k), k); !ok || v != k*3 {
			t.Fatalf("Get(%d) = %d, %t", k, v, ok)
		}
	}
	if _, ok := table.Get(hashUint(n), n); ok || table.Len() != n {
		t.Fatalf("Len() = %d, key %d present %t", table.Len(), n, ok)
	}
	checkStructure(t, table)
}

func TestTable_DeletedKey_ComesBackWithTheZeroValue(t *testing.T) {
	table := NewTable[uint64, [3]int](allGroups(4), 4)
	for round := range 3 {
		for k := range uint64(1000) {
			ref, fresh := table.Ref(hashUint(k), k)
			if !fresh || *ref != [3]int{} {
				t.Fatalf("round %d: Ref(%d) = %v, fresh %t", round, k, *ref, fresh)
			}
			*ref = [3]int{1, 2, int(k)}
		}
		for k := range uint64(1000) {
			if !table.Delete(hashUint(k), k) || table.Delete(hashUint(k), k) {
				t.Fatalf("round %d: key %d is not deleted exactly once", round, k)
			}
		}
		if table.Len() != 0 {
			t.Fatalf("round %d: %d entries left", round, table.Len())
		}
	}
}

func TestTable_Range_VisitsTheMomentOfTheCall(t *testing.T) {
	table := NewTable[uint64, uint64](allGroups(8), 8)
	const n = 500
	for k := range uint64(n) {
		table.Put(hashUint(k), k, k)
	}
	seen, last := 0, 0
	err := table.Range(func(k, v uint64) error {
		seen++
		if k >= n || v != k {
			return fmt.Errorf("visited %d = %d", k, v)
		}
		group := job.KeyGroupOf(hashUint(k), 8)
		if group < last {
			return fmt.Errorf("group %d after %d", group, last)
		}
		last = group
		// Changes of the visited key, of its neighbour, and growth.
		if k%2 == 0 {
			table.Delete(hashUint(k), k)
		} else {
			table.Put(hashUint(k), k, 7)
		}
		table.Put(hashUint(k^1), k^1, 8)
		table.Put(hashUint(k+n), k+n, 9)
		return nil
	})
	if err != nil || seen != n {
		t.Fatalf("%d entries visited, want %d: %v", seen, n, err)
	}
	if table.forgetReleased(); table.frozen != 0 {
		t.Fatal("Range left its snapshot open")
	}
}

func TestTable_Range_StopsAtTheFirstError(t *testing.T) {
	table := NewTable[uint64, uint64](allGroups(8), 8)
	for k := range uint64(100) {
		table.Put(hashUint(k), k, k)
	}
	stop, seen := errors.New("stop"), 0
	err := table.Range(func(uint64, uint64) error {
		if seen++; seen == 10 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || seen != 10 {
		t.Fatalf("%d entries visited, error %v", seen, err)
	}
}

func TestTable_Range_HasTheSameOrderAfterTheSameHistory(t *testing.T) {
	order := func() []uint64 {
		table := NewTable[uint64, uint64](allGroups(8), 8)
		for k := range uint64(3000) {
			table.Put(hashUint(k), k, k)
			if k%3 == 0 {
				table.Delete(hashUint(k/2), k/2)
			}
		}
		var keys []uint64
		if err := table.Range(func(k, _ uint64) error { keys = append(keys, k); return nil }); err != nil {
			t.Fatal(err)
		}
		return keys
	}
	a, b := order(), order()
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("entry %d is %d, then %d", i, a[i], b[i])
		}
	}
}

func TestTable_KeyOfAnotherSubtask_Panics(t *testing.T) {
	table := NewTable[uint64, int](job.KeyGroupRange{Start: 2, End: 4}, 8)
	for group := range uint64(8) {
		for name, call := range map[string]func(){
			"Get":    func() { table.Get(group, group) },
			"Ref":    func() { table.Ref(group, group) },
			"Put":    func() { table.Put(group, group, 1) },
			"Delete": func() { table.Delete(group, group) },
		} {
			if got, want := panics(call), group < 2 || group >= 4; got != want {
				t.Errorf("%s of a key of group %d: panics %t, want %t", name, group, got, want)
			}
		}
	}
}

func panics(f func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	f()
	return false
}
