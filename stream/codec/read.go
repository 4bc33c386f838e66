package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// input is what a decoder reads.
type input struct {
	src  []byte
	text string // empty, or the same bytes: then strings are parts of it
}

// uvarint reads a varint at pos. The next position is negative when there is none: varintError says why.
func uvarint(src []byte, pos int) (uint64, int) {
	if uint(pos) < uint(len(src)) && src[pos] < 0x80 {
		return uint64(src[pos]), pos + 1
	}
	return longUvarint(src, pos)
}

func longUvarint(src []byte, pos int) (u uint64, next int) {
	for shift := 0; pos < len(src); shift += 7 {
		b := src[pos]
		pos++
		if b < 0x80 {
			if shift == 63 && b > 1 {
				return 0, overlong
			}
			return u | uint64(b)<<shift, pos
		}
		if shift == 63 {
			return 0, overlong
		}
		u |= uint64(b&0x7f) << shift
	}
	return 0, short
}

// What uvarint gives instead of a position.
const (
	short    = -1
	overlong = -2
)

// varintError is the fault for which uvarint gave this negative position.
func varintError(next int) error {
	if next == short {
		return errors.New("truncated varint")
	}
	return errors.New("varint of more than 64 bits")
}

// readLength reads the length of what and checks that as many bytes follow.
func readLength(src []byte, pos int, what string) (n, next int, err error) {
	u, next := uvarint(src, pos)
	if next < 0 {
		return 0, 0, varintError(next)
	}
	if u > uint64(len(src)-next) {
		return 0, 0, truncated(what, len(src)-next, u)
	}
	return int(u), next, nil
}

// readBytes reads the bytes of something that may be nil. They alias src.
func readBytes(src []byte, pos int, what string) (b []byte, next int, err error) {
	u, next := uvarint(src, pos)
	if next < 0 {
		return nil, 0, varintError(next)
	}
	if u == 0 {
		return nil, next, nil
	}
	if u-1 > uint64(len(src)-next) {
		return nil, 0, truncated(what, len(src)-next, u-1)
	}
	end := next + int(u-1)
	return src[next:end:end], end, nil
}

func truncated(what string, have int, want uint64) error {
	return fmt.Errorf("truncated %s: %d of %d bytes", what, have, want)
}

// readCount reads the number of elements of something that may be nil, then -1, and checks that the rest can hold so many.
func readCount(src []byte, pos, minSize int) (n, next int, err error) {
	u, next := uvarint(src, pos)
	if next < 0 {
		return 0, 0, varintError(next)
	}
	if u > math.MaxInt {
		return 0, 0, fmt.Errorf("%d elements cannot be", u-1)
	}
	n = int(u) - 1
	if n < 0 {
		return n, next, nil
	}
	return n, next, checkCount(n, minSize, len(src)-next)
}

// checkCount tells whether n elements of at least minSize bytes can be in so many bytes.
func checkCount(n, minSize, have int) error {
	switch {
	case n < 0:
		return fmt.Errorf("%d elements cannot be", n)
	case minSize == 0 && n > max(have, maxEmptyElements):
		return fmt.Errorf("%d elements that may take no bytes: at most %d are possible", n, max(have, maxEmptyElements))
	case minSize > 0 && n > have/minSize:
		return fmt.Errorf("truncated: %d elements of at least %d bytes, but %d bytes are left", n, minSize, have)
	}
	return nil
}

