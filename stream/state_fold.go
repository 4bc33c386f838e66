package stream

import "errors"

// Reducing is a state that combines all values that are added for a key to one of the same type.
type Reducing[K comparable, V any] struct {
	cell[K, V]
	combine func(a, b V) V
}

// NewReducing declares a reducing state. The first value of a key is kept as it is; combine gives what is kept of that and the next one, and must
// not change what they refer to. The name is part of the checkpoint: it must stay the same between versions.
func NewReducing[K comparable, V any](name string, combine func(a, b V) V) *Reducing[K, V] {
	s := &Reducing[K, V]{declareCell[K, V](name, kindReducing), combine}
	if combine == nil && s.err == nil {
		s.err = errors.New("it has no function that combines two values: give one to NewReducing")
	}
	return s
}

// Add combines v with what the current key has.
func (s *Reducing[K, V]) Add(c *Context[K], v V) {
	if old, ok := s.get(c); ok {
		v = s.combine(old, v)
	}
	s.put(c, v)
}

// Get returns what the values of the current key were combined to. It is false for a key without values.
func (s *Reducing[K, V]) Get(c *Context[K]) (V, bool) { return s.get(c) }

// Clear takes the values of the current key away.
func (s *Reducing[K, V]) Clear(c *Context[K]) { s.clear(c) }

// Aggregating is a state that folds all values that are added for a key into an accumulator, which is what is stored, and makes a result of it.
type Aggregating[K comparable, In, Acc, Out any] struct {
	cell[K, Acc]
	agg Aggregator[K, In, Acc, Out]
}

// NewAggregating declares an aggregating state. The name is part of the checkpoint: it must stay the same between versions.
func NewAggregating[K comparable, In, Acc, Out any](name string, agg Aggregator[K, In, Acc, Out]) *Aggregating[K, In, Acc, Out] {
	s := &Aggregating[K, In, Acc, Out]{declareCell[K, Acc](name, kindAggregating), agg}
	if agg == nil && s.err == nil {
		s.err = errors.New("it has no aggregator: give one to NewAggregating")
	}
	return s
}

// Add folds v into the accumulator of the current key.
func (s *Aggregating[K, In, Acc, Out]) Add(c *Context[K], v In) {
	acc, ok := s.get(c)
	if !ok {
		acc = s.agg.New()
	}
	s.put(c, s.agg.Add(acc, v))
}

// Get returns the result of the current key. It is false for a key without values.
func (s *Aggregating[K, In, Acc, Out]) Get(c *Context[K]) (out Out, ok bool) {
	acc, ok := s.get(c)
	if !ok {
		return out, false
	}
	return s.agg.Result(c.key, acc), true
}

// Clear takes the values of the current key away.
func (s *Aggregating[K, In, Acc, Out]) Clear(c *Context[K]) { s.clear(c) }
