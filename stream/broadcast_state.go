package stream

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream/codec"
)

// BroadcastState is operator state that is the same in all subtasks: entries by key, which the elements of a broadcast stream write and the records
// of the other stream read; see ProcessBroadcast. Each subtask writes its copy into checkpoints; at another parallelism new subtask i gets the copy
// of old subtask i modulo their number.
//
// All subtasks see the same broadcast elements, but not beside the same records, nor, when they come from several subtasks, in the same order: what
// they write must depend on nothing else, and not on the order either.
type BroadcastState[K comparable, V any] struct {
	operatorDeclaration
	keys   codec.Codec[K]
	values codec.Codec[V]
	ownKey func(v, before K) K // nil: keys hold no strings
	own    func(v, before V) V // nil: values hold no strings
	plain  bool                // nobody changes what a value refers to
}

// NewBroadcastState declares a broadcast state. Keys are of the types that KeyBy allows. The name is part of the checkpoint: it must stay the same
// between versions.
func NewBroadcastState[K comparable, V any](name string) *BroadcastState[K, V] {
	s := &BroadcastState[K, V]{operatorDeclaration: operatorDeclaration{id: name, mode: job.BroadcastState}, plain: codec.Plain[V]()}
	if _, err := codec.Hash[K](); err != nil { // which says what can be a key
		s.err = err
		return s
	}
	if s.keys, s.err = codec.For[K](); s.err != nil {
		return s
	}
	if s.values, s.err = codec.For[V](); s.err == nil {
		s.ownKey, s.own = codec.Owned(s.keys), codec.Owned(s.values)
	}
	return s
}

// BroadcastReader gives access to broadcast states: a ReadOnlyContext or a BroadcastContext.
type BroadcastReader interface{ broadcast() []holder }

// ReadOnlyContext is how records of the main stream see broadcast states: they can be read and not written. It is valid during the call only.
type ReadOnlyContext struct{ holders []holder }

func (c *ReadOnlyContext) broadcast() []holder { return c.holders }

// BroadcastContext is what a function knows of the broadcast element that it processes. It is valid during the call only.
type BroadcastContext struct {
	holders []holder
	ts      Timestamp
	env     *Env
}

func (c *BroadcastContext) broadcast() []holder { return c.holders }

// Timestamp is the event time of the element, or NoTimestamp.
func (c *BroadcastContext) Timestamp() Timestamp { return c.ts }

// Subtask is the number of the subtask. What is written must not depend on it.
func (c *BroadcastContext) Subtask() int { return c.env.Subtask }

// Get returns the value of a key.
func (s *BroadcastState[K, V]) Get(c BroadcastReader, key K) (V, bool) {
	v, ok := s.in(c).entries[key]
	return v, ok
}

// Len is the number of keys.
func (s *BroadcastState[K, V]) Len(c BroadcastReader) int { return len(s.in(c).entries) }

// All gives the entries as they were when All was called, in an order that depends on the keys alone.
func (s *BroadcastState[K, V]) All(c BroadcastReader) iter.Seq2[K, V] {
	h := s.in(c)
	keys, entries := h.sorted(), h.freeze()
	return func(yield func(K, V) bool) {
		for _, k := range keys {
			if !yield(k, entries[k]) {
				return
			}
		}
	}
}

// Put sets the value of a key. What it refers to must not be changed afterwards.
func (s *BroadcastState[K, V]) Put(c *BroadcastContext, key K, v V) {
	h := s.in(c)
	h.thaw()
	before, ok := h.entries[key]
	if !ok {
		if s.ownKey != nil {
			var nothing K
			key = s.ownKey(key, nothing)
		}
		h.keys = nil
	}
	if s.own != nil {
		v = s.own(v, before)
	}
	h.entries[key] = v
}

// Remove takes a key away.
func (s *BroadcastState[K, V]) Remove(c *BroadcastContext, key K) {
	h := s.in(c)
	if _, ok := h.entries[key]; !ok {
		return
	}
	h.thaw()
	h.keys = nil
	delete(h.entries, key)
}

// Clear takes all keys away.
func (s *BroadcastState[K, V]) Clear(c *BroadcastContext) {
	*s.in(c) = broadcastHolder[K, V]{of: s, entries: map[K]V{}}
}

