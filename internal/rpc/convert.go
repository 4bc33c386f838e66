package rpc

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Every message has an encode function and a decode function. Encoding cannot go wrong: a number that does not fit is set to the nearest that
// does, which the receiver's validation refuses. Decoding validates, and treats a message that is not there like an empty one.

// each converts the elements of a list. An empty list becomes nil, as on the wire.
func each[A, B any](in []A, f func(A) B) []B {
	if len(in) == 0 {
		return nil
	}
	out := make([]B, len(in))
	for i, a := range in {
		out[i] = f(a)
	}
	return out
}

// tryEach is each for a conversion that validates.
func tryEach[A, B any](what string, in []A, f func(A) (B, error)) ([]B, error) {
	if len(in) == 0 {
		return nil, nil
	}
	out := make([]B, len(in))
	for i, a := range in {
		b, err := f(a)
		if err != nil {
			return nil, fmt.Errorf("%s %d: %w", what, i, err)
		}
		out[i] = b
	}
	return out, nil
}

// encodeInt saturates.
func encodeInt(n int) int32 { return int32(max(math.MinInt32, min(math.MaxInt32, n))) }

// encodeEach keeps what is not there apart from what is empty: a map that is nil stays so.
func encodeEach[K ~string](in map[K]int) map[string]int32 {
	if len(in) == 0 {
		return nil
	}
	out := make(map[string]int32, len(in))
	for id, n := range in {
		out[string(id)] = encodeInt(n)
	}
	return out
}

func decodeEach[K ~string](in map[string]int32) map[K]int {
	if len(in) == 0 {
		return nil
	}
	out := make(map[K]int, len(in))
	for id, n := range in {
		out[K(id)] = int(n)
	}
	return out
}

func encodeInts(in []int) []int32 { return each(in, encodeInt) }

// encodeText makes free text fit to travel: a string on the wire must be UTF-8, and a message of an error can hold anything.
func encodeText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// encodeDuration rounds away from zero: what is set must not become zero, which means the default.
func encodeDuration(d, unit time.Duration) int64 {
	n := int64(d / unit)
	switch rest := d % unit; {
	case rest > 0:
		n++
	case rest < 0:
		n--
	}
	return n
}

// decodeDuration saturates.
func decodeDuration(n int64, unit time.Duration) time.Duration {
	switch {
	case n > int64(math.MaxInt64/unit):
		return math.MaxInt64
	case n < int64(math.MinInt64/unit):
		return math.MinInt64
	}
	return time.Duration(n) * unit
}

// encodeTime maps the zero time to 0.
func encodeTime(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func decodeTime(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// enum is an enumeration of the domain or of the wire. The numbers of both are the same; a test compares their names.
type enum interface{ ~int | ~int32 }

func encodeEnum[P, D enum](d D) P { return P(d) }

// decodeEnum refuses a value that this build does not know, and the unspecified one.
func decodeEnum[D, P enum](what string, p P, names map[int32]string) (D, error) {
	if _, ok := names[int32(p)]; !ok || p == 0 {
		return 0, fmt.Errorf("unknown %s %d", what, p)
	}
	return D(p), nil
}

// showEnum is decodeEnum for what is only shown to people: what this build does not know becomes 0, whose name is UNKNOWN.
func showEnum[D, P enum](p P, names map[int32]string) D {
	if _, ok := names[int32(p)]; !ok {
		return 0
	}
	return D(p)
}
