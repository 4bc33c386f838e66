package codec

import (
	"fmt"
	"testing"
)

func sixes(n int) []Six {
	out := make([]Six, n)
	for i := range out {
		out[i] = Six{ID: int64(i) * 1001, Time: 1357016100 + int64(i), Origin: "JFK", Dest: fmt.Sprint("DEST", i%100), Delay: float64(i) / 3, Late: i%3 == 0}
	}
	return out
}

func BenchmarkAppend_Six(b *testing.B) {
	c := mustFor[Six](b)
	v := sixes(100)
	var buf []byte
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		buf, _ = c.Append(buf[:0], v[i%100])
	}
}

func BenchmarkDecode_Six(b *testing.B) {
	c := mustFor[Six](b)
	src := mustAppend(b, c, sixes(100)[50])
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := c.Decode(src); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecodeAll_Six gives the time of one record in a batch of 500.
func BenchmarkDecodeAll_Six(b *testing.B) {
	c := mustFor[Six](b)
	var src []byte
	for _, v := range sixes(500) {
		src, _ = c.Append(src, v)
	}
	dst := make([]Six, 0, 500)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := DecodeAll(c, src, 500, dst); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/500, "ns/record")
}

func BenchmarkHash_String(b *testing.B) { benchmarkHash(b, "JFK-LAX") }
func BenchmarkHash_Int64(b *testing.B)  { benchmarkHash(b, int64(12345)) }
func BenchmarkHash_Struct(b *testing.B) {
	benchmarkHash(b, struct {
		Origin string
		Hour   int32
	}{"JFK", 400000})
}

func benchmarkHash[K comparable](b *testing.B, k K) {
	hash, err := Hash[K]()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var sum uint64
	for b.Loop() {
		sum += hash(k)
	}
	_ = sum
}
