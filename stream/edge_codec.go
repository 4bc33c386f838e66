package stream

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weirstream/weir/stream/codec"
)

// MaxBatch bounds the number of records in a batch on the wire.
const MaxBatch = 1 << 20

// A batch on the wire is: uvarint count, a byte that says whether timestamps follow, count timestamps (varint differences), count values.

func (e *edgeType[T]) Encode(dst []byte, b Batch) ([]byte, error) {
	t, ok := b.(*batch[T])
	if !ok {
		return dst, fmt.Errorf("edge of %s got a batch of %T", typeName[T](), b)
	}
	dst = binary.AppendUvarint(dst, uint64(len(t.values)))
	dst = appendTimes(dst, t.times)
	var err error
	for _, v := range t.values {
		if dst, err = e.codec.Append(dst, v); err != nil {
			return dst, fmt.Errorf("encode %s: %w", typeName[T](), err)
		}
	}
	e.recycle(t)
	return dst, nil
}

func appendTimes(dst []byte, times []Timestamp) []byte {
	timed := false
	for _, ts := range times {
		if ts != NoTimestamp {
			timed = true
			break
		}
	}
	if !timed {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	last := Timestamp(0)
	for _, ts := range times {
		dst = binary.AppendVarint(dst, int64(ts-last)) // wraps around for NoTimestamp, and back when decoded
		last = ts
	}
	return dst
}

func (e *edgeType[T]) Decode(src []byte) (Batch, error) {
	n, size := binary.Uvarint(src)
	if size <= 0 || n > MaxBatch {
		return nil, fmt.Errorf("decode batch of %s: bad record count", typeName[T]())
	}
	src = src[size:]
	b := e.get(int(min(n, 1024))) // damaged input must not make us allocate a million
	var err error
	if b.times, src, err = decodeTimes(b.times, src, int(n)); err != nil {
		return nil, fmt.Errorf("decode batch of %s: %w", typeName[T](), err)
	}
	if b.values, src, err = codec.DecodeAll(e.codec, src, int(n), b.values); err != nil {
		return nil, fmt.Errorf("decode batch of %s: %w", typeName[T](), err)
	}
	if len(src) != 0 {
		return nil, fmt.Errorf("decode batch of %s: %d bytes left over", typeName[T](), len(src))
	}
	return b, nil
}

func decodeTimes(times []Timestamp, src []byte, n int) ([]Timestamp, []byte, error) {
	if len(src) == 0 || src[0] > 1 {
		return nil, nil, errors.New("no timestamps")
	}
	timed := src[0] == 1
	src = src[1:]
	last := Timestamp(0)
	for range n {
		if !timed {
			times = append(times, NoTimestamp)
			continue
		}
		d, size := binary.Varint(src)
		if size <= 0 {
			return nil, nil, errors.New("truncated timestamps")
		}
		src = src[size:]
		last += Timestamp(d)
		times = append(times, last)
	}
	return times, src, nil
}
