package sim

import (
	"fmt"
	"time"
)

// keptLines is how much of the log a result shows if nobody asks for more.
const keptLines = 80

// eventLog keeps the end of the log, and a hash of all of it and of every step.
type eventLog struct {
	keep  int
	lines []string
	next  int
	hash  uint64
}

func newEventLog(keep int) eventLog {
	return eventLog{keep: max(keep, keptLines), hash: 14695981039346656037}
}

func (l *eventLog) add(at time.Duration, text string) {
	l.mix(at, text)
	line := fmt.Sprintf("%10.4fs  %s", at.Seconds(), text)
	if len(l.lines) < l.keep {
		l.lines = append(l.lines, line)
		return
	}
	l.lines[l.next%l.keep] = line
	l.next++
}

// mix takes a step into the hash: FNV-1a.
func (l *eventLog) mix(at time.Duration, text string) {
	h := (l.hash ^ uint64(at)) * 1099511628211
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	l.hash = h
}

func (l *eventLog) tail() []string {
	at := l.next % l.keep
	return append(append([]string(nil), l.lines[min(at, len(l.lines)):]...), l.lines[:min(at, len(l.lines))]...)
}
