package cached

import (
	"fmt"
	"hash/fnv"
	"io"
	"reflect"
	"unsafe"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/state"
	"github.com/weirstream/weir/stream/codec"
)

// TableConfig is what a table is made of.
type TableConfig[K comparable, V any] struct {
	Name   string // unique in the operator; the same for as long as the state is
	Keys   codec.Codec[K]
	Values codec.Codec[V]
	Hash   func(K) uint64
	OwnKey func(K) K // nil: keys are kept as they come
	// Plain says that nobody changes what a stored key or value refers to. Else what was written is encoded when it is frozen, on the task's goroutine:
	// exact before fast.
	Plain bool
}

// Table is rows of an operator by key. It is what a table in memory is for those who use it, but that a method whose row is on disk may fail: then it
// panics with a *Failure, and so does each later one. A place that Ref gave is good until the next call on any table of the operator.
type Table[K comparable, V any] struct {
	op      *Operator
	cfg     TableConfig[K, V]
	prefix  [prefixBytes]byte // of the keys in the store: key group, table
	slots   *state.Table[K, slot[V]]
	changed int64 // entries that were written since the last freeze
	weight  weight
	recent  recency
	hand    state.Cursor // where to look next for what may be dropped
	look    func(key K, s slot[V])
	victims []victim[K]
	sweep   sweep[K, V]
}

// slot is an entry in memory.
type slot[V any] struct {
	value  V
	mark   uint32 // the generation in which it was written last; 0: it is as in the store
	absent bool   // there is no value
}

type victim[K comparable] struct {
	hash uint64
	key  K
}

const prefixBytes = 6

// NewTable adds a table to an operator, before that is opened.
func NewTable[K comparable, V any](op *Operator, cfg TableConfig[K, V]) *Table[K, V] {
	t := &Table[K, V]{op: op, cfg: cfg, slots: state.NewTable[K, slot[V]](op.cfg.Groups, op.cfg.MaxParallelism)}
	h := fnv.New32a()
	_, _ = h.Write([]byte(cfg.Name))
	h.Sum(t.prefix[:2])
	if cfg.OwnKey != nil {
		t.slots.OwnKeys(cfg.OwnKey)
	}
	var k K
	var s slot[V]
	t.weight = weight{
		fixed:    (int64(unsafe.Sizeof(k)+unsafe.Sizeof(s)) + slotOverhead) * 3 / 2, // pages are two thirds full on average
		variable: refers(reflect.TypeFor[K]()) || refers(reflect.TypeFor[V]()),
	}
	t.look = t.consider
	op.add(t)
	return t
}

// Get returns the value of key.
func (t *Table[K, V]) Get(hash uint64, key K) (V, bool) {
	if t.op.attention {
		t.op.attend()
	}
	if s, ok := t.slots.Get(hash, key); ok {
		t.recent.touch(hash)
		return s.value, !s.absent
	}
	return t.load(hash, key)
}

// load puts the entry of key into memory, also when there is none: to ask again costs nothing then.
func (t *Table[K, V]) load(hash uint64, key K) (v V, ok bool) {
	var s slot[V]
	t.read(hash, key, &s)
	place, _ := t.slots.Ref(hash, key)
	*place = s
	t.inserted(hash)
	return s.value, !s.absent
}

// Ref returns the place of key's value. If it has none there is the zero value, and fresh is true.
func (t *Table[K, V]) Ref(hash uint64, key K) (v *V, fresh bool) {
	if t.op.attention {
		t.op.attend()
	}
	s, missing := t.slots.Ref(hash, key)
	if missing {
		t.read(hash, key, s)
		t.inserted(hash)
	} else {
		t.recent.touch(hash)
	}
	fresh = s.absent
	s.absent = false
	if s.mark != t.op.generation {
		t.written(s)
	}
	return &s.value, fresh
}

// Old is the place of the value that Put would replace, if that is known without a look at the disk; else nil.
func (t *Table[K, V]) Old(hash uint64, key K) (v V) {
	s, _ := t.slots.Get(hash, key)
	return s.value
}

// Put sets the value of key, without a look at the disk.
func (t *Table[K, V]) Put(hash uint64, key K, v V) {
	if t.op.attention {
		t.op.attend()
	}
	s, missing := t.slots.Ref(hash, key)
	s.value, s.absent = v, false
	t.overwritten(s, hash, missing)
}

// Delete takes the value of key away, without a look at the disk.
func (t *Table[K, V]) Delete(hash uint64, key K) {
	if t.op.attention {
		t.op.attend()
	}
	s, missing := t.slots.Ref(hash, key)
	var nothing V
	s.value, s.absent = nothing, true
	t.overwritten(s, hash, missing)
}

