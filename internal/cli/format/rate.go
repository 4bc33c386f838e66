package format

import "time"

// rateSpan is the time over which a rate is taken.
const rateSpan = 5 * time.Second

// Rate measures how fast a count grows.
type Rate struct{ samples []sample }

type sample struct {
	at    time.Time
	count int64
}

// Add says what the count is now.
func (r *Rate) Add(now time.Time, count int64) {
	if n := len(r.samples); n > 0 && count < r.samples[n-1].count {
		r.samples = nil // an execution that has begun anew counts from zero
	} else if n > 0 && count == r.samples[n-1].count {
		return
	}
	r.samples = append(r.samples, sample{now, count})
}

// PerSecond is the growth per second up to now.
func (r *Rate) PerSecond(now time.Time) int64 {
	for len(r.samples) > 1 && now.Sub(r.samples[1].at) >= rateSpan {
		r.samples = r.samples[1:]
	}
	if len(r.samples) == 0 {
		return 0
	}
	first, last := r.samples[0], r.samples[len(r.samples)-1]
	end := last.at
	if now.Sub(end) > 2*time.Second { // counts come about once a second
		end = now
	}
	if end.Sub(first.at) <= 0 {
		return 0
	}
	return int64(float64(last.count-first.count) / end.Sub(first.at).Seconds())
}
