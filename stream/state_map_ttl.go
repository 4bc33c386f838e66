package stream

import (
	"iter"
	"time"

	"github.com/weirstream/weir/internal/linked"
)

// expiringMap is what a map state is whose entries expire; see cell.
type expiringMap[K, U comparable, V any] interface {
	bind(of *declaration[K, V])
	newTable(env *Env, op *operatorContext, keys keyForm[K], users userKeys[U]) table
	get(c *Context[K], u U) (V, bool)
	put(c *Context[K], u U, v V)
	delete(c *Context[K], u U)
	length(c *Context[K]) int
	all(c *Context[K]) iter.Seq2[U, V]
	clear(c *Context[K])
}

// ExpiringMap is ExpiringValue for the entries of the maps, each of which has a time of its own.
func ExpiringMap[K, U comparable, V any](s *MapState[K, U, V], d time.Duration, options ...TTLOption) *MapState[K, U, V] {
	s.expiringMap = &timedMap[K, U, V]{timedDeclaration(&s.declaration, newTTL(d, options, &s.err))}
	return s
}

// timedMap is a map state of values with times.
type timedMap[K, U comparable, V any] struct{ stored declaration[K, timed[V]] }

func (s *timedMap[K, U, V]) bind(of *declaration[K, V]) { bindTimed(&s.stored, of) }

func (s *timedMap[K, U, V]) newTable(env *Env, op *operatorContext, keys keyForm[K], users userKeys[U]) table {
	return newMapTable(env, op, &s.stored, keys, users)
}

func (s *timedMap[K, U, V]) of(c *Context[K]) *linked.Map[K, U, timed[V]] {
	return mapOf[U](&s.stored, c)
}

func (s *timedMap[K, U, V]) get(c *Context[K], u U) (V, bool) {
	m := s.of(c)
	v, ok := m.Get(c.hash, c.key, u)
	if !ok || !s.seen(c, m, u, v) {
		var nothing V
		return nothing, false
	}
	return v.value, true
}

// seen is what comes of reading an entry whose time may be over, and tells whether it may be shown.
func (s *timedMap[K, U, V]) seen(c *Context[K], m *linked.Map[K, U, timed[V]], u U, v timed[V]) bool {
	now := c.op.clock.now
	switch l := s.stored.ttl; {
	case l.expired(v.at, now):
		m.Delete(c.hash, c.key, u)
		return l.showExpired
	case l.onRead && v.at != now:
		v.at = now
		m.Put(c.hash, c.key, u, v)
	}
	return true
}

func (s *timedMap[K, U, V]) put(c *Context[K], u U, v V) {
	s.of(c).Put(c.hash, c.key, u, timed[V]{v, c.op.clock.now})
}

func (s *timedMap[K, U, V]) delete(c *Context[K], u U) { s.of(c).Delete(c.hash, c.key, u) }

func (s *timedMap[K, U, V]) length(c *Context[K]) (n int) {
	for _, v := range s.of(c).All(c.hash, c.key) {
		if s.stored.ttl.showExpired || !s.stored.ttl.expired(v.at, c.op.clock.now) {
			n++
		}
	}
	return n
}

func (s *timedMap[K, U, V]) all(c *Context[K]) iter.Seq2[U, V] {
	at, m := *c, s.of(c) // c is another key's when the operator is called again
	return func(yield func(U, V) bool) {
		for u, v := range m.All(at.hash, at.key) {
			if s.seen(&at, m, u, v) && !yield(u, v.value) {
				return
			}
		}
	}
}

func (s *timedMap[K, U, V]) clear(c *Context[K]) { s.of(c).Clear(c.hash, c.key) }
