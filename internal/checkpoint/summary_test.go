package checkpoint

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSummarize_PercentilesAreValuesThatOccur(t *testing.T) {
	upTo := func(n int) (out []int64) {
		for i := range n {
			out = append(out, int64(n-i))
		}
		return out
	}
	for name, c := range map[string]struct {
		values []int64
		want   StatsSummary[int64]
	}{
		"none": {nil, StatsSummary[int64]{}},
		"one":  {[]int64{7}, StatsSummary[int64]{1, 7, 7, 7, 7, 7, 7, 7, 7, 7}},
		"two":  {[]int64{2, 1}, StatsSummary[int64]{2, 3, 1, 2, 1, 1, 2, 2, 2, 2}},
		"100":  {upTo(100), StatsSummary[int64]{100, 5050, 1, 100, 50, 50, 90, 95, 99, 100}},
		"1000": {upTo(1000), StatsSummary[int64]{1000, 500500, 1, 1000, 500, 500, 900, 950, 990, 999}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Summarize(c.values)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// The window agrees with a twin that keeps everything and sorts it each time.
func TestWindow_DescribesTheLatest(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		limit := 1 + r.IntN(20)
		w := NewWindow[time.Duration](limit)
		var all []time.Duration
		for range 3 * limit {
			v := time.Duration(r.IntN(10)) // few values, so that equal ones leave and stay
			w.Add(v)
			all = append(all, v)
			if diff := cmp.Diff(Summarize(slices.Clone(all[max(0, len(all)-limit):])), w.Summary()); diff != "" {
				t.Fatalf("seed %d, the latest %d of %v (-want +got)\n%s", seed, limit, all, diff)
			}
		}
	}
}

func TestSummarizeMetrics_TakesEachFieldFromItsOwn(t *testing.T) {
	m := Metrics{StartDelay: 1, Alignment: 2, Sync: 3, Async: 4, StateBytes: 5}
	got := SummarizeMetrics([]Metrics{m, m})
	want := [5]int64{2, 4, 6, 8, 10}
	sums := [5]int64{int64(got.StartDelay.Sum), int64(got.Alignment.Sum), int64(got.Sync.Sum), int64(got.Async.Sum), got.StateBytes.Sum}
	if sums != want || got.Sync.Count != 2 || got.Sync.Avg != 3 {
		t.Errorf("sums are %v, want %v; %+v", sums, want, got)
	}
}