func (s *BroadcastState[K, V]) in(c BroadcastReader) *broadcastHolder[K, V] {
	return held(c.broadcast(), &s.operatorDeclaration, func(h *broadcastHolder[K, V]) bool { return h.of == s })
}

func (s *BroadcastState[K, V]) newHolder() holder {
	return &broadcastHolder[K, V]{of: s, entries: map[K]V{}}
}

// broadcastHolder is the copy of one subtask. A map that a snapshot or an iterator has is copied before it is written again.
type broadcastHolder[K comparable, V any] struct {
	of      *BroadcastState[K, V]
	entries map[K]V
	frozen  bool // somebody else reads entries
	keys    []K  // of entries, in order of their encoding; nil: not known
}

func (h *broadcastHolder[K, V]) freeze() map[K]V {
	h.frozen = true
	return h.entries
}

func (h *broadcastHolder[K, V]) thaw() {
	if h.frozen {
		h.entries, h.frozen = maps.Clone(h.entries), false
	}
}

// sorted are the keys in order of their encoding, so that what users see and checkpoints hold does not depend on the order of a map.
func (h *broadcastHolder[K, V]) sorted() []K {
	if h.keys != nil || len(h.entries) == 0 {
		return h.keys
	}
	type encoded struct {
		key  K
		data []byte
	}
	all := make([]encoded, 0, len(h.entries))
	for k := range h.entries {
		data, err := h.of.keys.Append(nil, k)
		if err != nil {
			panic(fmt.Sprintf("stream: encode a key: %v", err)) // no type that can be a key has an encoding that fails
		}
		all = append(all, encoded{k, data})
	}
	slices.SortFunc(all, func(a, b encoded) int { return bytes.Compare(a.data, b.data) })
	h.keys = make([]K, len(all))
	for i, e := range all {
		h.keys[i] = e.key
	}
	return h.keys
}

func (h *broadcastHolder[K, V]) schema() StateSchema {
	return StateSchema{Name: h.of.id, Kind: kindBroadcast, KeyType: h.of.keys.Schema(), ValueType: h.of.values.Schema()}
}

func (h *broadcastHolder[K, V]) mode() job.ListMode { return job.BroadcastState }

func (h *broadcastHolder[K, V]) converts() []string { return codec.Converts(h.of.values) }

// snapshot has an item for each entry: the key and the value.
func (h *broadcastHolder[K, V]) snapshot() (ListSnapshot, error) {
	keys, entries := h.sorted(), h.freeze()
	snap := ListSnapshot{Schema: h.schema(), Mode: h.mode(), Len: len(keys)}
	snap.Append = func(dst []byte, i int) ([]byte, error) {
		dst, err := h.of.keys.Append(dst, keys[i])
		if err != nil {
			return dst, err
		}
		return h.of.values.Append(dst, entries[keys[i]])
	}
	return snap.now(h.of.plain)
}

// resolve gives the codecs for a written state. Keys have no hash here that would have to stay, but different ones must stay different.
func (h *broadcastHolder[K, V]) resolve(written StateSchema) (keys codec.Codec[K], values codec.Codec[V], err error) {
	if keys, err = resolveWritten("key", h.of.keys, written.KeyType); err != nil {
		return nil, nil, err
	}
	if err := codec.Reads("map["+written.KeyType+"]struct{}", "map["+h.of.keys.Schema()+"]struct{}"); err != nil {
		return nil, nil, err
	}
	values, err = resolveWritten("value", h.of.values, written.ValueType)
	return keys, values, err
}

func (h *broadcastHolder[K, V]) check(written StateSchema) error {
	_, _, err := h.resolve(written)
	return err
}

func (h *broadcastHolder[K, V]) restore(written StateSchema, items [][]byte) error {
	keys, values, err := h.resolve(written)
	if err != nil {
		return err
	}
	for i, item := range items {
		key, rest, err := keys.Decode(item)
		if err != nil {
			return fmt.Errorf("decode key of entry %d: %w", i+1, err)
		}
		v, rest, err := values.Decode(rest)
		if err == nil && len(rest) > 0 {
			err = fmt.Errorf("%d bytes left over", len(rest))
		}
		if err != nil {
			return fmt.Errorf("decode value of key %v: %w", key, err)
		}
		if _, twice := h.entries[key]; twice {
			return fmt.Errorf("key %v occurs twice", key)
		}
		h.thaw()
		h.entries[key], h.keys = v, nil
	}
	return nil
}