// readScalar reads a number. Signed ones come sign-extended, floats as the bits of a float64.
func readScalar(k kind, src []byte, pos int) (bits uint64, next int, err error) {
	switch k {
	case kindInt8, kindUint8:
		if pos >= len(src) {
			return 0, 0, truncated(scalarNames[k], 0, 1)
		}
		if k == kindInt8 {
			return uint64(int8(src[pos])), pos + 1, nil
		}
		return uint64(src[pos]), pos + 1, nil
	case kindFloat32:
		if len(src)-pos < 4 {
			return 0, 0, truncated("float32", len(src)-pos, 4)
		}
		return math.Float64bits(float64(math.Float32frombits(binary.LittleEndian.Uint32(src[pos:])))), pos + 4, nil
	}
	u, next := uvarint(src, pos)
	if next < 0 {
		return 0, 0, varintError(next)
	}
	fits := true
	switch k {
	case kindInt16:
		fits = int64(int16(unzigzag(u))) == unzigzag(u)
	case kindInt32:
		fits = int64(int32(unzigzag(u))) == unzigzag(u)
	case kindInt:
		fits = int64(int(unzigzag(u))) == unzigzag(u)
	case kindUint16:
		fits = u <= math.MaxUint16
	case kindUint32:
		fits = u <= math.MaxUint32
	case kindUint:
		fits = u <= math.MaxUint
	}
	if !fits {
		return 0, 0, fmt.Errorf("number out of the range of %s", scalarNames[k])
	}
	if k.signed() {
		u = uint64(unzigzag(u))
	}
	return u, next, nil
}

func readBool(src []byte, pos int, what string) (bool, int, error) {
	if pos >= len(src) {
		return false, 0, truncated(what, 0, 1)
	}
	if src[pos] > 1 {
		return false, 0, fmt.Errorf("%s is neither 0 nor 1: %d", what, src[pos])
	}
	return src[pos] == 1, pos + 1, nil
}

func readTime(src []byte, pos int) (time.Time, int, error) {
	sec, pos := uvarint(src, pos)
	if pos < 0 {
		return time.Time{}, 0, varintError(pos)
	}
	nsec, pos := uvarint(src, pos)
	if pos < 0 {
		return time.Time{}, 0, varintError(pos)
	}
	if nsec >= uint64(time.Second) {
		return time.Time{}, 0, fmt.Errorf("time has %d nanoseconds", nsec)
	}
	return time.Unix(unzigzag(sec), int64(nsec)).UTC(), pos, nil
}

// skipValue finds the end of a value that was written as n.
func skipValue(n *node, src []byte, pos int) (next int, err error) {
	switch n.kind {
	case kindBool:
		_, next, err = readBool(src, pos, "bool")
	case kindFloat64:
		if len(src)-pos < 8 {
			return 0, truncated("float64", len(src)-pos, 8)
		}
		return pos + 8, nil
	case kindString, kindBinary:
		length, next, err := readLength(src, pos, n.String())
		return next + length, err
	case kindBytes, kindProto:
		_, next, err = readBytes(src, pos, n.String())
	case kindTime:
		_, next, err = readTime(src, pos)
	case kindPointer:
		set, next, err := readBool(src, pos, "pointer flag")
		if err != nil || !set {
			return next, err
		}
		return skipValue(n.elem, src, next)
	case kindArray:
		return skipMany(n.len, nil, n.elem, src, pos)
	case kindSlice, kindMap:
		least := n.elem.minSize()
		if n.kind == kindMap {
			least += n.key.minSize()
		}
		count, next, err := readCount(src, pos, least)
		if err != nil {
			return 0, err
		}
		return skipMany(count, n.key, n.elem, src, next)
	case kindStruct:
		for _, f := range n.fields {
			if pos, err = skipValue(f.node, src, pos); err != nil {
				return 0, err
			}
		}
		return pos, nil
	default:
		_, next, err = readScalar(n.kind, src, pos)
	}
	return next, err
}

// skipMany skips count elements, each after its key if they have one.
func skipMany(count int, key, elem *node, src []byte, pos int) (int, error) {
	if elem.minSize() == 0 && (key == nil || key.minSize() == 0) {
		return pos, nil
	}
	var err error
	for range count {
		if key != nil {
			if pos, err = skipValue(key, src, pos); err != nil {
				return 0, err
			}
		}
		if pos, err = skipValue(elem, src, pos); err != nil {
			return 0, err
		}
	}
	return pos, nil
}
