package stream

import (
	"time"

	"github.com/weirstream/weir/stream/codec"
)

// cell is what the kinds of state have in common that keep values one by one: V is the value without the time of its last access.
type cell[K comparable, V any] struct {
	declaration[K, V]
	// expiring is what the state is if its values expire; nil: they live for ever. It is an interface so that a program has the code of what expires only
	// for the states of which it says so.
	expiring expiringCell[K, V]
}

type expiringCell[K comparable, V any] interface {
	bind(of *declaration[K, V])
	newTable(env *Env, op *operatorContext, keys keyForm[K]) table
	get(c *Context[K]) (V, bool)
	put(c *Context[K], v V)
	clear(c *Context[K])
}

func declareCell[K comparable, V any](name, kind string) cell[K, V] {
	return cell[K, V]{declaration: declare[K, V](name, kind)}
}

func (s *cell[K, V]) bind(index int, operator string) error {
	if err := s.declaration.bind(index, operator); err != nil {
		return err
	}
	if s.expiring != nil {
		s.expiring.bind(&s.declaration)
	}
	return nil
}

func (s *cell[K, V]) newTable(env *Env, op *operatorContext, keys keyForm[K]) table {
	if s.expiring != nil {
		return s.expiring.newTable(env, op, keys)
	}
	return s.declaration.newTable(env, op, keys)
}

// get returns the value of the current key.
func (s *cell[K, V]) get(c *Context[K]) (V, bool) {
	if s.expiring != nil {
		return s.expiring.get(c)
	}
	return s.table(c).rows.Get(c.hash, c.key)
}

// put gives the current key a value.
func (s *cell[K, V]) put(c *Context[K], v V) {
	if s.expiring != nil {
		s.expiring.put(c, v)
		return
	}
	s.table(c).set(c.hash, c.key, v)
}

// clear takes the value of the current key away.
func (s *cell[K, V]) clear(c *Context[K]) {
	if s.expiring != nil {
		s.expiring.clear(c)
		return
	}
	s.declaration.clear(c)
}

// timedCell is a cell whose values expire.
type timedCell[K comparable, V any] struct{ stored declaration[K, timed[V]] }

func expireCell[K comparable, V any](s *cell[K, V], d time.Duration, options []TTLOption) {
	s.expiring = &timedCell[K, V]{timedDeclaration(&s.declaration, newTTL(d, options, &s.err))}
}

// timedDeclaration is that of values with times.
func timedDeclaration[K comparable, V any](of *declaration[K, V], l *ttl) declaration[K, timed[V]] {
	return declaration[K, timed[V]]{id: of.id, kind: of.kind, plain: of.plain, ttl: l, live: liveValue[V](l)}
}

// bindTimed makes the declaration of values with times what that of the values is.
func bindTimed[K comparable, V any](s *declaration[K, timed[V]], of *declaration[K, V]) {
	s.index, s.operator = of.index, of.operator
	s.codec, s.own = timedCodec[V]{of.codec}, ownTimed(of.own)
	s.untimed = func(written StateSchema, now Timestamp) (codec.Codec[timed[V]], error) {
		values, err := codec.Resolve(of.codec, written.ValueType)
		return converted[V, timed[V]]{values, func(v V) timed[V] { return timed[V]{v, now} }}, err
	}
}

func (s *timedCell[K, V]) bind(of *declaration[K, V]) { bindTimed(&s.stored, of) }

func (s *timedCell[K, V]) newTable(env *Env, op *operatorContext, keys keyForm[K]) table {
	return s.stored.newTable(env, op, keys)
}

func (s *timedCell[K, V]) get(c *Context[K]) (V, bool) {
	rows, now := s.stored.table(c).rows, c.op.clock.now
	v, ok := rows.Get(c.hash, c.key)
	if !ok {
		return v.value, false
	}
	switch l := s.stored.ttl; {
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

func (s *timedCell[K, V]) put(c *Context[K], v V) {
	s.stored.table(c).set(c.hash, c.key, timed[V]{v, c.op.clock.now})
}

func (s *timedCell[K, V]) clear(c *Context[K]) { s.stored.clear(c) }
