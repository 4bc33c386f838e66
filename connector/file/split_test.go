package file

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestSplit_EncodingIsGolden holds encodings of every version: they must stay readable.
func TestSplit_EncodingIsGolden(t *testing.T) {
	for golden, want := range map[string]split{
		"0100062f612e637376b960efbeaddee807d00fc80164": {path: "/a.csv", id: identity{12345, 0xdeadbeef}, start: 1000, end: 3000, next: 1200, lines: 100},
		"0101052f622e677ab960efbeadde03c8010a":         {path: "/b.gz", id: identity{12345, 0xdeadbeef}, gzip: true, start: 3, end: unknownEnd, next: 203, lines: 10},
	} {
		if got := hex.EncodeToString(want.encode()); got != golden {
			t.Errorf("%+v is encoded as %s, want %s", want, got, golden)
		}
		b, err := hex.DecodeString(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decodeSplit(b); err != nil || got != want {
			t.Errorf("decoded %+v, error %v", got, err)
		}
		for i := range b {
			if _, err := decodeSplit(b[:i]); err == nil {
				t.Errorf("%d of %d bytes were decoded", i, len(b))
			}
		}
		if _, err := decodeSplit(append(b, 0)); err == nil {
			t.Error("a byte too many was decoded")
		}
	}
}

func TestSplit_OutOfRange_IsRefused(t *testing.T) {
	good := split{path: "/a", id: identity{size: 100}, start: 10, end: 90, next: 20, lines: 5}
	for what, change := range map[string]func(*split){
		"no path":             func(s *split) { s.path = "" },
		"end behind the file": func(s *split) { s.end = 101 },
		"next behind the end": func(s *split) { s.next = 91 },
		"next before start":   func(s *split) { s.next = 9 },
		"lines without bytes": func(s *split) { s.lines = 11 },
	} {
		s := good
		change(&s)
		if got, err := decodeSplit(s.encode()); err == nil {
			t.Errorf("%s: decoded %+v", what, got)
		}
	}
}

func FuzzDecodeSplit(f *testing.F) {
	f.Add(split{path: "/a.csv", id: identity{12345, 0xdeadbeef}, start: 1000, end: 3000, next: 1200, lines: 100}.encode())
	f.Add(split{path: "/b.gz", id: identity{12345, 0xdeadbeef}, gzip: true, start: 3, end: unknownEnd, next: 203, lines: 10}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeSplit(b)
		if err != nil {
			return
		}
		if s.start < 0 || s.next < s.start || s.end < s.next || s.lines < 0 || s.path == "" || !s.gzip && s.end > s.id.size {
			t.Errorf("decoded %+v", s)
		}
		if !bytes.Equal(s.encode(), b) {
			t.Errorf("%x is encoded as %x", b, s.encode())
		}
	})
}

func FuzzDecodeTransaction(f *testing.F) {
	f.Add(encodeTransaction("/out/part-a-out-0-0-1.csv", 1000))
	f.Fuzz(func(t *testing.T, b []byte) {
		final, size, err := decodeTransaction(b)
		if err != nil {
			return
		}
		if size < 0 || final == "" {
			t.Errorf("decoded %q, %d", final, size)
		}
		if f2, s2, err := decodeTransaction(encodeTransaction(final, size)); err != nil || f2 != final || s2 != size {
			t.Errorf("decoded %q, %d, error %v again", f2, s2, err)
		}
	})
}

func TestCut_ALineBelongsToThePieceInWhichItStarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	// Lines start at 0, 2, 4, 10 and 12.
	if err := os.WriteFile(path, []byte("a\nb\ncdefg\nh\nij"), 0o600); err != nil {
		t.Fatal(err)
	}
	whole := split{path: path, id: identity{size: 14}, end: 14}
	for size, want := range map[int64][]int64{
		1: {0, 2, 4, 10, 12}, 2: {0, 2, 4, 10, 12}, 3: {0, 4, 10, 12}, 4: {0, 4, 10, 12}, 5: {0, 10}, 6: {0, 10, 12}, 10: {0, 10}, 11: {0, 12}, 12: {0, 12}, 13: {0}, 14: {0},
	} {
		pieces, err := whole.cut(size, &options{})
		if err != nil {
			t.Fatal(err)
		}
		var starts []int64
		for i, p := range pieces {
			starts = append(starts, p.start)
			end := whole.end
			if i+1 < len(pieces) {
				end = pieces[i+1].start
			}
			if p.end != end || p.next != p.start {
				t.Errorf("size %d: piece %+v, the next one starts at %d", size, p, end)
			}
		}
		if !slices.Equal(starts, want) {
			t.Errorf("size %d: pieces start at %v, want %v", size, starts, want)
		}
	}
}
