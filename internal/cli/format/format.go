// Package format writes numbers as people read them.
//
// Owns: the forms of sizes, durations, ages and counts in tables and sentences of the command line, and how a rate is taken from a count.
//
// Goroutines: none.
//
// Not here: JSON, which has plain numbers (package view).
//
// Start at: format.go.
package format

import (
	"fmt"
	"strconv"
	"time"
)

// Bytes is a size with a binary unit.
func Bytes(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	v, units := float64(n), "KMGTPE"
	i := -1
	for v >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	return fmt.Sprintf("%.1f %ciB", v, units[i])
}

// Duration is a duration with about three digits, which is what people can use.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Duration(-d)
	case d >= time.Hour:
		return d.Round(time.Minute).String()[:len(d.Round(time.Minute).String())-2]
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}

// Age is how long ago t is.
func Age(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return Duration(max(0, now.Sub(t)).Truncate(time.Second)) + " ago"
}

// Count is a number with thousands separated.
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Counted is "1 restart", "2 restarts".
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
