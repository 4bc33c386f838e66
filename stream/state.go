package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream/codec"
)

// State is a declared state of a keyed operator, for keys of type K. A declaration belongs to one operator.
type State[K comparable] interface {
	name() string
	bind(index int, operator string) error
	newTable(env *Env, op *operatorContext, keys keyForm[K]) table
}

// The kinds of state, as they are in StateSchema.Kind and so in checkpoints.
const (
	kindValue       = "value"
	kindReducing    = "reducing"
	kindAggregating = "aggregating"
	kindList        = "list"
	kindMap         = "map"

	kindEventTimers      = "event-timers"
	kindProcessingTimers = "processing-timers"
)

// declaration is what the kinds of state have in common: V is what is stored for a key.
type declaration[K comparable, V any] struct {
	id       string
	kind     string
	index    int
	operator string
	codec    codec.Codec[V]
	own      func(v, before V) V // nil: there is nothing that a stored value must have of its own
	plain    bool                // nobody changes what a stored value refers to
	err      error

	// Of what expires; nil: it does not.
	ttl  *ttl
	live func(v V, now Timestamp) (V, liveness)
	// The codecs of what was written without times, or with them, where it is not so now.
	untimed  func(written StateSchema, now Timestamp) (codec.Codec[V], error)
	timeless func(written StateSchema) (codec.Codec[V], error) // nil: the time follows each value
}

// declare is the declaration of a state whose stored values come from the user's code as they are.
func declare[K comparable, V any](name, kind string) declaration[K, V] {
	d := declaration[K, V]{id: name, kind: kind, plain: codec.Plain[V]()}
	if d.codec, d.err = codec.For[V](); d.err == nil {
		d.own = codec.Owned(d.codec)
	}
	return d
}

// table is the state in the subtask that c belongs to.
func (d *declaration[K, V]) table(c *Context[K]) *valueTable[K, V] {
	if d.index < len(c.tables) {
		if t, ok := c.tables[d.index].(*valueTable[K, V]); ok && t.of == d {
			return t
		}
	}
	panic(d.foreign())
}

func (d *declaration[K, V]) foreign() string {
	return fmt.Sprintf("state %q is not a state of the operator that uses it: name it in Process", d.id)
}

func (d *declaration[K, V]) name() string { return d.id }

func (d *declaration[K, V]) bind(index int, operator string) error {
	switch {
	case d.err != nil:
		return fmt.Errorf("state %q of operator %s: %w", d.id, operator, d.err)
	case d.operator != "":
		return fmt.Errorf("state %q is declared for operator %s and for %s: each needs a declaration of its own", d.id, d.operator, operator)
	case d.id == "":
		return fmt.Errorf("a state of operator %s has no name", operator)
	}
	d.index, d.operator = index, operator
	return nil
}

func (d *declaration[K, V]) newTable(env *Env, op *operatorContext, keys keyForm[K]) table {
	t := newValueTable(env, d, keys)
	t.clock = op.clock
	if d.ttl != nil {
		t.passes = newPasses(d.ttl)
		op.sweeps = append(op.sweeps, t)
	}
	return t
}

func (d *declaration[K, V]) clear(c *Context[K]) {
	d.table(c).rows.Delete(c.hash, c.key)
}

// Value is a state that holds one value for each key. What a value refers to must not be changed once it was set: set another value.
type Value[K comparable, V any] struct{ cell[K, V] }

// NewValue declares a value state. The name is part of the checkpoint: it must stay the same between versions.
func NewValue[K comparable, V any](name string) *Value[K, V] {
	return &Value[K, V]{declareCell[K, V](name, kindValue)}
}

// Get returns the value of the current key.
func (s *Value[K, V]) Get(c *Context[K]) (V, bool) { return s.get(c) }

// Set gives the current key a value.
func (s *Value[K, V]) Set(c *Context[K], v V) { s.put(c, v) }

// Clear takes the value of the current key away.
func (s *Value[K, V]) Clear(c *Context[K]) { s.clear(c) }

