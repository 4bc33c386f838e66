package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/weirstream/weir/stream/codec"
)

// expire makes elements expire if the options say so. Each has a time of its own, in the slice of the key.
func (s *List[K, E]) expire(options []StateOption) {
	o := optionsOf(options)
	s.err = o.err
	if o.ttl != nil {
		s.timed = &declaration[K, []timed[E]]{id: s.id, kind: kindList, plain: s.plain, ttl: o.ttl, live: liveElements[E](o.ttl)}
	}
}

func (s *List[K, E]) bind(index int, operator string) error {
	if err := s.declaration.bind(index, operator); err != nil {
		return err
	}
	elements, err := codec.For[E]()
	if err != nil {
		return fmt.Errorf("state %q of operator %s: %w", s.id, operator, err)
	}
	today := timedListCodec[E]{timedCodec[E]{elements}}
	if t := s.timed; t != nil {
		t.index, t.operator, t.codec = index, operator, today
		t.untimed = func(written StateSchema, now Timestamp) (codec.Codec[[]timed[E]], error) {
			lists, err := codec.Resolve(s.codec, written.ValueType)
			return converted[[]E, []timed[E]]{lists, func(list []E) []timed[E] { return timedAt(list, now) }}, err
		}
	}
	s.timeless = func(written StateSchema) (codec.Codec[[]E], error) {
		lists, err := today.ResolveSchema(written.ValueType)
		return converted[[]timed[E], []E]{lists, withoutTimes[E]}, err
	}
	return nil
}

func timedAt[E any](list []E, now Timestamp) []timed[E] {
	out := make([]timed[E], len(list))
	for i, e := range list {
		out[i] = timed[E]{e, now}
	}
	return out
}

func withoutTimes[E any](list []timed[E]) []E {
	out := make([]E, len(list))
	for i, e := range list {
		out[i] = e.value
	}
	return out
}

func (s *List[K, E]) newTable(env *Env, op *operatorContext, keys keyForm[K]) table {
	if s.timed != nil {
		return s.timed.newTable(env, op, keys)
	}
	return s.declaration.newTable(env, op, keys)
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

func (s *List[K, E]) appendTimed(c *Context[K], e E) {
	list, _ := s.timed.table(c).rows.Ref(c.hash, c.key)
	now, l := c.op.clock.now, s.timed.ttl
	for len(*list) > 0 && l.expired((*list)[0].at, now) { // so that a list which only grows does not keep them until it is swept
		*list = (*list)[1:]
	}
	*list = append(*list, timed[E]{e, now}) // see List for why this is safe
}

// readable gives the elements that may be read.
func (s *List[K, E]) readable(c *Context[K]) []timed[E] {
	list, _ := s.timed.table(c).rows.Get(c.hash, c.key)
	if !s.timed.ttl.showExpired {
		list, _ = s.timed.live(list, c.op.clock.now)
	}
	return list
}

func (s *List[K, E]) allTimed(c *Context[K]) iter.Seq[E] {
	list, now := s.readable(c), c.op.clock.now
	if s.timed.ttl.onRead && slices.ContainsFunc(list, func(e timed[E]) bool { return e.at != now }) {
		list = slices.Clone(list) // snapshots see the old one
		for i := range list {
			list[i].at = now
		}
		s.timed.table(c).rows.Put(c.hash, c.key, list)
	}
	return func(yield func(E) bool) {
		for _, e := range list {
			if !yield(e.value) {
				return
			}
		}
	}
}

func (s *List[K, E]) lenTimed(c *Context[K]) int { return len(s.readable(c)) }

func (s *List[K, E]) setTimed(c *Context[K], elements []E) {
	list := timedAt(elements, c.op.clock.now)
	for i := range list {
		list[i].value = s.owned(list[i].value)
	}
	s.timed.table(c).rows.Put(c.hash, c.key, list)
}

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
	n, size := binary.Uvarint(src)
	if rest = src[max(size, 0):]; size <= 0 || n > uint64(len(rest))+1 { // an element takes a byte at least
		return nil, src, errors.New("number of elements is wrong or truncated")
	}
	if n == 0 {
		return nil, rest, nil
	}
	list = make([]timed[E], n-1)
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
