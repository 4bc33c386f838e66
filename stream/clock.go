package stream

import (
	"math"
	"time"
)

// MaxTimestamp is later than every event: event time has come there when the input has ended.
const MaxTimestamp Timestamp = math.MaxInt64

// Add is a time later by d, which counts in whole milliseconds.
func (t Timestamp) Add(d time.Duration) Timestamp { return t + Timestamp(d.Milliseconds()) }

// Clock is the processing time of a task. Only its runtime sets it, between two batches, and not for each record: time is data for operators.
type Clock struct{ now Timestamp }

// Now is the time that was set last.
func (c *Clock) Now() Timestamp { return c.now }

// Set moves the clock on. It never goes back, even if the clock of the host does.
func (c *Clock) Set(now time.Time) { c.now = max(c.now, Timestamp(now.UnixMilli())) }
