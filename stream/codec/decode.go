package codec

import (
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"
	"unsafe"

	"google.golang.org/protobuf/proto"
)

// decodeValue runs a program that reads from pos and fills the zero value at p, which it does not keep. It returns the position after it.
func decodeValue(ops []op, in input, pos int, p unsafe.Pointer) (int, error) {
	for i := range ops {
		o := &ops[i]
		q := unsafe.Add(p, o.offset)
		switch o.kind {
		case kindBool:
			b, next, err := readBool(in.src, pos, "bool")
			if err != nil {
				return 0, o.wrap(err)
			}
			*(*bool)(q), pos = b, next
		case kindInt64, kindInt:
			u, next := uvarint(in.src, pos)
			if next < 0 {
				return 0, o.wrap(varintError(next))
			}
			v := unzigzag(u)
			if o.kind == kindInt64 {
				*(*int64)(q) = v
			} else if *(*int)(q) = int(v); int64(int(v)) != v {
				return 0, o.wrap(fmt.Errorf("%d does not fit the int of this machine", v))
			}
			pos = next
		case kindFloat64:
			if len(in.src)-pos < 8 {
				return 0, o.wrap(truncated("float64", len(in.src)-pos, 8))
			}
			*(*float64)(q) = math.Float64frombits(binary.LittleEndian.Uint64(in.src[pos:]))
			pos += 8
		case kindString:
			n, next, err := readLength(in.src, pos, "string")
			if err != nil {
				return 0, o.wrap(err)
			}
			pos = next + n
			if in.text != "" {
				*(*string)(q) = in.text[next:pos]
			} else {
				*(*string)(q) = string(in.src[next:pos])
			}
		default:
			var err error
			if pos, err = o.decode(in, pos, q); err != nil {
				return 0, err
			}
		}
	}
	return pos, nil
}

// decode reads the kinds that are rarer or not basic.
func (o *op) decode(in input, pos int, q unsafe.Pointer) (int, error) {
	switch o.kind {
	case kindPointer:
		return o.decodePointer(in, pos, q)
	case kindSlice:
		return o.decodeSlice(in, pos, q)
	case kindArray:
		return o.decodeMany(in, pos, q, o.more.len)
	case kindMap:
		return o.decodeMap(in, pos, q)
	case kindWrap:
		p := reflect.New(o.more.typ.Elem()).UnsafePointer()
		*(*unsafe.Pointer)(q) = p
		return decodeValue(o.more.body, in, pos, p)
	}
	next, err := o.decodeLeaf(in.src, pos, q)
	if err != nil {
		return 0, o.wrap(err)
	}
	return next, nil
}

// decodeLeaf reads what holds nothing else.
func (o *op) decodeLeaf(src []byte, pos int, q unsafe.Pointer) (next int, err error) {
	switch o.kind {
	case kindScalar:
		bits, next, err := readScalar(o.more.from, src, pos)
		if err != nil {
			return 0, err
		}
		return next, storeScalar(o.more.to, q, bits)
	case kindFloat32:
		if len(src)-pos < 4 {
			return 0, truncated("float32", len(src)-pos, 4)
		}
		*(*uint32)(q) = binary.LittleEndian.Uint32(src[pos:]) // not by a float: that changes some NaN
		return pos + 4, nil
	case kindTime:
		*(*time.Time)(q), next, err = readTime(src, pos)
		return next, err
	case kindBytes:
		b, next, err := readBytes(src, pos, "bytes")
		if b != nil {
			*(*[]byte)(q) = append(make([]byte, 0, len(b)), b...)
		}
		return next, err
	case kindText:
		n, next, err := readLength(src, pos, "string")
		if err != nil {
			return 0, err
		}
		*(*[]byte)(q) = append(make([]byte, 0, n), src[next:next+n]...)
		return next + n, nil
	case kindRaw:
		if len(src)-pos < o.more.len {
			return 0, truncated("array", len(src)-pos, uint64(o.more.len))
		}
		copy(unsafe.Slice((*byte)(q), o.more.len), src[pos:])
		return pos + o.more.len, nil
	case kindProto:
		return o.decodeProto(src, pos, q)
	case kindBinary:
		n, next, err := readLength(src, pos, o.more.typ.String())
		if err != nil {
			return 0, err
		}
		v := reflect.New(o.more.typ)
		end := next + n
		// The method must not see, nor keep, what it could overwrite.
		own := append([]byte(nil), src[next:end]...)
		if err := v.Interface().(encoding.BinaryUnmarshaler).UnmarshalBinary(own); err != nil {
			return 0, err
		}
		reflect.NewAt(o.more.typ, q).Elem().Set(v.Elem())
		return end, nil
	case kindSkip:
		return skipValue(o.more.skip, src, pos)
	}
	panic(fmt.Sprintf("codec: instruction %d cannot decode", o.kind))
}

