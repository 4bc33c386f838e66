package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/weirstream/weir/stream/codec"
)

// List is a state that holds elements for each key, in the order in which they were appended. A key without elements has no entry. What an
// element refers to must not be changed once it is in the list.
//
// To append costs the same on average however long the list is, also while snapshots are open. A list is in memory, in up to about twice the room
// that its elements need, and each checkpoint writes it whole.
//
// What is stored for a key is a slice whose array is shared with open snapshots and with iterators that All gave. That is safe because of one
// rule: whoever has a slice of an array sees the elements before its length, and those are never written again. The only writer is Append. It
// writes behind the end of the slice in the table, which is the longest one of its array: every slice of that array was the one in the table
// once; it became longer with each Append, and whatever would make it shorter takes another array (Set copies, Clear drops the entry, a
// restore decodes). No slice leaves this file, so nobody else can append to one. A snapshot has copies of the slices: pages of the table are
// copied when they are written, as for any value.
type List[K comparable, E any] struct {
	declaration[K, []E]
	expiring   expiringList[K, E] // nil: elements live for ever; see cell
	elements   codec.Codec[E]
	ownElement func(v, before E) E // nil: elements hold no strings
}

// NewList declares a list state. The name is part of the checkpoint: it must stay the same between versions. The type of the elements may change
// as that of a value, but for one: bytes stay bytes, as in a []byte.
func NewList[K comparable, E any](name string) *List[K, E] {
	s := &List[K, E]{declaration: declaration[K, []E]{id: name, kind: kindList, plain: codec.Plain[E]()}}
	elements, err := codec.For[E]()
	if err != nil {
		s.err = err
		return s
	}
	// Elements are made the list's own one by one, when they come: to look at all of them each time would make Append slow.
	s.elements, s.ownElement = elements, codec.Owned(elements)
	all, err := codec.For[[]E]()
	s.codec, s.err = listCodec[E]{all, elements.Schema()}, err
	return s
}

// Append puts e behind the elements of the current key.
func (s *List[K, E]) Append(c *Context[K], e E) {
	e = s.owned(e)
	if s.expiring != nil {
		s.expiring.append(c, e)
		return
	}
	list, _ := s.table(c).rows.Ref(c.hash, c.key)
	*list = append(*list, e) // see List for why this is safe
}

// All gives the elements of the current key, oldest first, as they were when All was called: the list may be changed meanwhile.
func (s *List[K, E]) All(c *Context[K]) iter.Seq[E] {
	if s.expiring != nil {
		return s.expiring.all(c)
	}
	list, _ := s.table(c).rows.Get(c.hash, c.key)
	return func(yield func(E) bool) {
		for _, e := range list {
			if !yield(e) {
				return
			}
		}
	}
}

// Len is the number of elements of the current key.
func (s *List[K, E]) Len(c *Context[K]) int {
	if s.expiring != nil {
		return s.expiring.length(c)
	}
	list, _ := s.table(c).rows.Get(c.hash, c.key)
	return len(list)
}

// Set replaces the elements of the current key by a copy of elements. No elements are the same as Clear.
func (s *List[K, E]) Set(c *Context[K], elements []E) {
	if len(elements) == 0 {
		s.Clear(c)
		return
	}
	if s.expiring != nil {
		s.expiring.set(c, slices.Clone(elements), s.owned)
		return
	}
	list := slices.Clone(elements)
	for i, e := range list {
		list[i] = s.owned(e)
	}
	s.table(c).set(c.hash, c.key, list)
}

func (s *List[K, E]) bind(index int, operator string) error {
	if err := s.declaration.bind(index, operator); err != nil {
		return err
	}
	s.timeless = func(written StateSchema) (codec.Codec[[]E], error) {
		elements, err := codec.Resolve(s.elements, written.ValueType)
		if err != nil {
			return nil, fmt.Errorf("element: %w", err)
		}
		return timelessList[E]{s.codec, elements}, nil
	}
	if s.expiring != nil {
		s.expiring.bind(&s.declaration, s.elements)
	}
	return nil
}

func (s *List[K, E]) newTable(env *Env, op *operatorContext, keys keyForm[K]) table {
	if s.expiring != nil {
		return s.expiring.newTable(env, op, keys)
	}
	return s.declaration.newTable(env, op, keys)
}

// Clear takes the elements of the current key away.
func (s *List[K, E]) Clear(c *Context[K]) {
	if s.expiring != nil {
		s.expiring.clear(c)
		return
	}
	s.clear(c)
}

func (s *List[K, E]) owned(e E) E {
	if s.ownElement == nil {
		return e
	}
	var nothing E
	return s.ownElement(e, nothing)
}

// listCodec encodes a list as a slice, the number of elements before them, and names the elements' type alone: the kind of the state says that
// there are many.
type listCodec[E any] struct {
	codec.Codec[[]E]
	element string
}

// Schema implements codec.Codec.
func (c listCodec[E]) Schema() string { return c.element }

// ResolveSchema implements codec.Resolver.
func (c listCodec[E]) ResolveSchema(written string) (codec.Codec[[]E], error) {
	all, err := codec.Resolve(c.Codec, "[]"+written)
	if err != nil {
		return nil, fmt.Errorf("element: %w", err)
	}
	return listCodec[E]{all, c.element}, nil
}

// Converts is what codec.Converts gives.
func (c listCodec[E]) Converts() []string { return codec.Converts(c.Codec) }

// timelessList reads lists whose elements were written with times.
type timelessList[E any] struct {
	codec.Codec[[]E]
	elements codec.Codec[E]
}

// Decode implements codec.Codec.
func (c timelessList[E]) Decode(src []byte) (list []E, rest []byte, err error) {
	n, rest, err := readLength(src)
	if err != nil || n < 0 {
		return nil, rest, err
	}
	elements := timeless[E]{c.elements}
	list = make([]E, n)
	for i := range list {
		if list[i], rest, err = elements.Decode(rest); err != nil {
			return nil, src, fmt.Errorf("element %d: %w", i+1, err)
		}
	}
	return list, rest, nil
}

// readLength reads the number of elements of a slice of which each takes a byte at least; -1 is nil.
func readLength(src []byte) (n int, rest []byte, err error) {
	length, size := binary.Uvarint(src)
	if size <= 0 || length > uint64(len(src)-size)+1 {
		return 0, src, errors.New("number of elements is wrong or truncated")
	}
	return int(length) - 1, src[size:], nil
}
