package s3_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"net/http"

	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/storage/s3"
	"github.com/weirstream/weir/internal/storage/s3/s3test"
)

// However it is read, by any number of goroutines over a line that breaks, a file gives what bytes.Reader gives.
func TestFile_ReadAt_IsThatOfABytesReader(t *testing.T) {
	var requests atomic.Int64
	behind, direct, _ := line(t, func(r *http.Request) s3test.Fault {
		if !isGet(r) {
			return s3test.Fault{}
		}
		n := requests.Add(1)
		return s3test.Fault{Before: n%11 == 0, Cut: n%7 == 0}
	})
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for _, size := range []int{0, 1, 64 << 10, 64<<10 + 1, 1 << 20, 9<<20 + 17} {
		data := big()[:size]
		name := fmt.Sprintf("f%d", size)
		writeBig(t, direct, name, data)
		f, err := behind.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if f.Size() != int64(size) {
			t.Errorf("size is %d, want %d", f.Size(), size)
		}
		var wg sync.WaitGroup
		for g := range 3 {
			wg.Go(func() { readLike(t, f, data, rand.New(rand.NewPCG(seed, uint64(g)))) })
		}
		wg.Wait()
		if got, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size())); err != nil || !bytes.Equal(got, data) {
			t.Errorf("in order: %d bytes, %v", len(got), err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func readLike(t *testing.T, f io.ReaderAt, data []byte, rng *rand.Rand) {
	twin := bytes.NewReader(data)
	at := int64(0)
	for range 25 {
		if rng.IntN(2) == 0 {
			at = rng.Int64N(int64(len(data)) + 10)
		}
		n := []int{0, 1, 100, 64 << 10, 1 << 20, 8<<20 + 1, 10 << 20}[rng.IntN(7)]
		got, want := make([]byte, n), make([]byte, n)
		gotN, gotErr := f.ReadAt(got, at)
		wantN, wantErr := twin.ReadAt(want, at)
		if n == 0 { // both are right that give nothing
			continue
		}
		if gotN != wantN || !bytes.Equal(got[:gotN], want[:wantN]) || gotErr != nil && !errors.Is(gotErr, io.EOF) || gotN < n && gotErr == nil {
			t.Errorf("%d bytes at %d of %d: %d, %v; want %d, %v", n, at, len(data), gotN, gotErr, wantN, wantErr)
			return
		}
		at += int64(gotN)
	}
}

// Of a file that is replaced while it is open nothing but the old content is ever given.
func TestFile_ReplacedOrRemoved_IsAnError(t *testing.T) {
	s := open(t, server.Endpoint())
	for name, change := range map[string]func() error{
		"replaced": func() error { return s.WriteFile(t.Context(), "f", bytes.Repeat([]byte{1}, 3<<20), storage.Replace) },
		"removed":  func() error { return s.Remove(t.Context(), "f") },
	} {
		if err := s.WriteFile(t.Context(), "f", make([]byte, 3<<20), storage.Replace); err != nil {
			t.Fatal(err)
		}
		f, err := s.Open(t.Context(), "f")
		if err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 2 << 20} {
			if _, err := f.ReadAt(make([]byte, n), 1<<20); err == nil {
				t.Errorf("%s: %d bytes are read", name, n)
			}
		}
		if _, err := f.ReadAt(make([]byte, -1+1), -1); err == nil {
			t.Error("a negative offset is read")
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Small reads in order cost few requests.
func TestFile_ReadInOrder_ReadsAhead(t *testing.T) {
	stats := &s3.Stats{}
	s := openAt(t, server.Endpoint(), newPrefix(), stats)
	data := big()
	writeBig(t, s, "f", data)
	before := stats.Read().Operations[s3.OpGet].Tries
	f, err := s.Open(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 0, len(data))
	buffer := make([]byte, 10_000)
	for {
		n, err := f.ReadAt(buffer, int64(len(got)))
		got = append(got, buffer[:n]...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := stats.Read().Operations[s3.OpGet].Tries - before; !bytes.Equal(got, data) || n > 12 {
		t.Errorf("%d of %d bytes in %d requests", len(got), len(data), n)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
