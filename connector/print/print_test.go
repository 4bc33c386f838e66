package print_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/weirstream/weir/connector/print"
	"github.com/weirstream/weir/stream"
)

func open[T any](t *testing.T, s stream.Sink[T], subtask int) stream.Writer[T] {
	t.Helper()
	w, err := s.Open(stream.SinkEnv{Subtask: subtask})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestSink_WritesALineForEachRecord(t *testing.T) {
	var b strings.Builder
	w := open(t, print.Sink(&b, func(v int) string { return strings.Repeat("x", v) }), 3)
	for _, v := range []int{2, 0, 1} {
		if err := w.Write(stream.NoTimestamp, v); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := b.String(), "3> xx\n3> \n3> x\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

func TestSink_WithoutFormat_PrintsTheValue(t *testing.T) {
	var b strings.Builder
	if err := open(t, print.Sink[[]int](&b, nil), 0).Write(stream.NoTimestamp, []int{1, 2}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != "0> [1 2]\n" {
		t.Errorf("printed %q", got)
	}
}

func TestSink_OfSeveralSubtasks_KeepsLinesWhole(t *testing.T) {
	var b strings.Builder // not safe for use by several goroutines: the race detector watches
	s := print.Sink(&b, func(v string) string { return v })
	var wg sync.WaitGroup
	for i := range 4 {
		w := open(t, s, i)
		wg.Go(func() {
			for range 500 {
				if err := w.Write(stream.NoTimestamp, "abc"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i := range 4 {
		line := string(rune('0'+i)) + "> abc\n"
		if n := strings.Count(b.String(), line); n != 500 {
			t.Errorf("%d times %q", n, line)
		}
	}
}

type broken struct{}

var errBroken = errors.New("pipe is closed")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestSink_ThatCannotWrite_Fails(t *testing.T) {
	if err := open(t, print.Sink[int](broken{}, nil), 0).Write(stream.NoTimestamp, 1); !errors.Is(err, errBroken) {
		t.Errorf("error %v", err)
	}
}
