package file

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// dumbScan is what a scanner finds in a text: records, "..." behind those that were cut, and the number of line ends passed.
func dumbScan(text string, limit int, multiLine bool) (found []string) {
	lines, passed := strings.SplitAfter(text, "\n"), 0
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	for len(lines) > 0 {
		n, record := 1, lines[0]
		for multiLine && strings.Count(record, `"`)%2 == 1 {
			if n == len(lines) || len(trim(record)) > limit {
				n, record = 1, lines[0] // not closed within the limit
				break
			}
			record += lines[n]
			n++
		}
		whole := trim(record)
		if n > 1 && len(whole) > limit {
			// Closed, but only behind the limit: how much of it is passed depends on what was in the buffer, so texts avoid it.
			panic("ambiguous")
		}
		passed += strings.Count(strings.Join(lines[:n], ""), "\n")
		lines = lines[n:]
		if len(whole) > limit {
			whole = whole[:limit] + "..."
		}
		found = append(found, fmt.Sprintf("%d %s", passed, whole))
	}
	return found
}

func trim(record string) string {
	return strings.TrimSuffix(strings.TrimSuffix(record, "\n"), "\r")
}

func TestScanner_OnRandomTexts_HoweverTheyCome_IsADumbOne(t *testing.T) {
	const alphabet = "aaab\n\n\r\""
	for seed := range uint64(20_000) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		multiLine := rnd.IntN(2) == 0
		limit := 1 + rnd.IntN(8)
		if multiLine {
			limit = 100 // see dumbScan
		}
		var b strings.Builder
		for range rnd.IntN(40) {
			b.WriteByte(alphabet[rnd.IntN(len(alphabet))])
		}
		var src io.Reader = strings.NewReader(b.String())
		if rnd.IntN(2) == 0 {
			src = iotest.OneByteReader(src)
		}
		s := newScanner(make([]byte, 1+rnd.IntN(20)), &options{maxLine: limit, multiLine: multiLine})
		s.start(src, 7, 0)
		var got []string
		for {
			record, cut, err := s.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprintf("%d %s", s.lines, record)
			if cut {
				text += "..."
			}
			got = append(got, text)
		}
		if want := dumbScan(b.String(), limit, multiLine); !slices.Equal(got, want) {
			t.Fatalf("seed %d, limit %d, multi-line %v, %q:\n got %q\nwant %q", seed, limit, multiLine, b.String(), got, want)
		}
		if s.offset != 7+int64(b.Len()) {
			t.Fatalf("seed %d: offset %d at the end of %d bytes that begin at 7", seed, s.offset, b.Len())
		}
	}
}

func TestScanner_ReadError_IsReturned(t *testing.T) {
	s := newScanner(make([]byte, 4), &options{maxLine: 100})
	s.start(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("abc\n"))), 0, 0)
	if _, _, err := s.next(); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("error %v", err)
	}
}