// table is a state of one subtask, whatever its kind and its type.
type table interface {
	schema() StateSchema
	snapshot() (tableSnapshot, error)
	check(written StateSchema) error
	restore(group int, written StateSchema, data []byte) (rest []byte, err error)
}

// keyedTable is a table that knows which keys have state in it.
type keyedTable[K comparable] interface {
	eachKey(f func(K) error) error
}

// tableSnapshot is a consistent view of a table.
type tableSnapshot interface {
	appendGroup(dst []byte, group int) ([]byte, error)
	releaseGroup(group int)
	release()
}

// valueTable holds one stored value for each key, which is what every kind of state comes to.
type valueTable[K comparable, V any] struct {
	of    *declaration[K, V]
	keys  keyForm[K]
	rows  rows[K, V]
	plain bool                       // a snapshot may be encoded later: no user's code changes what its entries refer to
	old   func(hash uint64, key K) V // the value that is replaced, as far as that is known without a look at a disk; nil: in memory

	maxParallelism int
	clock          *Clock

	// Of a table whose entries expire.
	passes  passes
	expired []K // found in this part
}

func newValueTable[K comparable, V any](env *Env, of *declaration[K, V], keys keyForm[K]) *valueTable[K, V] {
	plain := codec.Plain[K]() && of.plain
	t := &valueTable[K, V]{
		of: of, keys: keys,
		rows:           newRows(env, rowsSpec[K, V]{name: of.id, keys: keys.codec, values: of.codec, hash: keys.hash, plain: plain}),
		maxParallelism: env.MaxParallelism,
		plain:          plain || env.Host.disk != nil, // what is on disk is encoded already
	}
	if d, ok := t.rows.(*diskRows[K, V]); ok {
		t.old = d.Old
	}
	return t
}

func (t *valueTable[K, V]) set(hash uint64, key K, v V) {
	switch {
	case t.of.own == nil:
		t.rows.Put(hash, key, v)
	case t.old != nil:
		t.rows.Put(hash, key, t.of.own(v, t.old(hash, key)))
	default:
		ref, _ := t.rows.Ref(hash, key)
		*ref = t.of.own(v, *ref)
	}
}

func (t *valueTable[K, V]) schema() StateSchema {
	s := StateSchema{Name: t.of.id, Kind: t.of.kind, ValueType: t.of.codec.Schema()}
	t.keys.describe(&s)
	if t.of.ttl != nil {
		s.TTL = t.of.ttl.millis
	}
	return s
}

func (t *valueTable[K, V]) eachKey(f func(K) error) error {
	return t.rows.Range(func(key K, _ V) error { return f(key) })
}

// snapshot switches versions, in microseconds. Entries that refer to memory which user code might change are encoded at once instead: exact
// before fast.
func (t *valueTable[K, V]) snapshot() (tableSnapshot, error) {
	view := &valueSnapshot[K, V]{keys: t.keys.codec, values: t.of.codec, rows: t.rows.Snapshot(), live: t.of.live, now: t.clock.now}
	if t.plain {
		return view, nil
	}
	return encodeAll(view, view.rows.Groups())
}

// encodeAll encodes a snapshot at once, and releases it.
func encodeAll(view tableSnapshot, groups job.KeyGroupRange) (tableSnapshot, error) {
	defer view.release()
	eager := encodedSnapshot{first: groups.Start, groups: make([][]byte, groups.Len())}
	for i := range eager.groups {
		data, err := view.appendGroup(nil, groups.Start+i)
		if err != nil {
			return nil, err
		}
		eager.groups[i] = data
	}
	return eager, nil
}

type valueSnapshot[K comparable, V any] struct {
	keys   codec.Codec[K]
	values codec.Codec[V]
	rows   rowsSnapshot[K, V]
	live   func(V, Timestamp) (V, liveness) // nil: nothing expires
	now    Timestamp
}

