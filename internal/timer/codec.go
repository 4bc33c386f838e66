package timer

import (
	"encoding/binary"
	"errors"

	"github.com/weirstream/weir/stream/codec"
)

// Codec writes the key of a timer and then its time.
type Codec[K comparable] struct{ Keys codec.Codec[K] }

// Append implements codec.Codec.
func (c Codec[K]) Append(dst []byte, t Timer[K]) ([]byte, error) {
	dst, err := c.Keys.Append(dst, t.Key)
	if err != nil {
		return dst, err
	}
	return binary.AppendVarint(dst, t.At), nil
}

// Decode implements codec.Codec.
func (c Codec[K]) Decode(src []byte) (t Timer[K], rest []byte, err error) {
	if t.Key, rest, err = c.Keys.Decode(src); err != nil {
		return t, src, err
	}
	at, n := binary.Varint(rest)
	if n <= 0 {
		return t, src, errors.New("truncated time of a timer")
	}
	t.At = at
	return t, rest[n:], nil
}

// Schema implements codec.Codec.
func (c Codec[K]) Schema() string { return c.Keys.Schema() + " at int64" }

// Owned implements codec.Owner.
func (c Codec[K]) Owned() func(t, before Timer[K]) Timer[K] {
	own := codec.Owned(c.Keys)
	if own == nil {
		return nil
	}
	return func(t, before Timer[K]) Timer[K] {
		t.Key = own(t.Key, before.Key)
		return t
	}
}
