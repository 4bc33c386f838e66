package file_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weirstream/weir/connector/connectortest"
	"github.com/weirstream/weir/connector/file"
)

// randomText is a text with all that line readers stumble over.
func randomText(rnd *rand.Rand) []byte {
	var b bytes.Buffer
	if rnd.IntN(4) == 0 {
		b.WriteString("\ufeff")
	}
	for range rnd.IntN(30) {
		switch rnd.IntN(8) {
		case 0: // an empty line
		case 1:
			b.WriteString(strings.Repeat("long ", rnd.IntN(20_000)))
		case 2:
			b.WriteString("ä\u2028€ \x00\xff\ufeff")
		case 3:
			b.WriteString("a\rb\r")
		default:
			fmt.Fprint(&b, rnd.IntN(1000))
		}
		b.WriteString([]string{"\n", "\n", "\r\n"}[rnd.IntN(3)])
	}
	if rnd.IntN(2) == 0 {
		b.WriteString("last")
	}
	return b.Bytes()
}

// dumbLines is what Lines must read.
func dumbLines(text []byte) []string {
	s := strings.TrimPrefix(string(text), "\ufeff")
	if s == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	return lines
}

func TestLines_OfRandomTexts_AreThoseOfADumbReader(t *testing.T) {
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		dir := t.TempDir()
		var want []string
		for i := range 1 + rnd.IntN(3) {
			text := randomText(rnd)
			want = append(want, dumbLines(text)...)
			if rnd.IntN(3) == 0 {
				cut := rnd.IntN(len(text) + 1)
				put(t, dir, fmt.Sprintf("%d.txt.gz", i), zip(t, text[:cut], text[cut:]))
			} else {
				put(t, dir, fmt.Sprintf("%d.txt", i), text)
			}
		}
		size := int64(16 + rnd.IntN(1<<(2+rnd.IntN(16))))
		what := fmt.Sprintf("seed %d, splits of %d bytes", seed, size)
		equal(t, what, mustReadAll(t, file.Lines(dir, file.SplitSize(size)), 1), want)
		connectortest.Source(t, seed, file.Lines(dir, file.SplitSize(size)), want)
	}
}

func TestLines_WithSplitsOfEverySize_AreRead(t *testing.T) {
	text := []byte("\ufeffone\ntwo\r\n\n\r\nfive\n\n\nä\nlast")
	path := put(t, t.TempDir(), "a", text)
	for size := range int64(len(text) + 2) {
		what := fmt.Sprintf("splits of %d bytes", size+1)
		equal(t, what, mustReadAll(t, file.Lines(path, file.SplitSize(size+1)), 1), dumbLines(text))
	}
}

func TestLines_UpToTheLimit_AreRecords_AndLongerOnesAreMalformed(t *testing.T) {
	const limit = 100_000
	for _, end := range []string{"\n", "\r\n", ""} {
		for length := limit - 2; length <= limit+3; length++ {
			line := strings.Repeat("x", length)
			dir := t.TempDir()
			path := put(t, dir, "a.txt", []byte("first\n"+line+end))
			want := []string{"first", line}
			if length > limit {
				want = want[:1]
			}
			what := fmt.Sprintf("line of %d bytes and %q", length, end)
			equal(t, what, mustReadAll(t, file.Lines(path, file.MaxLine(limit), file.OnMalformed(file.Skip)), 1), want)
			_, err := readAll(t, file.Lines(path, file.MaxLine(limit)), 1)
			if length <= limit && err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if msg := fmt.Sprintf("%s:2:%d: the line is longer than %d bytes", path, limit+1, limit); length > limit && (err == nil || !strings.Contains(err.Error(), msg)) {
				t.Fatalf("%s: error %v, want %s", what, err, msg)
			}
		}
	}
}

func TestLines_ByDefault_AreSharedByTheSubtasks(t *testing.T) {
	path := put(t, t.TempDir(), "a", bytes.Repeat([]byte("0123456789abcde\n"), 1<<20)) // 16 MiB
	for parallelism, want := range map[int]int{1: 4, 2: 8, 4: 16, 100: 16} {
		splits, err := file.Lines(path).Splits(t.Context(), parallelism)
		if err != nil {
			t.Fatal(err)
		}
		if len(splits) != want {
			t.Errorf("parallelism %d: %d splits, want %d", parallelism, len(splits), want)
		}
	}
}

func TestSplits_WithMoreThanTheLimit_AreRefused(t *testing.T) {
	path := put(t, t.TempDir(), "a", bytes.Repeat([]byte("\n"), file.MaxSplits+1))
	if _, err := file.Lines(path, file.SplitSize(1)).Splits(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "make file.SplitSize larger") {
		t.Errorf("error %v", err)
	}
	path = put(t, t.TempDir(), "a", bytes.Repeat([]byte("\n"), file.MaxSplits))
	splits, err := file.Lines(path, file.SplitSize(1)).Splits(t.Context(), 1)
	if err != nil || len(splits) != file.MaxSplits {
		t.Errorf("%d splits, error %v", len(splits), err)
	}
}

func TestOptions_ThatMakeNoSense_AreRefused(t *testing.T) {
	path := put(t, t.TempDir(), "a", []byte("x\n"))
	for _, opt := range []file.Option{file.SplitSize(0), file.SplitSize(-1), file.MaxLine(0), file.Rate(-1), file.OnMalformed(file.Park("")), file.MultiLine()} {
		src := file.Lines(path, opt)
		if _, err := src.Splits(t.Context(), 1); err == nil {
			t.Error("no error")
		}
	}
}
