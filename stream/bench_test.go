package stream

import (
	"fmt"
	"testing"
)

// discard is a collector that drops what it gets.
type discard[T any] struct{}

func (discard[T]) Collect(Timestamp, T) error { return nil }

// benchOperator makes a keyed operator over all key groups whose output is dropped.
func benchOperator[Out any](b *testing.B, def func(KeyedStream[uint64, uint64]) Stream[Out]) Collector[uint64] {
	b.Helper()
	j := NewJob("bench", nil)
	s := def(KeyBy(From(j, "source", nowhere[uint64]{}), func(v uint64) uint64 { return v }))
	if err := j.Err(); err != nil {
		b.Fatal(err)
	}
	env := testEnv(s.node.ID)
	link := must(s.node.Build(env, []any{Collector[Out](discard[Out]{})}))(b)
	b.Cleanup(func() { must(0, link.Operator.Close())(b) })
	return link.In.(Collector[uint64])
}

// BenchmarkKeyed_Update is one record through a keyed operator that changes a number of its key, over keys in an order that caches cannot guess.
func BenchmarkKeyed_Update(b *testing.B) {
	type in = KeyedStream[uint64, uint64]
	for _, n := range []uint64{10_000, 1_000_000} {
		for _, c := range []struct {
			name string
			in   func(b *testing.B) Collector[uint64]
		}{
			{"reduce", func(b *testing.B) Collector[uint64] {
				return benchOperator(b, func(s in) Stream[uint64] {
					return Reduce(s, "op", func(a, b uint64) uint64 { return a + b }, EmitAtEnd)
				})
			}},
			{"value", func(b *testing.B) Collector[uint64] {
				count := NewValue[uint64, uint64]("count")
				return benchOperator(b, func(s in) Stream[uint64] {
					return Process(s, "op", func(c *Context[uint64], _ uint64, _ func(uint64) error) error {
						v, _ := count.Get(c)
						count.Set(c, v+1)
						return nil
					}, count)
				})
			}},
		} {
			b.Run(fmt.Sprintf("%s/%dk", c.name, n/1000), func(b *testing.B) {
				op := c.in(b)
				for k := range n {
					must(0, op.Collect(1, k))(b)
				}
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					if err := op.Collect(1, uint64(i)*2654435761%n); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
