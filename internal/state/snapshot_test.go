package state

import (
	"fmt"
	"maps"
	oldrand "math/rand" // quick takes no other
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"testing/quick"

	"github.com/weirstream/weir/internal/job"
)

// The race detector sees any page that is written while the reader may read it.
func TestSnapshot_ReadOnAnotherGoroutine_SeesItsMoment(t *testing.T) {
	const groups = 16
	rng := rand.New(rand.NewPCG(3, 4))
	w := &twin[uint64]{table: NewTable[uint64, int](allGroups(groups), groups), model: map[uint64]int{}, hash: hashUint, groups: groups}
	var readers sync.WaitGroup
	problems := make(chan string, 64)
	for round := range 40 {
		deletes := 10 + round%3*30
		s, model := w.table.Snapshot(), maps.Clone(w.model)
		readers.Go(func() {
			defer s.Release()
			for group := range groups {
				err := s.Range(group, func(k uint64, v int) error {
					if want, ok := model[k]; !ok || v != want {
						return fmt.Errorf("key %d is %d, want %d (present %t)", k, v, want, ok)
					}
					delete(model, k)
					return nil
				})
				if err != nil {
					problems <- err.Error()
					return
				}
				s.ReleaseGroup(group) // from here on the table may write to its pages
			}
			if len(model) != 0 {
				problems <- fmt.Sprintf("%d entries are missing", len(model))
			}
		})
		for range 1500 {
			w.step(t, rng, rng.Uint64N(2000), deletes)
		}
	}
	readers.Wait()
	close(problems)
	for p := range problems {
		t.Error(p)
	}
	w.finish(t)
}

func TestSnapshot_Copies_OnlyWhileItIsOpen(t *testing.T) {
	table := NewTable[uint64, int](allGroups(1), 1)
	table.Put(5, 5, 1)
	at := func() *page[uint64, int] { return table.groups[0].dir[0] }
	first := at()
	table.Put(5, 5, 2)
	if at() != first {
		t.Fatal("a page is copied although there is no snapshot")
	}
	a, b := table.Snapshot(), table.Snapshot()
	b.Release()
	table.Put(5, 5, 3)
	second := at()
	if second == first {
		t.Fatal("the page is not copied although an older snapshot is open")
	}
	table.Put(5, 5, 4)
	if at() != second {
		t.Fatal("the page is copied twice for one snapshot")
	}
	a.ReleaseGroup(0)
	table.Put(5, 5, 4)
	if at() != second {
		t.Fatal("the page is copied although its key group is released")
	}
	a.Release()
	a.Release()
	c := table.Snapshot()
	c.Release()
	table.Put(5, 5, 5)
	if at() != second || len(table.open) != 0 {
		t.Fatalf("the page is copied although all %d snapshots are released", len(table.open))
	}
}

func TestSnapshot_ReadOutsideItsTimeOrItsGroups_Panics(t *testing.T) {
	table := NewTable[uint64, int](job.KeyGroupRange{Start: 2, End: 4}, 8)
	s := table.Snapshot()
	if s.Groups() != (job.KeyGroupRange{Start: 2, End: 4}) {
		t.Fatalf("Groups() = %v", s.Groups())
	}
	for group := range 8 {
		outside := group < 2 || group >= 4
		if got := panics(func() { s.Len(group) }); got != outside {
			t.Errorf("group %d: panics %t, want %t", group, got, outside)
		}
	}
	s.ReleaseGroup(3)
	if panics(func() { s.Len(2) }) || !panics(func() { s.Len(3) }) || !panics(func() { s.ReleaseGroup(4) }) {
		t.Error("one key group was released, and that is the one that cannot be read")
	}
	s.Release()
	if !panics(func() { _ = s.Range(2, func(uint64, int) error { return nil }) }) {
		t.Error("a released snapshot can be read")
	}
}

func TestTable_Deletes_GiveMemoryBack(t *testing.T) {
	const n = 100_000
	table := NewTable[uint64, uint64](allGroups(4), 4)
	for k := range uint64(n) {
		table.Put(hashUint(k), k, k)
	}
	full := pages(table)
	for k := range uint64(n) {
		if k%100 != 0 {
			table.Delete(hashUint(k), k)
		}
	}
	checkStructure(t, table)
	if left := pages(table); left > full/8 {
		t.Errorf("%d of %d pages are left for a hundredth of the entries", left, full)
	}
	for k := uint64(0); k < n; k += 100 {
		table.Delete(hashUint(k), k)
	}
	if left := pages(table); left > 4 {
		t.Errorf("an empty table of 4 key groups has %d pages", left)
	}
}

func pages[K comparable, V any](table *Table[K, V]) int {
	different := map[*page[K, V]]bool{}
	for i := range table.groups {
		for _, p := range table.groups[i].dir {
			different[p] = true
		}
		for _, p := range table.groups[i].overflow {
			different[p] = p != nil
		}
	}
	return len(different)
}

func TestDirectory_OfEqualHashes_StaysInItsLimit(t *testing.T) {
	table := NewTable[uint64, uint64](allGroups(1), 1)
	const n = 2000
	for k := range uint64(n) {
		table.Put(7, k, k)
	}
	if slots := len(table.groups[0].dir); slots*minEntriesPerSlot > n {
		t.Errorf("%d slots for %d entries", slots, n)
	}
	for k := range uint64(n) {
		if v, ok := table.Get(7, k); !ok || v != k {
			t.Fatalf("Get(%d) = %d, %t", k, v, ok)
		}
	}
}

func TestPage_FindsWhatADumbSearchFinds(t *testing.T) {
	search := func(fingerprints [pageSlots]uint16, used uint8, wanted uint16) bool {
		var p page[uint64, int]
		want, key := (*entry[uint64, int])(nil), uint64(0)
		for i := range int(used % (pageSlots + 1)) {
			// Keys are tags with the index on top, so that equal tags are different keys.
			f := fingerprint(fingerprints[i])
			e := p.push(f)
			e.key = uint64(i)<<16 | uint64(f)
			if fingerprints[i] == wanted {
				want, key = e, e.key // the last one: the search must pass the others
			}
		}
		checkPage(t, &p)
		at := p.find(fingerprint(wanted), key)
		return p.get(fingerprint(wanted), key) == want && (at < 0 && want == nil || at >= 0 && want == p.entry(at))
	}
	// Few different tags and two homes, so that most searches hit, neighbours differ by one bit, and buckets are passed by.
	dense := func(f [pageSlots]uint16, used uint8, wanted uint16) bool {
		const bits = 3 | 1<<tagBits
		for i := range f {
			f[i] &= bits
		}
		return search(f, used, wanted&bits)
	}
	seeded := oldrand.New(oldrand.NewSource(1))
	for _, property := range []any{search, dense} {
		if err := quick.Check(property, &quick.Config{MaxCount: 20000, Rand: seeded}); err != nil {
			t.Error(err)
		}
	}
}

func TestPage_OfPlainTypes_HasNoPointers(t *testing.T) {
	if hasPointers(reflect.TypeFor[page[[16]byte, uint64]]()) {
		t.Error("the garbage collector must scan every page")
	}
	if !hasPointers(reflect.TypeFor[page[string, uint64]]()) {
		t.Error("the test does not see the pointer of a string")
	}
}
