package datagen_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/connector/connectortest"
	"github.com/weirstream/weir/connector/datagen"
	"github.com/weirstream/weir/stream"
)

func TestSequence_GivesEachNumberOnce(t *testing.T) {
	for seed := range uint64(20) {
		for _, n := range []int64{1, 2, 3, 7, 500} {
			var want []int64
			for i := range n {
				want = append(want, i)
			}
			connectortest.Source(t, seed, datagen.Sequence(n, 0), want)
		}
	}
}

// open makes the reader of a subtask that has some of the splits of a source.
func open[T any](t *testing.T, src stream.Source[T], parallelism int, own ...int) stream.Reader[T] {
	t.Helper()
	splits, err := src.Splits(t.Context(), parallelism)
	if err != nil {
		t.Fatal(err)
	}
	env := stream.SourceEnv{}
	for _, i := range own {
		env.Splits = append(env.Splits, splits[i])
	}
	r, err := src.Open(env)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFunc_WithSeveralSplits_CountsUpwards(t *testing.T) {
	var out connectortest.Collected[string]
	r := open(t, datagen.Func(0, 0, func(i int64) string { return fmt.Sprint(i) }), 5, 3, 1)
	if _, err := r.Read(&out, 6); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(out.Records, " "); got != "1 3 6 8 11 13" {
		t.Errorf("read %s", got)
	}
}

func TestSequence_WithRate_HasEachSplitsShareOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, datagen.Sequence(0, 1000), 4, 0, 2, 3)
		var out connectortest.Collected[int64]
		for start := time.Now(); time.Since(start) < 10*time.Second; {
			next, err := r.Read(&out, 64)
			if err != nil {
				t.Fatal(err)
			}
			if waiting, until := next.Waiting(); waiting {
				time.Sleep(time.Until(until)) // fake time
			}
		}
		if n := len(out.Records); n < 7499 || n > 7501 {
			t.Errorf("%d records in 10 s, want three quarters of 10,000", n)
		}
	})
}

func TestSplits_WithNegativeRate_AreRefused(t *testing.T) {
	if _, err := datagen.Sequence(1, -1).Splits(t.Context(), 1); err == nil {
		t.Error("no error")
	}
}

func FuzzOpen(f *testing.F) {
	for _, p := range []int{1, 3} {
		splits, err := datagen.Sequence(10, 0).Splits(f.Context(), p)
		if err != nil {
			f.Fatal(err)
		}
		for _, s := range splits {
			f.Add(s)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := datagen.Sequence(10, 5).Open(stream.SourceEnv{Splits: [][]byte{slices.Clone(b)}, Restored: true})
		if err != nil {
			if !stream.IsPermanent(err) {
				t.Errorf("%v would be tried again", err)
			}
			return
		}
		var out connectortest.Collected[int64]
		if _, err := r.Read(&out, 3); err != nil {
			t.Fatal(err)
		}
		if !slices.IsSorted(out.Records) {
			t.Errorf("read %v", out.Records)
		}
	})
}
