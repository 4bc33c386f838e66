package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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

// BenchmarkTable_UpdateAgainstMap interleaves rounds on a table and on a map, by the processor time of the thread, since absolute times move with the
// load of the machine, and reports the median of the ratios.
func BenchmarkTable_UpdateAgainstMap(b *testing.B) {
	const rounds, updates = 201, 40_000
	perSize(b, func(b *testing.B, n uint64) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		t, m := fill(n, 128), map[uint64]uint64{}
		for k := range n {
			m[k] = 1
		}
		runtime.GC()
		b.ResetTimer()
		for range b.N {
			var ratios []float64
			for round := range rounds {
				start := threadTime()
				for i := range updates {
					m[stride(round*updates+i, n)]++
				}
				middle := threadTime()
				for i := range updates {
					k := stride((round+rounds)*updates+i, n)
					ref, _ := t.Ref(hashUint(k), k)
					*ref++
				}
				ratios = append(ratios, float64(threadTime()-middle)/float64(middle-start))
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

// BenchmarkTable_UpdateDuringSnapshot is what a snapshot that is being written takes from the task: rounds of updates while another goroutine encodes
// a snapshot into a file, key group by key group, and syncs it, and rounds without one, in turn. It reports the median of the loss in per cent: of the task's own time, as if the
// writer had a processor of its own.
func BenchmarkTable_UpdateDuringSnapshot(b *testing.B) {
	perSize(b, func(b *testing.B, n uint64) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		t := fill(n, 128)
		b.ResetTimer()
		for range b.N {
			b.ReportMetric(medianLoss(b, t, n), "%loss")
		}
	})
}

func medianLoss(b *testing.B, t *Table[uint64, uint64], n uint64) float64 {
	var losses []float64
	at := 0
	for range 9 {
		s := t.Snapshot()
		written := make(chan struct{})
		go func() {
			defer close(written)
			encode(b, s)
		}()
		during := perUpdate(t, n, &at, written)
		written = make(chan struct{})
		timer := time.AfterFunc(50*time.Millisecond, func() { close(written) })
		without := perUpdate(t, n, &at, written)
		timer.Stop()
		losses = append(losses, 100*(during/without-1))
	}
	slices.Sort(losses)
	return losses[len(losses)/2]
}

// perUpdate updates until it is told to end, and returns the processor time of the thread for each update.
func perUpdate(t *Table[uint64, uint64], n uint64, at *int, end <-chan struct{}) float64 {
	start, before := threadTime(), *at
	for {
		select {
		case <-end:
			return float64(threadTime()-start) / float64(*at-before)
		default:
		}
		for range 1000 {
			k := stride(*at, n)
			*at++
			ref, _ := t.Ref(hashUint(k), k)
			*ref++
		}
	}
}

// encode writes a snapshot as a checkpoint does: into a file, which is synced at the end.
func encode(b *testing.B, s *Snapshot[uint64, uint64]) {
	defer s.Release()
	f, err := os.CreateTemp(b.TempDir(), "")
	if err != nil {
		b.Error(err)
		return
	}
	var buf []byte
	flush := func() {
		crc32.Checksum(buf, castagnoli)
		if _, err := f.Write(buf); err != nil {
			b.Error(err)
		}
		buf = buf[:0]
	}
	for group := range 128 {
		err := s.Range(group, func(k, v uint64) error {
			buf = binary.AppendUvarint(binary.AppendUvarint(buf, k), v)
			if len(buf) > 1<<20 {
				flush()
			}
			return nil
		})
		if err != nil {
			b.Error(err)
		}
		s.ReleaseGroup(group)
	}
	flush()
	if err := errors.Join(f.Sync(), f.Close(), os.Remove(f.Name())); err != nil {
		b.Error(err)
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// threadTime is the processor time of the calling thread.
func threadTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

// BenchmarkTable_Snapshot is the part of a checkpoint during which the task stands still.
func BenchmarkTable_Snapshot(b *testing.B) {
	for _, c := range []struct {
		entries uint64
		groups  int
	}{{1000, 128}, {10_000_000, 128}, {1000, job.MaxMaxParallelism}} {
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

// BenchmarkTable_GarbageCollection holds 50 million entries of 16-byte keys and 8-byte values, updates them with a snapshot now and then, and reports bytes
// per entry and the share of processor time that goes to the garbage collector.
func BenchmarkTable_GarbageCollection(b *testing.B) {
	const n = 50_000_000
	before := heapBytes()
	t := NewTable[key16, uint64](job.KeyGroupRange{End: 128}, 128)
	for k := range uint64(n) {
		t.Put(hashUint(k), key16{k, k}, k)
	}
	bytes := float64(heapBytes() - before)
	b.ResetTimer()
	gc, total := gcSeconds()
	for range b.N {
		s := t.Snapshot()
		for i := range 10_000_000 {
			if i == 3_000_000 {
				s.Release()
			}
			k := stride(i, n)
			ref, _ := t.Ref(hashUint(k), key16{k, k})
			*ref++
		}
	}
	gc2, total2 := gcSeconds()
	b.ReportMetric(bytes/n, "B/entry")
	b.ReportMetric(100*(gc2-gc)/(total2-total), "%gc")
}

// gcSeconds is the processor time of the garbage collector, and of all that the program did.
func gcSeconds() (gc, used float64) {
	runtime.GC() // the figures are brought up to date by it
	s := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/total:cpu-seconds"}, {Name: "/cpu/classes/idle:cpu-seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64(), s[1].Value.Float64() - s[2].Value.Float64()
}
