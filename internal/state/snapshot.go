package state

import (
	"fmt"
	"math/bits"
	"sync/atomic"

	"github.com/weirstream/weir/internal/job"
)

// Snapshot is a table as it was at one moment. It may be read from any goroutine, also from several at once, until it is released.
type Snapshot[K comparable, V any] struct {
	owned          job.KeyGroupRange
	maxParallelism int
	mark           *mark[K, V]
	groups         []view[K, V]
}

// mark is what a table keeps of a snapshot, so that a released snapshot that is still referenced by the table costs nothing.
type mark[K comparable, V any] struct {
	version  uint64
	released atomic.Bool
	groups   []atomic.Bool // released ones, in the order of the table's groups
	// Pages that the table has replaced and that no newer open snapshot can see. They belong to the table's goroutine.
	replaced []*page[K, V]
}

// view is what a snapshot keeps of a group.
type view[K comparable, V any] struct {
	dir      []*page[K, V]
	overflow []*page[K, V]
	count    int
}

// Snapshot returns the state of the table now. Until it, or the key group, is released, each page that is written is copied first, once.
func (t *Table[K, V]) Snapshot() *Snapshot[K, V] {
	t.forgetReleased()
	s := &Snapshot[K, V]{
		owned:          t.owned,
		maxParallelism: t.maxParallelism,
		mark:           &mark[K, V]{version: t.version, groups: make([]atomic.Bool, len(t.groups))},
		groups:         make([]view[K, V], len(t.groups)),
	}
	for i := range t.groups {
		g := &t.groups[i]
		s.groups[i] = view[K, V]{g.dir, g.overflow, g.count}
	}
	t.open = append(t.open, s.mark)
	t.frozen = t.version
	t.version++
	return s
}

// visible reports whether an open snapshot can see what was made of a group in the given version.
func (t *Table[K, V]) visible(g *group[K, V], version uint64) bool {
	if version > t.frozen || version == 0 {
		return version == 0
	}
	t.forgetReleased()
	for i := len(t.open) - 1; i >= 0 && t.open[i].version >= version; i-- {
		if !t.open[i].groups[g.number].Load() {
			return true
		}
	}
	return false
}

func (t *Table[K, V]) forgetReleased() {
	open := t.open[:0]
	for _, m := range t.open {
		if m.released.Load() {
			t.recycle(m, open)
		} else {
			open = append(open, m)
		}
	}
	clear(t.open[len(open):])
	t.open = open
	t.frozen = 0
	if n := len(t.open); n > 0 {
		t.frozen = t.open[n-1].version
	}
}

// Groups is the range of key groups of the table.
func (s *Snapshot[K, V]) Groups() job.KeyGroupRange { return s.owned }

// Len is the number of entries of a key group.
func (s *Snapshot[K, V]) Len(group int) int { return s.view(group).count }

// Get returns the value that key had, and whether there was one.
func (s *Snapshot[K, V]) Get(hash uint64, key K) (V, bool) {
	v, f := s.view(job.KeyGroupOf(hash, s.maxParallelism)), fingerprintOf(hash)
	p := v.dir[int(f)*len(v.dir)>>fingerprintBits]
	for {
		if e := p.get(f, key); e != nil {
			return e.value, true
		}
		if p.next == 0 {
			var zero V
			return zero, false
		}
		p = v.overflow[p.next-1]
	}
}

// Range calls fn for each entry of a key group until fn returns an error, which it returns.
func (s *Snapshot[K, V]) Range(group int, fn func(key K, v V) error) error {
	v := s.view(group)
	depth := uint8(bits.TrailingZeros(uint(len(v.dir))))
	for i := 0; i < len(v.dir); {
		head := v.dir[i]
		i += 1 << (depth - head.depth) // the slots in between point to the same page
		for p := head; ; p = v.overflow[p.next-1] {
			if err := p.visit(fn); err != nil {
				return err
			}
			if p.next == 0 {
				break
			}
		}
	}
	return nil
}

// ReleaseGroup ends the snapshot for one key group, as Release does for all: of a large table a part is free again while the rest is still being
// read.
func (s *Snapshot[K, V]) ReleaseGroup(group int) {
	s.view(group) // the group is one of the snapshot's
	s.mark.groups[group-s.owned.Start].Store(true)
}

// Release ends the snapshot: the table no longer copies for it. Call it when all calls of Range, Get and Len have returned; after it they
// panic, since the pages may change under them. Release may be called from any goroutine and more than once.
func (s *Snapshot[K, V]) Release() { s.mark.released.Store(true) }

func (s *Snapshot[K, V]) view(group int) *view[K, V] {
	if s.mark.released.Load() {
		panic("state: a snapshot is read after its release")
	}
	if !s.owned.Contains(group) {
		panic(fmt.Sprintf("state: key group %d is read from a snapshot of %v", group, s.owned))
	}
	if s.mark.groups[group-s.owned.Start].Load() {
		panic(fmt.Sprintf("state: key group %d of a snapshot is read after its release", group))
	}
	return &s.groups[group-s.owned.Start]
}
