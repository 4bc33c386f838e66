package state

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/job"
)

// key16 is a key of 16 bytes, as of a pair of numbers.
type key16 struct{ a, b uint64 }

var sizes = []uint64{100_000, 1_000_000, 10_000_000}

func fill(n uint64, groups int) *Table[uint64, uint64] {
	t := NewTable[uint64, uint64](allGroups(groups), groups)
	for k := range n {
		t.Put(hashUint(k), k, 1)
	}
	return t
}

// stride visits the keys below n in an order that caches cannot guess; n has no factor in common with it.
func stride(i int, n uint64) uint64 { return uint64(i) * 2654435761 % n }

func perSize(b *testing.B, run func(b *testing.B, n uint64)) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("%dk", n/1000), func(b *testing.B) { run(b, n) })
	}
}

func BenchmarkMap_Update(b *testing.B) {
	perSize(b, func(b *testing.B, n uint64) {
		m := map[uint64]uint64{}
		for k := range n {
			m[k] = 1
		}
		b.ResetTimer()
		for i := range b.N {
			m[stride(i, n)]++
		}
	})
}

func BenchmarkTable_Update(b *testing.B) {
	perSize(b, func(b *testing.B, n uint64) {
		t := fill(n, 128)
		b.ResetTimer()
		for i := range b.N {
			k := stride(i, n)
			ref, _ := t.Ref(hashUint(k), k)
			*ref++
		}
	})
}

// BenchmarkTable_UpdateAgainstMap interleaves rounds on a table and on a map, since absolute times move with the load of the machine,
// and reports the median of the ratios.
func BenchmarkTable_UpdateAgainstMap(b *testing.B) {
	const rounds, updates = 31, 200_000
	perSize(b, func(b *testing.B, n uint64) {
		t, m := fill(n, 128), map[uint64]uint64{}
		for k := range n {
			m[k] = 1
		}
		b.ResetTimer()
		for range b.N {
			var ratios []float64
			for round := range rounds {
				start := time.Now()
				for i := range updates {
					m[stride(round*updates+i, n)]++
				}
				middle := time.Now()
				for i := range updates {
					k := stride(round*updates+i, n)
					ref, _ := t.Ref(hashUint(k), k)
					*ref++
				}
				ratios = append(ratios, float64(time.Since(middle))/float64(middle.Sub(start)))
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[rounds/2], "x-of-map")
		}
	})
}

func BenchmarkTable_Get(b *testing.B) {
	perSize(b, func(b *testing.B, n uint64) {
		t := fill(n, 128)
		b.ResetTimer()
		sum := uint64(0)
		for i := range b.N {
			k := stride(i, n)
			v, _ := t.Get(hashUint(k), k)
			sum += v
		}
		runtime.KeepAlive(sum)
	})
}

// BenchmarkTable_UpdateDuringSnapshot includes the copies: a snapshot is open all the time and replaced after as many updates as there are keys.
func BenchmarkTable_UpdateDuringSnapshot(b *testing.B) {
	perSize(b, func(b *testing.B, n uint64) {
		t := fill(n, 128)
		b.ResetTimer()
		var s *Snapshot[uint64, uint64]
		for i := range b.N {
			if uint64(i)%n == 0 {
				if s != nil {
					s.Release()
				}
				s = t.Snapshot()
			}
			k := stride(i, n)
			ref, _ := t.Ref(hashUint(k), k)
			*ref++
		}
	})
}

// BenchmarkTable_Snapshot is the part of a checkpoint during which the task stands still.
func BenchmarkTable_Snapshot(b *testing.B) {
	for _, c := range []struct {
		entries uint64
		groups  int
	}{{1000, 128}, {1_000_000, 128}, {1000, job.MaxMaxParallelism}} {
		b.Run(fmt.Sprintf("%d entries %d groups", c.entries, c.groups), func(b *testing.B) {
			t := fill(c.entries, c.groups)
			b.ResetTimer()
			for range b.N {
				t.Snapshot().Release()
			}
		})
	}
}

func BenchmarkSnapshot_Range(b *testing.B) {
	t := fill(1_000_000, 128)
	s := t.Snapshot()
	defer s.Release()
	b.ResetTimer()
	sum := uint64(0)
	for range b.N {
		for group := range 128 {
			if err := s.Range(group, func(k, v uint64) error { sum += v; return nil }); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e6, "ns/entry")
}

func BenchmarkMap_Insert(b *testing.B) {
	for range b.N {
		m := map[uint64]uint64{}
		for k := range uint64(1_000_000) {
			m[k]++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e6, "ns/entry")
}

func BenchmarkTable_Insert(b *testing.B) {
	for range b.N {
		fill(1_000_000, 128)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e6, "ns/entry")
}

// BenchmarkTable_Bytes reports heap bytes per entry with 16-byte keys and 8-byte values. The fill of pages moves with the size, so several are measured.
func BenchmarkTable_Bytes(b *testing.B) {
	for _, n := range []uint64{100_000, 500_000, 700_000, 1_000_000, 1_400_000, 2_000_000, 5_000_000} {
		b.Run(fmt.Sprintf("%dk", n/1000), func(b *testing.B) {
			for range b.N {
				before := heapBytes()
				t := NewTable[key16, uint64](job.KeyGroupRange{End: 128}, 128)
				for k := range n {
					t.Put(hashUint(k), key16{k, k}, k)
				}
				b.ReportMetric(float64(heapBytes()-before)/float64(n), "B/entry")
				runtime.KeepAlive(t)
			}
		})
	}
}

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
