package stream

import (
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/state"
	"github.com/weirstream/weir/stream/codec"
)

// rows is the table below a kind of state: entries of one subtask by key, partitioned by key group. It belongs to the task's goroutine.
type rows[K comparable, V any] interface {
	Get(hash uint64, key K) (V, bool)
	// Ref is the place of key's value, to be read and written until the next call on any table of the operator. An absent key is inserted with the
	// zero value, and fresh is true.
	Ref(hash uint64, key K) (v *V, fresh bool)
	// Put sets the value of key. It is cheaper than Ref where the old value does not matter.
	Put(hash uint64, key K, v V)
	// Delete takes the entry of key away, if there is one.
	Delete(hash uint64, key K)
	// Range calls f for each entry as it was when Range was called, key groups ascending, until f returns an error, which it returns. f may
	// change the table.
	Range(f func(key K, v V) error) error
	// Sweep calls f for about as many of the next entries as limit says, and reports whether it has come to the end; then it begins again. What it shows
	// may be older than what Get does, but an entry that stays from one end to the next is shown at least once. f must not change the table.
	Sweep(limit int, f func(key K, v V)) (ended bool)
	// Snapshot is what the table holds now, to be read beside the task.
	Snapshot() rowsSnapshot[K, V]
}

// rowsSnapshot is the content of a table at one moment. It may be read from any goroutine until it is released.
type rowsSnapshot[K comparable, V any] interface {
	Groups() job.KeyGroupRange
	Get(hash uint64, key K) (v V, ok bool, err error)
	// Range calls f for each entry of a key group until f returns an error, which it returns. f may call Get.
	Range(group int, f func(key K, v V) error) error
	// ReleaseGroup lets go of one key group, which is not read any more.
	ReleaseGroup(group int)
	Release()
}

// rowsSpec is what a table is made of.
type rowsSpec[K comparable, V any] struct {
	name   string // of the state, unique in its operator
	keys   codec.Codec[K]
	values codec.Codec[V]
	hash   func(K) uint64
	plain  bool // no user's code changes what keys and values refer to
}

// newRows makes the table of a state in the backend of the job. Its entries own their keys: the strings of a record are part of the text of its
// whole batch.
func newRows[K comparable, V any](env *Env, spec rowsSpec[K, V]) rows[K, V] {
	if env.Host.disk != nil {
		return newDiskRows(env, spec)
	}
	t := &memoryRows[K, V]{Table: state.NewTable[K, V](env.KeyGroups, env.MaxParallelism)}
	if own := ownKey(spec.keys); own != nil {
		t.OwnKeys(own)
	}
	return t
}

// memoryRows is the table of the memory backend.
type memoryRows[K comparable, V any] struct {
	*state.Table[K, V]
	swept state.Cursor
}

func (t *memoryRows[K, V]) Delete(hash uint64, key K) { t.Table.Delete(hash, key) }

func (t *memoryRows[K, V]) Sweep(limit int, f func(key K, v V)) (ended bool) {
	t.swept = t.Table.Sweep(t.swept, limit, f)
	return t.swept.Begins()
}

func (t *memoryRows[K, V]) Snapshot() rowsSnapshot[K, V] {
	return memorySnapshot[K, V]{t.Table.Snapshot()}
}

type memorySnapshot[K comparable, V any] struct{ *state.Snapshot[K, V] }

func (s memorySnapshot[K, V]) Get(hash uint64, key K) (v V, ok bool, err error) {
	v, ok = s.Snapshot.Get(hash, key)
	return v, ok, nil
}
