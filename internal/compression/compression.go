// Package compression compresses the parts of a piece of state, each by itself.
//
// Owns: how state looks that checkpoint.Zstd is written at: one zstd frame with its content size, nothing for an empty part.
//
// Promises: what Append of an Encoder gives, that of a Decoder gives back. A Decoder never makes more of stored bytes than it was told is possible,
// whatever they are.
//
// Goroutines: none. An Encoder and a Decoder may be used by any number.
//
// Not here: which state is compressed, and its offsets (package task); checksums (package checkpoint).
//
// Start at: this file.
package compression

import (
	"errors"
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/weirstream/weir/internal/checkpoint"
)

// Encoder compresses.
type Encoder struct{ zstd *zstd.Encoder }

// NewEncoder returns an encoder. It needs no end.
func NewEncoder() *Encoder {
	// Checksums are those of the handles. The fastest level, because a snapshot is written beside the task, on its cores.
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true),
		zstd.WithSingleSegment(true)) // else short parts would not say how long they are
	if err != nil {
		panic(err) // options that are wrong are so always
	}
	return &Encoder{e}
}

// Append compresses raw after dst.
func (e *Encoder) Append(dst, raw []byte) []byte {
	if len(raw) == 0 {
		return dst
	}
	return e.zstd.EncodeAll(raw, dst)
}

// Decoder decompresses.
type Decoder struct{ zstd *zstd.Decoder }

// NewDecoder returns a decoder. It needs no end.
func NewDecoder() *Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true))
	if err != nil {
		panic(err) // options that are wrong are so always
	}
	return &Decoder{d}
}

// ErrTooLong: stored bytes say that they are more than was recorded.
var ErrTooLong = errors.New("compressed state is longer than recorded")

// Append appends what stored holds to dst, at most limit bytes. It gives ErrTooLong for more.
func (d *Decoder) Append(dst, stored []byte, kind checkpoint.Compression, limit int64) ([]byte, error) {
	switch {
	case kind == checkpoint.Uncompressed:
		return append(dst, stored...), nil
	case kind != checkpoint.Zstd:
		return dst, fmt.Errorf("unknown %s", kind)
	case len(stored) == 0:
		return dst, nil
	}
	var h zstd.Header
	if err := h.Decode(stored); err != nil {
		return dst, fmt.Errorf("compressed state: %w", err)
	}
	if !h.HasFCS {
		return dst, errors.New("compressed state does not say how long it is")
	}
	if h.FrameContentSize > uint64(max(limit, 0)) {
		return dst, fmt.Errorf("%w: %d bytes, at most %d are possible", ErrTooLong, h.FrameContentSize, limit)
	}
	size := int(h.FrameContentSize)
	dst = slices.Grow(dst, size)
	out, err := d.zstd.DecodeAll(stored, dst[:len(dst):len(dst)+size])
	if err != nil {
		return dst, fmt.Errorf("compressed state: %w", err)
	}
	if len(out) != len(dst)+size {
		return dst, fmt.Errorf("compressed state has %d bytes instead of %d", len(out)-len(dst), size)
	}
	return out, nil
}
