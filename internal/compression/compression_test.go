package compression

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/weirstream/weir/internal/checkpoint"
)

func TestProperty_WhatIsCompressedComesBack_BehindWhatIsThere(t *testing.T) {
	e, d := NewEncoder(), NewDecoder()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		raw := make([]byte, []int{0, 1, 20, 255, 256, 257, 5000, 300_000}[r.IntN(8)])
		for i := range raw {
			raw[i] = byte(r.IntN(1 + r.IntN(256)))
		}
		stored := e.Append([]byte("front"), raw)
		if !bytes.HasPrefix(stored, []byte("front")) || len(raw) == 0 && len(stored) != 5 {
			t.Fatalf("seed %d: %d bytes became %q", seed, len(raw), stored)
		}
		got, err := d.Append([]byte("before"), stored[5:], checkpoint.Zstd, int64(len(raw)))
		if err != nil || string(got) != "before"+string(raw) {
			t.Fatalf("seed %d: %d bytes came back as %d: %v", seed, len(raw), len(got), err)
		}
		if len(raw) == 0 {
			continue
		}
		if _, err := d.Append(nil, stored[5:], checkpoint.Zstd, int64(len(raw))-1); !errors.Is(err, ErrTooLong) {
			t.Fatalf("seed %d: a limit of a byte less: %v", seed, err)
		}
	}
}

func TestDecoder_Bombs_AreRefusedBeforeTheyGrow(t *testing.T) {
	e, d := NewEncoder(), NewDecoder()
	zeros := e.Append(nil, make([]byte, 64<<20))
	small := e.Append(nil, []byte("small"))
	if len(zeros) > 1<<20 {
		t.Fatalf("%d bytes are no bomb", len(zeros))
	}
	var unsized bytes.Buffer // a stream does not know how long it will be
	w, err := zstd.NewWriter(&unsized)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := w.Write(make([]byte, 1<<16)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, stored := range map[string][]byte{
		"says so": zeros, "behind another frame": append(bytes.Clone(small), zeros...), "does not say": unsized.Bytes(),
		"says less": append(bytes.Clone(small[:5]), zeros[5:]...), "no frame": []byte("not compressed at all"), "cut": zeros[:len(zeros)/2],
	} {
		t.Run(name, func(t *testing.T) {
			allocated := testing.AllocsPerRun(1, func() {
				if out, err := d.Append(nil, stored, checkpoint.Zstd, 1000); err == nil {
					t.Errorf("it became %d bytes", len(out))
				}
			})
			if allocated > 100 {
				t.Errorf("%.0f allocations", allocated)
			}
		})
	}
}

func TestDecoder_OfOtherKinds(t *testing.T) {
	d := NewDecoder()
	if got, err := d.Append([]byte("a"), []byte("bc"), checkpoint.Uncompressed, 0); err != nil || string(got) != "abc" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := d.Append(nil, []byte("x"), checkpoint.Compression(9), 10); err == nil || !strings.Contains(err.Error(), "compression 9") {
		t.Errorf("unknown kind: %v", err)
	}
}

func FuzzDecoder(f *testing.F) {
	e, d := NewEncoder(), NewDecoder()
	f.Add(e.Append(nil, []byte("hello hello hello hello")), int64(100))
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd}, int64(5))
	f.Fuzz(func(t *testing.T, stored []byte, limit int64) {
		limit %= 1 << 16
		out, err := d.Append(nil, stored, checkpoint.Zstd, limit)
		if err == nil && int64(len(out)) > max(limit, 0) {
			t.Errorf("%d bytes of at most %d", len(out), limit)
		}
	})
}

// BenchmarkState is ratio and cost with entries as a keyed state has them: a text key, a few counts, a sum.
func BenchmarkState(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	var raw []byte
	for i := 0; len(raw) < 1<<20; i++ {
		raw = fmt.Appendf(raw, "\x0fkey-%08d-%02x", r.IntN(10_000_000), i%251)
		for range 4 {
			raw = append(raw, byte(r.IntN(200)), byte(r.IntN(3)), 0)
		}
		raw = fmt.Appendf(raw, "%08x", r.Uint32())
	}
	e, d := NewEncoder(), NewDecoder()
	stored := e.Append(nil, raw)
	b.Run("compress", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		var buf []byte
		for b.Loop() {
			buf = e.Append(buf[:0], raw)
		}
		b.ReportMetric(float64(len(raw))/float64(len(stored)), "ratio")
	})
	b.Run("decompress", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		var buf []byte
		for b.Loop() {
			var err error
			if buf, err = d.Append(buf[:0], stored, checkpoint.Zstd, int64(len(raw))); err != nil {
				b.Fatal(err)
			}
		}
	})
}
