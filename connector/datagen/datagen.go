// Package datagen is a source that makes its records itself, at a chosen rate.
//
// Owns: the numbers from 0 that records are made of, divided between the subtasks, and their schedule.
//
// Promises: every number is used once, also over restores at another parallelism. A subtask uses its numbers in ascending order, and the
// subtasks advance side by side: number i is with split i modulo the number of splits.
//
// Goroutines: none of its own.
//
// Start at: Func.
package datagen

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weirstream/weir/connector/internal/pace"
	"github.com/weirstream/weir/stream"
)

// Sequence emits the numbers 0 to n-1, or without end if n is not positive. See Func.
func Sequence(n int64, ratePerSecond int) stream.Source[int64] {
	return Func(n, ratePerSecond, func(i int64) int64 { return i })
}

// Func emits f(0) to f(n-1), or without end if n is not positive. f must give the same record for the same number every time.
//
// The rate is that of all subtasks together; 0 is unlimited. Record i is due i/rate seconds after the subtask has started, so that the rate holds
// exactly in the long run; a source that was held up by back pressure catches up.
func Func[T any](n int64, ratePerSecond int, f func(i int64) T) stream.Source[T] {
	if n <= 0 {
		n = math.MaxInt64
	}
	return &source[T]{n: n, rate: ratePerSecond, f: f}
}

type source[T any] struct {
	n    int64
	rate int
	f    func(int64) T
}

// split is the numbers next, next+stride, next+2*stride and so on below end.
type split struct {
	next, stride, end int64
}

// Splits implements stream.Source.
func (s *source[T]) Splits(_ context.Context, parallelism int) ([][]byte, error) {
	if s.rate < 0 {
		return nil, fmt.Errorf("datagen: the rate %d must not be negative", s.rate)
	}
	splits := make([][]byte, max(parallelism, 1))
	for i := range splits {
		splits[i] = split{int64(i), int64(len(splits)), s.n}.encode()
	}
	return splits, nil
}

// Open implements stream.Source.
func (s *source[T]) Open(env stream.SourceEnv) (stream.Reader[T], error) {
	r := &reader[T]{f: s.f}
	for _, item := range env.Splits {
		sp, err := decode(item)
		if err != nil {
			return nil, stream.Permanent(err)
		}
		r.splits = append(r.splits, sp)
	}
	if len(r.splits) > 0 && s.rate > 0 {
		// Each split has an equal part of the rate, whichever subtask it is with.
		r.pace = pace.New(int64(s.rate)*int64(len(r.splits)), time.Duration(r.splits[0].stride)*time.Second)
	}
	return r, nil
}

type reader[T any] struct {
	f      func(int64) T
	splits []split
	pace   pace.Pace
}

// Read implements stream.Reader.
func (r *reader[T]) Read(out stream.Collector[T], limit int) (stream.Next, error) {
	s := r.lowest()
	if s == nil {
		return stream.End, nil
	}
	limit, next := r.pace.Due(limit)
	taken := 0
	defer func() { r.pace.Took(taken) }()
	for ; taken < limit && s != nil; s = r.lowest() {
		i := s.next
		if s.next = s.end; i <= s.end-s.stride { // no overflow
			s.next = i + s.stride
		}
		taken++
		if err := out.Collect(stream.NoTimestamp, r.f(i)); err != nil {
			return stream.More, err
		}
	}
	return next, nil
}

// lowest is the split with the lowest number of all, nil when all are finished.
func (r *reader[T]) lowest() *split {
	var low *split
	for i := range r.splits {
		if s := &r.splits[i]; s.next < s.end && (low == nil || s.next < low.next) {
			low = s
		}
	}
	return low
}

// Positions implements stream.Reader.
func (r *reader[T]) Positions() ([][]byte, error) {
	var items [][]byte
	for _, s := range r.splits {
		if s.next < s.end {
			items = append(items, s.encode())
		}
	}
	return items, nil
}

// Close implements stream.Reader.
func (r *reader[T]) Close() error { return nil }

// splitVersion is the first byte of an encoded split.
const splitVersion = 1

// encode writes: version, then next, stride and end as uvarints.
func (s split) encode() []byte {
	b := []byte{splitVersion}
	b = binary.AppendUvarint(b, uint64(s.next))
	b = binary.AppendUvarint(b, uint64(s.stride))
	return binary.AppendUvarint(b, uint64(s.end))
}

func decode(b []byte) (split, error) {
	if len(b) == 0 {
		return split{}, errors.New("datagen split: truncated")
	}
	if b[0] != splitVersion {
		return split{}, fmt.Errorf("datagen split: version %d is not known to this build, which reads version %d", b[0], splitVersion)
	}
	var v [3]int64
	rest := b[1:]
	for i := range v {
		u, n := binary.Uvarint(rest)
		if n <= 0 || u > math.MaxInt64 {
			return split{}, errors.New("datagen split: damaged")
		}
		v[i], rest = int64(u), rest[n:]
	}
	s := split{v[0], v[1], v[2]}
	if len(rest) > 0 || s.stride == 0 || s.stride > math.MaxInt64/int64(time.Second) {
		return split{}, errors.New("datagen split: damaged")
	}
	return s, nil
}
