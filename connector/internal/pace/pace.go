// Package pace spreads the records of a source evenly over time.
//
// Owns: when each record of a rate-limited reader is due.
//
// Promises: record i is due i periods after the first, exactly, however long the reader was held up: rounding never adds up. A reader that was held up
// catches up.
//
// Goroutines: none. Nothing here waits: a reader asks how many records are due, and until when it has to wait.
//
// Start at: Pace.
package pace

import (
	"math/bits"
	"time"

	"github.com/weirstream/weir/stream"
)

// Tick is the shortest wait: at high rates records come in small groups instead of one by one.
const Tick = time.Millisecond

// Pace is the schedule of one reader. The zero value has no limit.
type Pace struct {
	records uint64        // records in each period, 0: no limit
	period  time.Duration // positive
	start   time.Time     // when record 0 is due; zero before the first question
	taken   uint64
}

// New returns a schedule of some records in each period. No records means no limit.
func New(records int64, period time.Duration) Pace {
	return Pace{records: uint64(max(records, 0)), period: max(period, 1)}
}

// Due returns how many records may be emitted at once, at most limit. If none, the reader returns next.
func (p *Pace) Due(limit int) (n int, next stream.Next) {
	if p.records == 0 {
		return limit, stream.More
	}
	now := time.Now()
	if p.start.IsZero() {
		p.start = now
	}
	due := p.dueBy(now.Sub(p.start))
	if due > p.taken {
		return int(min(due-p.taken, uint64(limit))), stream.More
	}
	return 0, stream.WaitUntil(p.start.Add(max(p.dueAt(p.taken), now.Sub(p.start)+Tick)))
}

// Took says that n records were emitted.
func (p *Pace) Took(n int) {
	p.taken += uint64(n)
}

// dueAt is when record i is due, after the start: i * period / records, rounded up.
func (p *Pace) dueAt(i uint64) time.Duration {
	hi, lo := bits.Mul64(i, uint64(p.period))
	lo, carry := bits.Add64(lo, p.records-1, 0)
	return time.Duration(div(hi+carry, lo, p.records))
}

// dueBy is how many records are due in the first elapsed time: those with i * period / records <= elapsed.
func (p *Pace) dueBy(elapsed time.Duration) uint64 {
	hi, lo := bits.Mul64(uint64(max(elapsed, 0)), p.records)
	return div(hi, lo, uint64(p.period)) + 1
}

// maxDuration is what div returns at most: no schedule lasts for three centuries.
const maxDuration = 1<<62 - 1

func div(hi, lo, by uint64) uint64 {
	if hi >= by {
		return maxDuration
	}
	q, _ := bits.Div64(hi, lo, by)
	return min(q, maxDuration)
}
