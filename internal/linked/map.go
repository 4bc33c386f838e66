package linked

import (
	"github.com/weirstream/weir/internal/job"
)

// Rows is a table; what Ref returns is valid until the next call on any table.
type Rows[K comparable, V any] interface {
	Get(hash uint64, key K) (V, bool)
	Ref(hash uint64, key K) (v *V, fresh bool)
	Delete(hash uint64, key K)
}

// Member is the key of an entry's row.
type Member[K, U comparable] struct {
	Key  K
	User U // the key within the map
}

// Entry is the row of an entry.
type Entry[U comparable, V any] struct {
	Value      V
	Prev, Next U
	Links      Links
}

// Links says which links of an entry are set.
type Links uint8

// The links.
const (
	HasPrev Links = 1 << iota
	HasNext
)

// Head is the row of a key whose map is not empty.
type Head[U comparable] struct {
	First, Last U
	Len         int64
}

// Map is the maps of all keys of a subtask. The hash of a key says its key group, which its entries share.
type Map[K, U comparable, V any] struct {
	heads          Rows[K, Head[U]]
	entries        Rows[Member[K, U], Entry[U, V]]
	hash           func(U) uint64
	maxParallelism int
	ownUser        func(U) U           // nil: user keys are kept as they come
	ownValue       func(v, before V) V // nil: so are values
	walks          []*walk[K, U]       // that are under way
}

// Config is what a Map is made of.
type Config[K, U comparable, V any] struct {
	Heads          Rows[K, Head[U]]
	Entries        Rows[Member[K, U], Entry[U, V]]
	Hash           func(U) uint64
	MaxParallelism int
	// OwnUser and OwnValue give what is stored memory of its own; nil: there is nothing to do. See codec.Owned.
	OwnUser  func(U) U
	OwnValue func(v, before V) V
}

// New returns the maps in two tables.
func New[K, U comparable, V any](cfg Config[K, U, V]) *Map[K, U, V] {
	return &Map[K, U, V]{
		heads: cfg.Heads, entries: cfg.Entries, hash: cfg.Hash, maxParallelism: cfg.MaxParallelism, ownUser: cfg.OwnUser, ownValue: cfg.OwnValue,
	}
}

// HashOf is the hash of an entry's row: in the key group of the key, and spread by both.
func HashOf(key, user uint64, maxParallelism int) uint64 {
	return job.HashInGroupOf(key, job.MixHashes(key, user), maxParallelism)
}

func (m *Map[K, U, V]) hashOf(hash uint64, user U) uint64 {
	return HashOf(hash, m.hash(user), m.maxParallelism)
}

// Get returns what key's map has for user.
func (m *Map[K, U, V]) Get(hash uint64, key K, user U) (V, bool) {
	e, ok := m.entries.Get(m.hashOf(hash, user), Member[K, U]{key, user})
	return e.Value, ok
}

// Put sets what key's map has for user. A new entry goes behind the others; an old one stays where it is.
func (m *Map[K, U, V]) Put(hash uint64, key K, user U, v V) {
	at, h := Member[K, U]{key, user}, m.hashOf(hash, user)
	e, fresh := m.entries.Ref(h, at)
	if m.ownValue != nil {
		v = m.ownValue(v, e.Value)
	}
	e.Value = v
	if !fresh {
		return
	}
	if m.ownUser != nil {
		user = m.ownUser(user)
	}
	head, first := m.heads.Ref(hash, key)
	last := head.Last
	head.Last = user
	head.Len++
	if first {
		head.First = user
		return
	}
	before := m.entry(hash, key, last)
	before.Next = user
	before.Links |= HasNext
	e, _ = m.entries.Ref(h, at)
	e.Prev = last
	e.Links |= HasPrev
}

// entry is the row of an entry that must be there.
func (m *Map[K, U, V]) entry(hash uint64, key K, user U) *Entry[U, V] {
	e, fresh := m.entries.Ref(m.hashOf(hash, user), Member[K, U]{key, user})
	if fresh {
		panic(&BrokenError{key, user})
	}
	return e
}

// Delete takes an entry away and reports whether it was there.
func (m *Map[K, U, V]) Delete(hash uint64, key K, user U) bool {
	at, h := Member[K, U]{key, user}, m.hashOf(hash, user)
	e, ok := m.entries.Get(h, at)
	if !ok {
		return false
	}
	m.entries.Delete(h, at)
	m.unlink(hash, key, e)
	for _, w := range m.walks {
		if w.key == key {
			w.without(user, e.Prev, e.Next)
		}
	}
	return true
}

// unlink closes the gap that e leaves.
func (m *Map[K, U, V]) unlink(hash uint64, key K, e Entry[U, V]) {
	if e.Links == 0 {
		m.heads.Delete(hash, key)
		return
	}
	head, _ := m.heads.Ref(hash, key)
	head.Len--
	if e.Links&HasPrev == 0 {
		head.First = e.Next
	}
	if e.Links&HasNext == 0 {
		head.Last = e.Prev
	}
	if e.Links&HasPrev != 0 {
		before := m.entry(hash, key, e.Prev)
		before.Next, before.Links = e.Next, before.Links&^HasNext|e.Links&HasNext
	}
	if e.Links&HasNext != 0 {
		behind := m.entry(hash, key, e.Next)
		behind.Prev, behind.Links = e.Prev, behind.Links&^HasPrev|e.Links&HasPrev
	}
}

// Clear takes all entries of key away.
func (m *Map[K, U, V]) Clear(hash uint64, key K) {
	head, ok := m.heads.Get(hash, key)
	if !ok {
		return
	}
	m.heads.Delete(hash, key)
	for user, more := head.First, true; more; {
		at, h := Member[K, U]{key, user}, m.hashOf(hash, user)
		e, _ := m.entries.Get(h, at)
		m.entries.Delete(h, at)
		user, more = e.Next, e.Links&HasNext != 0
	}
	for _, w := range m.walks {
		if w.key == key {
			w.more = false
		}
	}
}

// Len is the number of entries of key.
func (m *Map[K, U, V]) Len(hash uint64, key K) int {
	head, _ := m.heads.Get(hash, key)
	return int(head.Len)
}
