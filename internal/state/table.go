package state

import (
	"fmt"
	"reflect"

	"github.com/weirstream/weir/internal/job"
)

// Table maps keys to values for a range of key groups. Each key group is an extendible hash table of pages: a directory, indexed by
// the first bits of a key's fingerprint, points to pages; a full page is split in two by the next bit.
//
// Values are stored and copied by assignment: what a value points to (a slice, a map) is shared with the snapshots, so it must be
// replaced and never changed in place while a snapshot is open.
//
// Keys must equal themselves: a key that holds a NaN is never found again.
//
// A table belongs to one goroutine.
type Table[K comparable, V any] struct {
	groups         []group[K, V]
	owned          job.KeyGroupRange
	maxParallelism int
	length         int
	nothing        []*page[K, V] // directory of every group that never held an entry
	ownKey         func(K) K     // nil: keys are kept as they come

	// The rule of copy on write. Pages and directories carry the version in which they were made; a snapshot takes the current
	// version and begins the next. What has a version up to that of the newest open snapshot can be seen by it.
	version uint64
	frozen  uint64        // version of the newest snapshot known to be open; 0 is none
	open    []*mark[K, V] // ascending by version; released ones are dropped when frozen is in the way of a write

	recycles bool // pages have no pointers
	spare    []*page[K, V]
}

// group is the hash table of one key group.
type group[K comparable, V any] struct {
	number   int           // its place in Table.groups
	dir      []*page[K, V] // 1<<depth slots
	shift    uint8         // fingerprintBits - depth: a fingerprint shifted by it is its slot
	version  uint64        // of the arrays of dir and overflow; 0 is shared by all groups and always copied
	count    int
	overflow []*page[K, V] // pages behind full pages, named by page.next
	free     []uint32      // indexes of overflow that hold no page
}

func (g *group[K, V]) depth() uint8 { return fingerprintBits - g.shift }

// NewTable returns an empty table for the key groups of a subtask.
func NewTable[K comparable, V any](groups job.KeyGroupRange, maxParallelism int) *Table[K, V] {
	if groups.Start < 0 || groups.Len() < 0 || groups.End > maxParallelism {
		panic(fmt.Sprintf("state: key groups %v are not within max parallelism %d", groups, maxParallelism))
	}
	t := &Table[K, V]{
		groups:         make([]group[K, V], groups.Len()),
		owned:          groups,
		maxParallelism: maxParallelism,
		nothing:        []*page[K, V]{{}}, // version 0: the first write replaces it
		version:        1,
		recycles:       !hasPointers(reflect.TypeFor[page[K, V]]()),
	}
	for i := range t.groups {
		t.groups[i].number = i
		t.reset(&t.groups[i])
	}
	return t
}

// OwnKeys makes the table keep f(key) in the place of the key of a new entry: an equal key that does not hold on to memory of the caller.
func (t *Table[K, V]) OwnKeys(f func(K) K) { t.ownKey = f }

func (t *Table[K, V]) reset(g *group[K, V]) {
	*g = group[K, V]{number: g.number, dir: t.nothing, shift: fingerprintBits}
}

// Get returns the value of key, and whether there is one.
func (t *Table[K, V]) Get(hash uint64, key K) (V, bool) {
	g, f := t.group(hash), fingerprintOf(hash)
	p := g.dir[f>>(g.shift&31)]
	for {
		if e := p.get(f, key); e != nil {
			return e.value, true
		}
		if p.next == 0 {
			var zero V
			return zero, false
		}
		p = g.overflow[p.next-1]
	}
}

// Put sets the value of key.
func (t *Table[K, V]) Put(hash uint64, key K, v V) {
	ref, _ := t.Ref(hash, key)
	*ref = v
}

// Ref returns the place of key's value in the table, to be read and written. A key that is absent is inserted with the zero value, and
// fresh is true. The place is valid until the next call on the table.
func (t *Table[K, V]) Ref(hash uint64, key K) (v *V, fresh bool) {
	g, f := t.group(hash), fingerprintOf(hash)
	p := g.dir[f>>(g.shift&31)]
	if p == nil {
		return nil, false // never so; but now the compiler does not look for nil by a load of the page's first cache line
	}
	// The first candidate is the key but for one time in ten; the rest is kept out of here. While no snapshot is open the version, which is in
	// another cache line, is not looked at.
	b := &p.buckets[f.bucket()]
	if c := b.candidates(f); c != 0 && (t.frozen == 0 || p.version > t.frozen) {
		if e := &b.entries[firstOf(c)]; e.key == key {
			return &e.value, false
		}
	}
	return t.refSlow(g, f, key)
}

// refSlow is Ref where the key is absent, in an overflow page, or in a page that a snapshot may see.
func (t *Table[K, V]) refSlow(g *group[K, V], f fingerprint, key K) (*V, bool) {
	if at := g.locate(f, key); at.index >= 0 {
		return &t.writable(g, f, at.link).entry(at.index).value, false
	}
	if t.ownKey != nil {
		key = t.ownKey(key)
	}
	e := t.insert(g, f)
	e.key = key
	g.count++
	t.length++
	return &e.value, true
}

// Delete removes key and reports whether it was there.
func (t *Table[K, V]) Delete(hash uint64, key K) bool {
	g, f := t.group(hash), fingerprintOf(hash)
	at := g.locate(f, key)
	if at.index < 0 {
		return false
	}
	g.count--
	t.length--
	if g.count == 0 && len(g.dir) > 1 {
		t.reset(g)
		return true
	}
	t.remove(g, f, at)
	t.merge(g, f)
	return true
}

// Len is the number of entries.
func (t *Table[K, V]) Len() int { return t.length }

// Range calls f for each entry, key groups ascending, until f returns an error, which it returns. It visits the table as it was when
// Range was called: f may change the table freely and sees none of its own changes.
func (t *Table[K, V]) Range(f func(key K, v V) error) error {
	s := t.Snapshot()
	defer s.Release()
	for group := t.owned.Start; group < t.owned.End; group++ {
		if err := s.Range(group, f); err != nil {
			return err
		}
	}
	return nil
}

// group returns the group of a key with the given hash.
func (t *Table[K, V]) group(hash uint64) *group[K, V] {
	if i := uint(job.KeyGroupOf(hash, t.maxParallelism) - t.owned.Start); i < uint(len(t.groups)) {
		return &t.groups[i]
	}
	panic(foreignKey{hash, t.maxParallelism, t.owned})
}

// foreignKey is the assertion that a key of another subtask came here: the exchange and the state disagree about ownership, and going
// on would lose the key at the next restore.
type foreignKey struct {
	hash           uint64
	maxParallelism int
	owned          job.KeyGroupRange
}

// Error names the key group and what must have gone wrong.
func (e foreignKey) Error() string {
	return fmt.Sprintf("state: a key of key group %d came to the subtask that owns %v: records were partitioned by another hash or another max parallelism",
		job.KeyGroupOf(e.hash, e.maxParallelism), e.owned)
}
