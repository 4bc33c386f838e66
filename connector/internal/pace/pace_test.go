package pace

import (
	"testing"
	"testing/synctest"
	"time"
)

// emit runs a reader that always has records, until it has emitted n, and returns when each was emitted after the start.
func emit(p Pace, n, limit int) []time.Duration {
	var times []time.Duration
	start := time.Now()
	for len(times) < n {
		k, next := p.Due(limit)
		for range min(k, n-len(times)) {
			times = append(times, time.Since(start))
		}
		p.Took(k)
		if waiting, until := next.Waiting(); waiting {
			time.Sleep(time.Until(until)) // fake time
		}
	}
	return times
}

func TestPace_EveryRecordComesWhenItIsDue(t *testing.T) {
	for _, c := range []struct {
		records int64
		period  time.Duration
	}{{1, time.Second}, {3, time.Second}, {7, 3 * time.Second}, {999, time.Second}, {1, time.Hour}, {250_000, time.Second}, {1 << 40, 64 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			const n = 5000
			for i, got := range emit(New(c.records, c.period), n, 100) {
				due := time.Duration(float64(i) * float64(c.period) / float64(c.records))
				if got < due-1 || got > due+Tick {
					t.Fatalf("%d in %v: record %d came at %v, is due at %v", c.records, c.period, i, got, due)
				}
			}
		})
	}
}

func TestPace_AfterADelay_CatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(10, time.Second)
		n, _ := p.Due(1000)
		p.Took(n)
		time.Sleep(5 * time.Second)
		if n, _ = p.Due(1000); n != 50 {
			t.Errorf("%d records are due after 5 s at 10 a second, want 50", n)
		}
		if n, _ = p.Due(20); n != 20 {
			t.Errorf("%d records with a limit of 20", n)
		}
	})
}

func TestPace_WithoutRate_HasNoLimit(t *testing.T) {
	var p Pace
	if n, next := p.Due(77); n != 77 || next.Ended() {
		t.Errorf("%d, %+v", n, next)
	}
}

func TestPace_AfterCenturies_DoesNotOverflow(t *testing.T) {
	p := New(1<<40, time.Hour)
	if got := p.dueBy(1<<63 - 1); got < maxDuration>>1 {
		t.Errorf("dueBy %d", got)
	}
	if got := p.dueAt(1 << 63); got <= 0 {
		t.Errorf("dueAt %v", got)
	}
}