// appendGroup writes uvarint count, then keys and values in turn.
func (s *valueSnapshot[K, V]) appendGroup(dst []byte, group int) ([]byte, error) {
	start, n := len(dst), uint64(0)
	err := s.rows.Range(group, func(key K, v V) (err error) {
		if s.live != nil {
			left, n := s.live(v, s.now)
			if n == noneLive {
				return nil
			}
			v = left
		}
		if dst, err = s.keys.Append(dst, key); err != nil {
			return fmt.Errorf("encode key: %w", err)
		}
		if dst, err = s.values.Append(dst, v); err != nil {
			return fmt.Errorf("encode value of key %v: %w", key, err)
		}
		n++
		return nil
	})
	return insertCount(dst, start, n), err
}

// insertCount puts a number in front of what was appended since start: how many entries there are is known when all were seen.
func insertCount(dst []byte, start int, n uint64) []byte {
	var room [binary.MaxVarintLen64]byte
	return slices.Insert(dst, start, binary.AppendUvarint(room[:0], n)...)
}

func (s *valueSnapshot[K, V]) releaseGroup(group int) { s.rows.ReleaseGroup(group) }

func (s *valueSnapshot[K, V]) release() { s.rows.Release() }

type encodedSnapshot struct {
	first  int
	groups [][]byte
}

func (s encodedSnapshot) appendGroup(dst []byte, group int) ([]byte, error) {
	return append(dst, s.groups[group-s.first]...), nil
}

func (s encodedSnapshot) releaseGroup(group int) { s.groups[group-s.first] = nil }

func (encodedSnapshot) release() {}

func (t *valueTable[K, V]) restore(group int, written StateSchema, data []byte) ([]byte, error) {
	keys, values, err := t.resolve(written)
	if err != nil {
		return nil, Permanent(err)
	}
	return readEntries(data, keys, values, func(key K, v V) error {
		hash := t.keys.hash(key)
		if err := inGroup(group, key, hash, t.maxParallelism); err != nil {
			return err
		}
		t.rows.Put(hash, key, v)
		return nil
	})
}

// sweep implements sweeper.
func (t *valueTable[K, V]) sweep(now Timestamp) Timestamp {
	if now < t.passes.due {
		return t.passes.due
	}
	ended := t.rows.Sweep(sweepEntries, func(key K, v V) {
		if _, n := t.of.live(v, now); n != allLive {
			t.expired = append(t.expired, key)
		}
	})
	for _, key := range t.expired {
		hash := t.keys.hash(key)
		v, ok := t.rows.Get(hash, key) // what was shown may be older
		if !ok {
			continue
		}
		switch left, n := t.of.live(v, now); n {
		case noneLive:
			t.rows.Delete(hash, key)
		case someLive:
			t.rows.Put(hash, key, left)
		case allLive: // it was changed since it was shown
		}
	}
	clear(t.expired)
	t.expired = t.expired[:0]
	return t.passes.next(now, ended)
}

// readEntries gives f what appendGroup has written, and returns what follows it.
func readEntries[K comparable, V any](data []byte, keys codec.Codec[K], values codec.Codec[V], f func(key K, v V) error) ([]byte, error) {
	n, size := binary.Uvarint(data)
	if size <= 0 {
		return nil, errors.New("truncated entry count")
	}
	data = data[size:]
	for range n {
		var key K
		var v V
		var err error
		if key, data, err = keys.Decode(data); err != nil {
			return nil, fmt.Errorf("decode key: %w", err)
		}
		if v, data, err = values.Decode(data); err != nil {
			return nil, fmt.Errorf("decode value of key %v: %w", key, err)
		}
		if err := f(key, v); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// inGroup is an error unless key is in a key group.
func inGroup[K comparable](group int, key K, hash uint64, maxParallelism int) error {
	if got := job.KeyGroupOf(hash, maxParallelism); got != group {
		return fmt.Errorf("key %v is in key group %d, the checkpoint has it in %d", key, got, group)
	}
	return nil
}
