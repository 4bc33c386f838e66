package stream

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/weirstream/weir/stream/codec"
)

// expiringList is what a list is whose elements expire; see cell.
type expiringList[K comparable, E any] interface {
	bind(of *declaration[K, []E], elements codec.Codec[E])
	newTable(env *Env, op *operatorContext, keys keyForm[K]) table
	append(c *Context[K], e E)
	all(c *Context[K]) iter.Seq[E]
	length(c *Context[K]) int
	set(c *Context[K], elements []E, owned func(E) E)
	clear(c *Context[K])
}

// ExpiringList is ExpiringValue for the elements of a list, each of which has a time of its own.
func ExpiringList[K comparable, E any](s *List[K, E], d time.Duration, options ...TTLOption) *List[K, E] {
	l := newTTL(d, options, &s.err)
	s.expiring = &timedList[K, E]{declaration[K, []timed[E]]{id: s.id, kind: s.kind, plain: s.plain, ttl: l, live: liveElements[E](l)}}
	return s
}

// timedList is a list of elements with times, in one slice for each key.
type timedList[K comparable, E any] struct{ stored declaration[K, []timed[E]] }

func (s *timedList[K, E]) bind(of *declaration[K, []E], elements codec.Codec[E]) {
	t := &s.stored
	t.index, t.operator, t.codec = of.index, of.operator, timedListCodec[E]{timedCodec[E]{elements}}
	t.untimed = func(written StateSchema, now Timestamp) (codec.Codec[[]timed[E]], error) {
		lists, err := codec.Resolve(of.codec, written.ValueType)
		return converted[[]E, []timed[E]]{lists, func(list []E) []timed[E] { return timedAt(list, now) }}, err
	}
}

func timedAt[E any](list []E, now Timestamp) []timed[E] {
	out := make([]timed[E], len(list))
	for i, e := range list {
		out[i] = timed[E]{e, now}
	}
	return out
}

func (s *timedList[K, E]) newTable(env *Env, op *operatorContext, keys keyForm[K]) table {
	return s.stored.newTable(env, op, keys)
}

// liveElements leaves out what has expired. What is left is the same array if the oldest ones have expired, which is the usual case: to begin later
// in an array is as safe as to have all of it, since nothing is written in front of its end. See List.
func liveElements[E any](l *ttl) func([]timed[E], Timestamp) ([]timed[E], liveness) {
	return func(list []timed[E], now Timestamp) ([]timed[E], liveness) {
		first := slices.IndexFunc(list, func(e timed[E]) bool { return !l.expired(e.at, now) })
		if first < 0 {
			return nil, noneLive
		}
		rest := list[first:]
		if slices.ContainsFunc(rest, func(e timed[E]) bool { return l.expired(e.at, now) }) {
			rest = slices.DeleteFunc(slices.Clone(rest), func(e timed[E]) bool { return l.expired(e.at, now) })
		}
		if len(rest) == len(list) {
			return list, allLive
		}
		return rest, someLive
	}
}

func (s *timedList[K, E]) append(c *Context[K], e E) {
	list, _ := s.stored.table(c).rows.Ref(c.hash, c.key)
	now, l := c.op.clock.now, s.stored.ttl
	for len(*list) > 0 && l.expired((*list)[0].at, now) { // so that a list which only grows does not keep them until it is swept
		*list = (*list)[1:]
	}
	*list = append(*list, timed[E]{e, now}) // see List for why this is safe
}

// readable gives the elements that may be read.
func (s *timedList[K, E]) readable(c *Context[K]) []timed[E] {
	list, _ := s.stored.table(c).rows.Get(c.hash, c.key)
	if !s.stored.ttl.showExpired {
		list, _ = s.stored.live(list, c.op.clock.now)
	}
	return list
}

func (s *timedList[K, E]) all(c *Context[K]) iter.Seq[E] {
	list, now := s.readable(c), c.op.clock.now
	if s.stored.ttl.onRead && slices.ContainsFunc(list, func(e timed[E]) bool { return e.at != now }) {
		list = slices.Clone(list) // snapshots see the old one
		for i := range list {
			list[i].at = now
		}
		s.stored.table(c).rows.Put(c.hash, c.key, list)
	}
	return func(yield func(E) bool) {
		for _, e := range list {
			if !yield(e.value) {
				return
			}
		}
	}
}

func (s *timedList[K, E]) length(c *Context[K]) int { return len(s.readable(c)) }

func (s *timedList[K, E]) set(c *Context[K], elements []E, owned func(E) E) {
	list := timedAt(elements, c.op.clock.now)
	for i := range list {
		list[i].value = owned(list[i].value)
	}
	s.stored.table(c).rows.Put(c.hash, c.key, list)
}

func (s *timedList[K, E]) clear(c *Context[K]) { s.stored.clear(c) }

// timedListCodec writes a list as a slice of elements with their times.
type timedListCodec[E any] struct{ elements timedCodec[E] }

// Append implements codec.Codec.
func (c timedListCodec[E]) Append(dst []byte, list []timed[E]) (_ []byte, err error) {
	dst = binary.AppendUvarint(dst, uint64(len(list))+1) // 0 is nil, in any slice
	for _, e := range list {
		if dst, err = c.elements.Append(dst, e); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// Decode implements codec.Codec.
func (c timedListCodec[E]) Decode(src []byte) (list []timed[E], rest []byte, err error) {
	n, rest, err := readLength(src)
	if err != nil || n < 0 {
		return nil, rest, err
	}
	list = make([]timed[E], n)
	for i := range list {
		if list[i], rest, err = c.elements.Decode(rest); err != nil {
			return nil, src, fmt.Errorf("element %d: %w", i+1, err)
		}
	}
	return list, rest, nil
}

// Schema implements codec.Codec.
func (c timedListCodec[E]) Schema() string { return c.elements.Schema() }

// ResolveSchema implements codec.Resolver.
func (c timedListCodec[E]) ResolveSchema(written string) (codec.Codec[[]timed[E]], error) {
	elements, err := codec.Resolve(c.elements.values, written)
	if err != nil {
		return nil, fmt.Errorf("element: %w", err)
	}
	return timedListCodec[E]{timedCodec[E]{elements}}, nil
}

// Converts is what codec.Converts gives.
func (c timedListCodec[E]) Converts() []string { return c.elements.Converts() }