// storeScalar stores what readScalar read. It fits, since the kind it was read as is not wider; only int and uint depend on the machine.
func storeScalar(k kind, q unsafe.Pointer, bits uint64) error {
	switch k {
	case kindInt8, kindUint8:
		*(*uint8)(q) = uint8(bits)
	case kindInt16, kindUint16:
		*(*uint16)(q) = uint16(bits)
	case kindInt32, kindUint32:
		*(*uint32)(q) = uint32(bits)
	case kindInt64, kindUint64, kindFloat64:
		*(*uint64)(q) = bits
	case kindInt:
		*(*int)(q) = int(bits)
		if int64(int(bits)) != int64(bits) {
			return fmt.Errorf("%d does not fit the int of this machine", int64(bits))
		}
	case kindUint:
		*(*uint)(q) = uint(bits)
		if uint64(uint(bits)) != bits {
			return fmt.Errorf("%d does not fit the uint of this machine", bits)
		}
	}
	return nil
}

func (o *op) decodeProto(src []byte, pos int, q unsafe.Pointer) (int, error) {
	b, next, err := readBytes(src, pos, o.more.typ.String())
	if err != nil || b == nil {
		return next, err
	}
	m := reflect.New(o.more.typ.Elem())
	if err := proto.Unmarshal(b, m.Interface().(proto.Message)); err != nil {
		return 0, err
	}
	*(*unsafe.Pointer)(q) = m.UnsafePointer()
	return next, nil
}

func (o *op) decodePointer(in input, pos int, q unsafe.Pointer) (int, error) {
	set, next, err := readBool(in.src, pos, "pointer flag")
	if err != nil {
		return 0, o.wrap(err)
	}
	if !set {
		return next, nil
	}
	p := reflect.New(o.more.typ.Elem()).UnsafePointer()
	*(*unsafe.Pointer)(q) = p
	return decodeValue(o.more.body, in, next, p)
}

func (o *op) decodeSlice(in input, pos int, q unsafe.Pointer) (int, error) {
	n, next, err := readCount(in.src, pos, o.more.minSize)
	if err != nil {
		return 0, o.wrap(err)
	}
	if n < 0 {
		return next, nil
	}
	first := reflect.MakeSlice(o.more.typ, n, n).UnsafePointer()
	*(*sliceHeader)(q) = sliceHeader{first, n, n}
	return o.decodeMany(in, next, first, n)
}

func (o *op) decodeMany(in input, pos int, first unsafe.Pointer, n int) (int, error) {
	if len(o.more.body) == 0 {
		return pos, nil
	}
	var err error
	for i := range n {
		if pos, err = decodeValue(o.more.body, in, pos, unsafe.Add(first, uintptr(i)*o.more.size)); err != nil {
			return 0, err
		}
	}
	return pos, nil
}

func (o *op) decodeMap(in input, pos int, q unsafe.Pointer) (int, error) {
	n, pos, err := readCount(in.src, pos, o.more.minSize)
	if err != nil {
		return 0, o.wrap(err)
	}
	if n < 0 {
		return pos, nil
	}
	// Sized as it fills, since an entry in memory may be much larger than as written.
	m := reflect.MakeMap(o.more.typ)
	key, elem := reflect.New(o.more.typ.Key()), reflect.New(o.more.typ.Elem())
	for i := range n {
		key.Elem().SetZero()
		elem.Elem().SetZero()
		if pos, err = decodeValue(o.more.key, in, pos, key.UnsafePointer()); err != nil {
			return 0, err
		}
		if pos, err = decodeValue(o.more.body, in, pos, elem.UnsafePointer()); err != nil {
			return 0, err
		}
		m.SetMapIndex(key.Elem(), elem.Elem())
		if m.Len() != i+1 {
			return 0, o.wrap(errors.New("map has a key twice"))
		}
	}
	reflect.NewAt(o.more.typ, q).Elem().Set(m)
	return pos, nil
}
