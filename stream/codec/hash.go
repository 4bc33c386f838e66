package codec

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/zeebo/xxh3"
)

// Hash returns the hash function of keys of type K. A key has the same hash in every process, on every machine and in every version:
// state is found by it. Equal integers have equal hashes whatever their size and sign, so an integer key may become wider.
//
// Keys are integers, strings, bools, and arrays and structs of such.
func Hash[K comparable]() (func(K) uint64, error) {
	t := reflect.TypeFor[K]()
	n, err := typeNode(t, keyRemedy)
	if err != nil {
		return nil, fmt.Errorf("key of type %s: %w", t, err)
	}
	if err := n.keyProblem(t.String(), true); err != nil {
		return nil, fmt.Errorf("key of type %s: %w", t, err)
	}
	switch n.kind {
	case kindString:
		return func(k K) uint64 { return xxh3.HashString(*(*string)(unsafe.Pointer(&k))) }, nil
	case kindBool, kindUint8:
		return func(k K) uint64 { return mix(uint64(*(*uint8)(unsafe.Pointer(&k)))) }, nil
	case kindUint16:
		return func(k K) uint64 { return mix(uint64(*(*uint16)(unsafe.Pointer(&k)))) }, nil
	case kindUint32:
		return func(k K) uint64 { return mix(uint64(*(*uint32)(unsafe.Pointer(&k)))) }, nil
	case kindUint64:
		return func(k K) uint64 { return mix(*(*uint64)(unsafe.Pointer(&k))) }, nil
	case kindUint:
		return func(k K) uint64 { return mix(uint64(*(*uint)(unsafe.Pointer(&k)))) }, nil
	case kindInt8:
		return func(k K) uint64 { return mix(uint64(*(*int8)(unsafe.Pointer(&k)))) }, nil
	case kindInt16:
		return func(k K) uint64 { return mix(uint64(*(*int16)(unsafe.Pointer(&k)))) }, nil
	case kindInt32:
		return func(k K) uint64 { return mix(uint64(*(*int32)(unsafe.Pointer(&k)))) }, nil
	case kindInt64:
		return func(k K) uint64 { return mix(uint64(*(*int64)(unsafe.Pointer(&k)))) }, nil
	case kindInt:
		return func(k K) uint64 { return mix(uint64(*(*int)(unsafe.Pointer(&k)))) }, nil
	}
	ops := encodeProgram(nil, n, 0, t.String())
	return func(k K) uint64 { return hashEncoded(ops, noescape(unsafe.Pointer(&k))) }, nil
}

// hashEncoded hashes the encoding of the key at p. Encodings of up to 128 bytes need no allocation.
func hashEncoded(ops []op, p unsafe.Pointer) uint64 {
	var room [128]byte
	buf := unsafe.Slice((*byte)(noescape(unsafe.Pointer(&room))), len(room))[:0]
	buf, err := appendValue(ops, buf, p)
	if err != nil {
		panic(fmt.Sprintf("codec: encode a key: %v", err)) // No kind that can be a key has an encoding that fails.
	}
	return xxh3.Hash(buf)
}

// mix spreads each bit of x over all 64 bits: the finaliser of SplitMix64, a bijection.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
