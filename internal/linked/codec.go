package linked

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weirstream/weir/stream/codec"
)

// HeadCodec writes the head of a map.
type HeadCodec[U comparable] struct{ Users codec.Codec[U] }

// Append implements codec.Codec.
func (c HeadCodec[U]) Append(dst []byte, h Head[U]) (_ []byte, err error) {
	dst = binary.AppendUvarint(dst, uint64(h.Len))
	if dst, err = c.Users.Append(dst, h.First); err != nil {
		return dst, err
	}
	return c.Users.Append(dst, h.Last)
}

// Decode implements codec.Codec.
func (c HeadCodec[U]) Decode(src []byte) (h Head[U], rest []byte, err error) {
	n, size := binary.Uvarint(src)
	if size <= 0 {
		return h, src, errors.New("truncated length of a map")
	}
	h.Len = int64(n)
	if h.First, rest, err = c.Users.Decode(src[size:]); err != nil {
		return h, src, fmt.Errorf("first entry: %w", err)
	}
	if h.Last, rest, err = c.Users.Decode(rest); err != nil {
		return h, src, fmt.Errorf("last entry: %w", err)
	}
	return h, rest, nil
}

// Schema implements codec.Codec.
func (c HeadCodec[U]) Schema() string { return "head of " + c.Users.Schema() }

// MemberCodec writes a key and then the key within its map.
type MemberCodec[K, U comparable] struct {
	Keys  codec.Codec[K]
	Users codec.Codec[U]
}

// Append implements codec.Codec.
func (c MemberCodec[K, U]) Append(dst []byte, m Member[K, U]) ([]byte, error) {
	dst, err := c.Keys.Append(dst, m.Key)
	if err != nil {
		return dst, err
	}
	return c.Users.Append(dst, m.User)
}

// Decode implements codec.Codec.
func (c MemberCodec[K, U]) Decode(src []byte) (m Member[K, U], rest []byte, err error) {
	if m.Key, rest, err = c.Keys.Decode(src); err != nil {
		return m, src, err
	}
	if m.User, rest, err = c.Users.Decode(rest); err != nil {
		return m, src, fmt.Errorf("key in the map: %w", err)
	}
	return m, rest, nil
}

// Schema implements codec.Codec.
func (c MemberCodec[K, U]) Schema() string { return c.Users.Schema() + " of " + c.Keys.Schema() }

// Owned implements codec.Owner.
func (c MemberCodec[K, U]) Owned() func(m, before Member[K, U]) Member[K, U] {
	key, user := codec.Owned(c.Keys), codec.Owned(c.Users)
	if key == nil && user == nil {
		return nil
	}
	return func(m, before Member[K, U]) Member[K, U] {
		if key != nil {
			m.Key = key(m.Key, before.Key)
		}
		if user != nil {
			m.User = user(m.User, before.User)
		}
		return m
	}
}

// EntryCodec writes the value of an entry and then its links.
type EntryCodec[U comparable, V any] struct {
	Users  codec.Codec[U]
	Values codec.Codec[V]
}

// Append implements codec.Codec.
func (c EntryCodec[U, V]) Append(dst []byte, e Entry[U, V]) (_ []byte, err error) {
	if dst, err = c.Values.Append(dst, e.Value); err != nil {
		return dst, err
	}
	dst = append(dst, byte(e.Links))
	if e.Links&HasPrev != 0 {
		if dst, err = c.Users.Append(dst, e.Prev); err != nil {
			return dst, err
		}
	}
	if e.Links&HasNext != 0 {
		dst, err = c.Users.Append(dst, e.Next)
	}
	return dst, err
}

// Decode implements codec.Codec.
func (c EntryCodec[U, V]) Decode(src []byte) (e Entry[U, V], rest []byte, err error) {
	if e.Value, rest, err = c.Values.Decode(src); err != nil {
		return e, src, err
	}
	if len(rest) == 0 || rest[0] > byte(HasPrev|HasNext) {
		return e, src, errors.New("links of an entry are wrong or truncated")
	}
	e.Links, rest = Links(rest[0]), rest[1:]
	if e.Links&HasPrev != 0 {
		if e.Prev, rest, err = c.Users.Decode(rest); err != nil {
			return e, src, fmt.Errorf("entry before: %w", err)
		}
	}
	if e.Links&HasNext != 0 {
		if e.Next, rest, err = c.Users.Decode(rest); err != nil {
			return e, src, fmt.Errorf("entry behind: %w", err)
		}
	}
	return e, rest, nil
}

// Schema implements codec.Codec.
func (c EntryCodec[U, V]) Schema() string {
	return c.Values.Schema() + " linked by " + c.Users.Schema()
}
