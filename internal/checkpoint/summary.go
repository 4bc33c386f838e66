package checkpoint

import (
	"slices"
	"time"
)

// Quantity is what is measured: a duration, or a number of bytes.
type Quantity interface{ ~int64 }

// StatsSummary describes many measurements of one quantity, in its unit. A percentile is one of the measurements: the smallest that so many of
// a hundred (P999: of a thousand) do not exceed. The zero value describes none.
type StatsSummary[T Quantity] struct {
	Count                    int
	Sum, Min, Max, Avg       T
	P50, P90, P95, P99, P999 T
}

// Summarize describes values. It sorts them.
func Summarize[T Quantity](values []T) StatsSummary[T] {
	slices.Sort(values)
	var sum T
	for _, v := range values {
		sum += v
	}
	return describe(values, sum)
}

func describe[T Quantity](sorted []T, sum T) StatsSummary[T] {
	n := len(sorted)
	if n == 0 {
		return StatsSummary[T]{}
	}
	at := func(perMille int) T { return sorted[(perMille*n+999)/1000-1] }
	return StatsSummary[T]{
		Count: n, Sum: sum, Min: sorted[0], Max: sorted[n-1], Avg: sum / T(n),
		P50: at(500), P90: at(900), P95: at(950), P99: at(990), P999: at(999),
	}
}

// MetricsSummary describes the Metrics of many tasks.
type MetricsSummary struct {
	StartDelay StatsSummary[time.Duration]
	Alignment  StatsSummary[time.Duration]
	Sync       StatsSummary[time.Duration]
	Async      StatsSummary[time.Duration]
	StateBytes StatsSummary[int64]
}

// SummarizeMetrics describes the metrics of tasks.
func SummarizeMetrics(all []Metrics) MetricsSummary {
	durations := func(of func(Metrics) time.Duration) StatsSummary[time.Duration] {
		values := make([]time.Duration, len(all))
		for i, m := range all {
			values[i] = of(m)
		}
		return Summarize(values)
	}
	sizes := make([]int64, len(all))
	for i, m := range all {
		sizes[i] = m.StateBytes
	}
	return MetricsSummary{
		StartDelay: durations(func(m Metrics) time.Duration { return m.StartDelay }),
		Alignment:  durations(func(m Metrics) time.Duration { return m.Alignment }),
		Sync:       durations(func(m Metrics) time.Duration { return m.Sync }),
		Async:      durations(func(m Metrics) time.Duration { return m.Async }),
		StateBytes: Summarize(sizes),
	}
}

// MaxSummarized is how many of the latest completed checkpoints a CompletedSummary describes.
const MaxSummarized = 1000

// CompletedSummary describes the latest MaxSummarized completed checkpoints of a job, without its savepoints.
type CompletedSummary struct {
	Duration   StatsSummary[time.Duration] // from trigger to completion
	Alignment  StatsSummary[time.Duration] // of each checkpoint the longest of its tasks
	StateBytes StatsSummary[int64]
}

// Window holds the latest measurements of a quantity, and keeps them sorted, so that describing them costs no more than reading them.
type Window[T Quantity] struct {
	limit  int
	newest []T // in order of arrival; a ring once it is full
	next   int // of newest, to be overwritten
	sorted []T
	sum    T
}

// NewWindow makes a window of the latest limit measurements, at least one.
func NewWindow[T Quantity](limit int) Window[T] { return Window[T]{limit: max(limit, 1)} }

// Add takes a measurement, in the place of the oldest when there are too many.
func (w *Window[T]) Add(v T) {
	if len(w.newest) < w.limit {
		w.newest = append(w.newest, v)
	} else {
		old := w.newest[w.next]
		w.newest[w.next] = v
		w.next = (w.next + 1) % w.limit
		i, _ := slices.BinarySearch(w.sorted, old)
		w.sorted = slices.Delete(w.sorted, i, i+1)
		w.sum -= old
	}
	i, _ := slices.BinarySearch(w.sorted, v)
	w.sorted = slices.Insert(w.sorted, i, v)
	w.sum += v
}

// Summary describes the measurements in the window.
func (w *Window[T]) Summary() StatsSummary[T] { return describe(w.sorted, w.sum) }
