package file_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weirstream/weir/connector/connectortest"
	"github.com/weirstream/weir/stream"
)

// put writes a file below dir and returns its path.
func put(t testing.TB, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// zip compresses; each part becomes a member of the gzip file.
func zip(t testing.TB, parts ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, p := range parts {
		z := gzip.NewWriter(&b)
		if _, err := z.Write(p); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// readAll reads a source with one reader: the records in the order of the splits.
func readAll[T any](t testing.TB, src stream.Source[T], parallelism int) ([]T, error) {
	t.Helper()
	splits, err := src.Splits(t.Context(), parallelism)
	if err != nil {
		return nil, err
	}
	r, err := src.Open(stream.SourceEnv{Splits: splits})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	var out connectortest.Collected[T]
	for {
		next, err := r.Read(&out, 100)
		if err != nil || next.Ended() {
			return out.Records, err
		}
	}
}

func mustReadAll[T any](t testing.TB, src stream.Source[T], parallelism int) []T {
	t.Helper()
	got, err := readAll(t, src, parallelism)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func equal[T comparable](t testing.TB, what string, got, want []T) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("%s: %d records, want %d; they differ from number %d on:\n got %+v\nwant %+v", what, len(got), len(want), i,
				got[min(i, len(got)):min(i+2, len(got))], want[min(i, len(want)):min(i+2, len(want))])
		}
	}
}
