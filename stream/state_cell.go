package stream

import "github.com/weirstream/weir/stream/codec"

// cell is what the kinds of state have in common that keep values one by one: V is the value without the time of its last access.
type cell[K comparable, V any] struct {
	declaration[K, V]
	timed *declaration[K, timed[V]] // nil: entries live for ever
}

func declareCell[K comparable, V any](name, kind string, options []StateOption) cell[K, V] {
	s := cell[K, V]{declaration: declare[K, V](name, kind)}
	o := optionsOf(options)
	if s.err == nil {
		s.err = o.err
	}
	if o.ttl != nil {
		s.timed = &declaration[K, timed[V]]{id: name, kind: kind, plain: s.plain, ttl: o.ttl, live: liveValue[V](o.ttl)}
	}
	return s
}

func (s *cell[K, V]) bind(index int, operator string) error {
	if err := s.declaration.bind(index, operator); err != nil {
		return err
	}
	if t := s.timed; t != nil {
		t.index, t.operator = index, operator
		t.codec, t.own = timedCodec[V]{s.codec}, ownTimed(s.own)
		t.untimed = func(written StateSchema, now Timestamp) (codec.Codec[timed[V]], error) {
			values, err := codec.Resolve(s.codec, written.ValueType)
			return converted[V, timed[V]]{values, func(v V) timed[V] { return timed[V]{v, now} }}, err
		}
	}
	s.timeless = func(written StateSchema) (codec.Codec[V], error) {
		values, err := codec.Resolve(s.codec, written.ValueType)
		return converted[timed[V], V]{timedCodec[V]{values}, func(v timed[V]) V { return v.value }}, err
	}
	return nil
}

func (s *cell[K, V]) newTable(env *Env, op *operatorContext, keys keyForm[K]) table {
	if s.timed != nil {
		return s.timed.newTable(env, op, keys)
	}
	return s.declaration.newTable(env, op, keys)
}

// get returns the value of the current key.
func (s *cell[K, V]) get(c *Context[K]) (V, bool) {
	if s.timed == nil {
		return s.table(c).rows.Get(c.hash, c.key)
	}
	return s.getTimed(c)
}

func (s *cell[K, V]) getTimed(c *Context[K]) (V, bool) {
	rows, now := s.timed.table(c).rows, c.op.clock.now
	v, ok := rows.Get(c.hash, c.key)
	if !ok {
		return v.value, false
	}
	switch l := s.timed.ttl; {
	case l.expired(v.at, now):
		rows.Delete(c.hash, c.key)
		if !l.showExpired {
			var nothing V
			return nothing, false
		}
	case l.onRead && v.at != now:
		v.at = now
		rows.Put(c.hash, c.key, v)
	}
	return v.value, true
}

// put gives the current key a value.
func (s *cell[K, V]) put(c *Context[K], v V) {
	if s.timed == nil {
		s.table(c).set(c.hash, c.key, v)
		return
	}
	s.timed.table(c).set(c.hash, c.key, timed[V]{v, c.op.clock.now})
}

// clear takes the value of the current key away.
func (s *cell[K, V]) clear(c *Context[K]) {
	if s.timed == nil {
		s.declaration.clear(c)
		return
	}
	s.timed.clear(c)
}
