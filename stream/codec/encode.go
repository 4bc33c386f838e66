package codec

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"
	"unsafe"

	"google.golang.org/protobuf/proto"
)

// maxEmptyElements limits the length of a slice whose elements take no bytes, which nothing else bounds when it is decoded.
const maxEmptyElements = 1 << 16

// appendValue runs a program on the value at p, which it does not keep.
func appendValue(ops []op, dst []byte, p unsafe.Pointer) ([]byte, error) {
	for i := range ops {
		o := &ops[i]
		q := unsafe.Add(p, o.offset)
		switch o.kind {
		case kindBool:
			b := byte(0)
			if *(*bool)(q) {
				b = 1
			}
			dst = append(dst, b)
		case kindInt64:
			dst = binary.AppendUvarint(dst, zigzag(*(*int64)(q)))
		case kindInt:
			dst = binary.AppendUvarint(dst, zigzag(int64(*(*int)(q))))
		case kindFloat64:
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(*(*float64)(q)))
		case kindString:
			s := *(*string)(q)
			dst = binary.AppendUvarint(dst, uint64(len(s)))
			dst = append(dst, s...)
		default:
			var err error
			if dst, err = o.append(dst, q); err != nil {
				return dst, err
			}
		}
	}
	return dst, nil
}

func zigzag(v int64) uint64   { return uint64(v)<<1 ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// append encodes the kinds that are rarer or not basic.
func (o *op) append(dst []byte, q unsafe.Pointer) ([]byte, error) {
	switch o.kind {
	case kindInt8, kindUint8:
		return append(dst, *(*byte)(q)), nil
	case kindInt16:
		return binary.AppendUvarint(dst, zigzag(int64(*(*int16)(q)))), nil
	case kindInt32:
		return binary.AppendUvarint(dst, zigzag(int64(*(*int32)(q)))), nil
	case kindUint16:
		return binary.AppendUvarint(dst, uint64(*(*uint16)(q))), nil
	case kindUint32:
		return binary.AppendUvarint(dst, uint64(*(*uint32)(q))), nil
	case kindUint64:
		return binary.AppendUvarint(dst, *(*uint64)(q)), nil
	case kindUint:
		return binary.AppendUvarint(dst, uint64(*(*uint)(q))), nil
	case kindFloat32:
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(*(*float32)(q))), nil
	case kindTime:
		t := *(*time.Time)(q)
		dst = binary.AppendUvarint(dst, zigzag(t.Unix()))
		return binary.AppendUvarint(dst, uint64(t.Nanosecond())), nil
	case kindBytes:
		b := *(*[]byte)(q)
		return append(appendCount(dst, len(b), b == nil), b...), nil
	case kindRaw:
		return append(dst, unsafe.Slice((*byte)(q), o.more.len)...), nil
	case kindProto:
		return o.appendProto(dst, *(*unsafe.Pointer)(q))
	case kindBinary:
		return o.appendBinary(dst, q)
	case kindPointer:
		p := *(*unsafe.Pointer)(q)
		if p == nil {
			return append(dst, 0), nil
		}
		return appendValue(o.more.body, append(dst, 1), p)
	case kindSlice:
		s := *(*sliceHeader)(q)
		if o.more.size == 0 && s.len > maxEmptyElements {
			return dst, o.wrap(fmt.Errorf("%d elements that take no bytes: at most %d are possible", s.len, maxEmptyElements))
		}
		return o.appendElements(appendCount(dst, s.len, s.data == nil), s.data, s.len)
	case kindArray:
		return o.appendElements(dst, q, o.more.len)
	case kindMap:
		return o.appendMap(dst, *(*unsafe.Pointer)(q))
	}
	panic(fmt.Sprintf("codec: instruction %d cannot encode", o.kind))
}

// appendCount encodes the length of something that may be nil.
func appendCount(dst []byte, n int, isNil bool) []byte {
	if isNil {
		return append(dst, 0)
	}
	return binary.AppendUvarint(dst, uint64(n)+1)
}

func (o *op) appendElements(dst []byte, first unsafe.Pointer, n int) ([]byte, error) {
	if len(o.more.body) == 0 {
		return dst, nil
	}
	var err error
	for i := range n {
		if dst, err = appendValue(o.more.body, dst, unsafe.Add(first, uintptr(i)*o.more.size)); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func (o *op) appendProto(dst []byte, p unsafe.Pointer) ([]byte, error) {
	if p == nil {
		return append(dst, 0), nil
	}
	m := reflect.NewAt(o.more.typ.Elem(), p).Interface().(proto.Message)
	options := proto.MarshalOptions{Deterministic: true}
	dst = appendCount(dst, options.Size(m), false)
	dst, err := options.MarshalAppend(dst, m)
	if err != nil {
		return dst, o.wrap(err)
	}
	return dst, nil
}

// appendBinary encodes a copy, since the method may keep its receiver.
func (o *op) appendBinary(dst []byte, q unsafe.Pointer) ([]byte, error) {
	v := reflect.New(o.more.typ)
	v.Elem().Set(reflect.NewAt(o.more.typ, q).Elem())
	b, err := v.Interface().(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		return dst, o.wrap(err)
	}
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...), nil
}

// appendMap encodes the map m (what a variable of a map type holds) in the order of its encoded entries, which is that of the encoded keys.
func (o *op) appendMap(dst []byte, m unsafe.Pointer) ([]byte, error) {
	v := reflect.NewAt(o.more.typ, unsafe.Pointer(&m)).Elem()
	dst = appendCount(dst, v.Len(), m == nil)
	if v.Len() == 0 {
		return dst, nil
	}
	type span struct{ start, end int }
	var (
		all   []byte
		spans = make([]span, 0, v.Len())
		key   = reflect.New(o.more.typ.Key())
		elem  = reflect.New(o.more.typ.Elem())
		err   error
	)
	for it := v.MapRange(); it.Next(); {
		start := len(all)
		key.Elem().SetIterKey(it)
		elem.Elem().SetIterValue(it)
		if all, err = appendValue(o.more.key, all, key.UnsafePointer()); err != nil {
			return dst, err
		}
		if all, err = appendValue(o.more.body, all, elem.UnsafePointer()); err != nil {
			return dst, err
		}
		spans = append(spans, span{start, len(all)})
	}
	slices.SortFunc(spans, func(a, b span) int { return bytes.Compare(all[a.start:a.end], all[b.start:b.end]) })
	for _, s := range spans {
		dst = append(dst, all[s.start:s.end]...)
	}
	return dst, nil
}