func (t *Table[K, V]) overwritten(s *slot[V], hash uint64, missing bool) {
	if missing {
		t.inserted(hash)
	} else {
		t.recent.touch(hash)
	}
	if s.mark != t.op.generation {
		t.written(s)
	}
}

// written notes the first change of an entry since the last freeze.
func (t *Table[K, V]) written(s *slot[V]) {
	s.mark = t.op.generation
	t.changed++
	if t.weight.due() && !s.absent {
		if data, err := t.cfg.Values.Append(t.op.scratch[:0], s.value); err == nil {
			t.op.scratch = data
			t.weight.learn(len(data))
		}
	}
	t.op.changed(t.weight.of())
}

// inserted notes that there is one entry more in memory.
func (t *Table[K, V]) inserted(hash uint64) {
	t.recent.fit(t.slots.Len())
	t.recent.touch(hash)
	t.op.grown(t.weight.of())
}

// read fills a slot from the store.
func (t *Table[K, V]) read(hash uint64, key K, s *slot[V]) {
	if t.op.bare {
		s.absent = true
		return
	}
	t.op.backend.stats.reads.Add(1)
	at, err := t.storeKey(t.op.scratch[:0], job.KeyGroupOf(hash, t.op.cfg.MaxParallelism), key)
	t.op.scratch = at
	if err == nil {
		err = t.fetch(t.op.store, at, s)
	}
	if err != nil {
		s.absent = true
		t.op.fail(err)
	}
}

// getter is a Store or a View.
type getter interface {
	Get(key []byte) (value []byte, done io.Closer, err error)
}

func (t *Table[K, V]) fetch(from getter, at []byte, s *slot[V]) error {
	data, done, err := from.Get(at)
	if err != nil || done == nil {
		s.absent = true
		return err
	}
	t.weight.learn(len(at) - prefixBytes + len(data))
	s.value, err = t.decode(data)
	if e := done.Close(); err == nil {
		err = e
	}
	return err
}

func (t *Table[K, V]) decode(data []byte) (v V, err error) {
	v, rest, err := t.cfg.Values.Decode(data)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes left over", len(rest))
	}
	if err != nil {
		return v, fmt.Errorf("decode a value of state %s: %w", t.cfg.Name, err)
	}
	return v, nil
}

// storeKey appends the key in the store.
func (t *Table[K, V]) storeKey(dst []byte, group int, key K) ([]byte, error) {
	out, err := t.cfg.Keys.Append(append(dst, t.groupPrefix(group)...), key)
	if err != nil {
		return dst, fmt.Errorf("encode key %v of state %s: %w", key, t.cfg.Name, err)
	}
	return out, nil
}

func (t *Table[K, V]) groupPrefix(group int) []byte {
	p := t.prefix
	p[0], p[1] = byte(group>>8), byte(group)
	return p[:]
}

// decodeRow is the inverse of what is in the store.
func (t *Table[K, V]) decodeRow(at, data []byte) (key K, v V, err error) {
	key, rest, err := t.cfg.Keys.Decode(at[prefixBytes:])
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes left over", len(rest))
	}
	if err != nil {
		return key, v, fmt.Errorf("decode a key of state %s: %w", t.cfg.Name, err)
	}
	v, err = t.decode(data)
	return key, v, err
}

// Adopt takes over the rows that this table has in another store, whose keys and values were written with other codecs.
func (t *Table[K, V]) Adopt(from View, keys codec.Codec[K], values codec.Codec[V]) error {
	other := &Table[K, V]{op: t.op, cfg: TableConfig[K, V]{Name: t.cfg.Name, Keys: keys, Values: values}, prefix: t.prefix}
	for group := t.op.cfg.Groups.Start; group < t.op.cfg.Groups.End; group++ {
		lower := t.groupPrefix(group)
		if err := from.Range(lower, after(lower), func(at, data []byte) error {
			key, v, err := other.decodeRow(at, data)
			if err != nil {
				return err
			}
			hash := t.cfg.Hash(key)
			if got := job.KeyGroupOf(hash, t.op.cfg.MaxParallelism); got != group {
				return fmt.Errorf("key %v of state %s is in key group %d, the checkpoint has it in %d", key, t.cfg.Name, got, group)
			}
			t.Put(hash, key, v)
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// Range calls f for each entry as it was when Range was called, key groups ascending and keys by their encoding within them, until f returns an error,
// which it returns. f may change the table.
func (t *Table[K, V]) Range(f func(key K, v V) error) error {
	s, err := t.op.Snapshot(false)
	if err != nil {
		return err
	}
	defer s.Release()
	rows := &Rows[K, V]{t, s}
	for group := t.op.cfg.Groups.Start; group < t.op.cfg.Groups.End; group++ {
		if err := rows.Range(group, f); err != nil {
			return err
		}
	}
	return nil
}
