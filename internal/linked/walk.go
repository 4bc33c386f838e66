package linked

import (
	"fmt"
	"iter"
	"slices"
)

// walk is a way through the map of one key. It ends with the entry that was the last one when it began, or with the one before if that is
// deleted meanwhile: what is put on the way is not visited.
type walk[K, U comparable] struct {
	key        K
	next, last U
	more       bool
}

// without tells the walk that an entry between prev and next is gone.
func (w *walk[K, U]) without(user, prev, next U) {
	switch {
	case !w.more:
	case user == w.next && user == w.last:
		w.more = false
	case user == w.next:
		w.next = next
	case user == w.last:
		w.last = prev
	}
}

// All goes through the map of key as it was when the walk began, in the order in which the entries were put, without those that are deleted before they
// are reached. The map may be changed on the way.
func (m *Map[K, U, V]) All(hash uint64, key K) iter.Seq2[U, V] {
	return func(yield func(U, V) bool) {
		head, ok := m.heads.Get(hash, key)
		if !ok {
			return
		}
		w := &walk[K, U]{key, head.First, head.Last, true}
		m.walks = append(m.walks, w)
		defer func() { m.walks = slices.DeleteFunc(m.walks, func(o *walk[K, U]) bool { return o == w }) }()
		for w.more {
			user := w.next
			e, ok := m.entries.Get(m.hashOf(hash, user), Member[K, U]{key, user})
			if !ok {
				panic(&BrokenError{key, user})
			}
			w.next, w.more = e.Next, user != w.last
			if !yield(user, e.Value) {
				return
			}
		}
	}
}

// Reader is a table as it was at one moment.
type Reader[K comparable, V any] interface {
	Get(hash uint64, key K) (v V, ok bool, err error)
}

// View is the maps as they were at one moment.
type View[K, U comparable, V any] struct {
	Entries        Reader[Member[K, U], Entry[U, V]]
	Hash           func(U) uint64
	MaxParallelism int
}

// Each calls f for each entry of the key with the given head, in order, until f returns an error, which it returns.
func (v View[K, U, V]) Each(hash uint64, key K, head Head[U], f func(user U, v V) error) error {
	for user, more := head.First, true; more; {
		e, ok, err := v.Entries.Get(HashOf(hash, v.Hash(user), v.MaxParallelism), Member[K, U]{key, user})
		if err != nil {
			return err
		}
		if !ok {
			return &BrokenError{key, user}
		}
		if err := f(user, e.Value); err != nil {
			return err
		}
		user, more = e.Next, e.Links&HasNext != 0
	}
	return nil
}

// BrokenError says that an entry is linked and is not there.
type BrokenError struct{ Key, User any }

// Error names the entry.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("the entry %v in the map of key %v is linked and is not there", e.User, e.Key)
}
