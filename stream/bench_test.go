package stream

import (
	"fmt"
	"testing"
	"time"
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

// wide is a value of 56 bytes.
type wide struct {
	Count            int64
	A, B, C, D, E, F uint64
}

// BenchmarkKeyed_SnapshotAndRestore writes a state of 64 bytes for each key, and restores it.
func BenchmarkKeyed_SnapshotAndRestore(b *testing.B) {
	const keys = 1_000_000
	make := func() *built[int64, int64] {
		rows := NewValue[int64, wide]("rows")
		return build(b, func(s Stream[int64]) Stream[int64] {
			return Process(KeyBy(s, func(k int64) int64 { return k }), "rows", func(c *Context[int64], k int64, emit func(int64) error) error {
				h := uint64(k)*0x9E3779B97F4A7C15 | 1<<63
				rows.Set(c, wide{1, h, h ^ 1, h ^ 2, h ^ 3, h ^ 4, h ^ 5})
				return nil
			}, rows)
		})
	}
	from := make()
	for k := range int64(keys) {
		if err := from.in.Collect(NoTimestamp, k); err != nil {
			b.Fatal(err)
		}
	}
	written := from.Operator.(KeyedStateful).Schemas()
	var snapshot, restore time.Duration
	for range b.N {
		start := time.Now()
		s, err := from.Operator.(KeyedStateful).SnapshotKeyed()
		if err != nil {
			b.Fatal(err)
		}
		groups := [testMaxParallelism][]byte{}
		for g := range groups {
			if groups[g], err = s.AppendGroup(nil, g); err != nil {
				b.Fatal(err)
			}
		}
		s.Release()
		middle := time.Now()
		to := make()
		for g := range groups {
			if err := to.Operator.(KeyedStateful).RestoreGroup(g, written, groups[g]); err != nil {
				b.Fatal(err)
			}
		}
		snapshot, restore = snapshot+middle.Sub(start), restore+time.Since(middle)
	}
	per := float64(b.N) * keys
	b.ReportMetric(float64(snapshot.Nanoseconds())/per, "ns/entry-written")
	b.ReportMetric(float64(restore.Nanoseconds())/per, "ns/entry-restored")
}
