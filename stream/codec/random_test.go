package codec

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Types that the property tests share.
type (
	Name   string
	Level  int8
	Millis time.Duration
	Stamp  time.Time

	Six struct {
		ID     int64
		Time   int64
		Origin string
		Dest   string
		Delay  float64
		Late   bool
	}

	Numbers struct {
		A int
		B int8
		C int16
		D int32
		E int64
		F uint
		G uint8
		H uint16
		I uint32
		J uint64
		K float32
		L float64
		M Level
		N Millis
		O time.Duration
	}

	Inner struct {
		Name Name `weir:"name"`
		_    int32
		At   time.Time
		skip int `weir:"-"` //nolint:unused // present to be left out
		Raw  []byte
	}

	Nested struct {
		Inner
		Flag   bool
		Ptr    *Inner
		Deep   **int32
		List   []Inner
		Matrix [2][3]int16
		ID     [16]byte
		Signed [3]int8
		Empty  struct{}
		Voids  []struct{}
		None   [0]int64
		Index  map[Name][]uint64
		ByKey  map[[2]int8]map[int64]*Inner
		Set    map[struct {
			A string
			B uint16
		}]struct{}
		Stamp Stamp
		Addr  netip.Addr
		Hosts []netip.AddrPort
		Msg   *wrapperspb.StringValue
		Msgs  map[string]*wrapperspb.Int64Value
		Tail  struct{}
	}
)

var protoValue = reflect.TypeFor[proto.Message]()

// randomValue fills v with a random value that is equal to itself (no NaN).
func randomValue(r *rand.Rand, v reflect.Value) {
	t := v.Type()
	switch {
	case t.ConvertibleTo(reflect.TypeFor[time.Time]()):
		at := time.Unix(r.Int64N(1<<40)-1<<39, r.Int64N(1e9)).UTC()
		if r.IntN(4) == 0 {
			at = time.Time{}
		}
		v.Set(reflect.ValueOf(at).Convert(t))
		return
	case t == reflect.TypeFor[netip.Addr]():
		v.Set(reflect.ValueOf(netip.AddrFrom4([4]byte{1, 2, 3, byte(r.Uint32())})))
		return
	case t == reflect.TypeFor[netip.AddrPort]():
		v.Set(reflect.ValueOf(netip.AddrPortFrom(netip.IPv6Loopback(), uint16(r.Uint32()))))
		return
	case t == reflect.TypeFor[*wrapperspb.StringValue]():
		v.Set(reflect.ValueOf(wrapperspb.String(randomText(r))))
		return
	case t == reflect.TypeFor[*wrapperspb.Int64Value]():
		v.Set(reflect.ValueOf(wrapperspb.Int64(r.Int64())))
		return
	}
	switch t.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(r.Uint64()) >> r.IntN(64))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.Uint64() >> r.IntN(64))
	case reflect.Float32:
		v.SetFloat(float64(float32(r.NormFloat64())))
	case reflect.Float64:
		v.SetFloat(r.NormFloat64() * math.Pow(10, float64(r.IntN(40))))
	case reflect.String:
		v.SetString(randomText(r))
	case reflect.Pointer:
		if r.IntN(3) > 0 {
			v.Set(reflect.New(t.Elem()))
			randomValue(r, v.Elem())
		}
	case reflect.Slice:
		if n := r.IntN(5) - 1; n >= 0 {
			v.Set(reflect.MakeSlice(t, n, n))
			for i := range n {
				randomValue(r, v.Index(i))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			randomValue(r, v.Index(i))
		}
	case reflect.Map:
		if n := r.IntN(6) - 1; n >= 0 {
			v.Set(reflect.MakeMap(t))
			for range n {
				key, elem := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
				randomValue(r, key)
				randomValue(r, elem)
				v.SetMapIndex(key, elem)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := t.Field(i); f.IsExported() {
				randomValue(r, v.Field(i))
			}
		}
	}
}

func randomText(r *rand.Rand) string {
	n := r.IntN(12)
	if r.IntN(10) == 0 {
		n = 120 + r.IntN(200)
	}
	return strings.Repeat("é", n/3) + strings.Repeat("x", n%7)
}

// slowAppend encodes by reflection alone: the twin of the programs that work on memory.
func slowAppend(t *testing.T, dst []byte, v reflect.Value) []byte {
	typ := v.Type()
	count := func(n int) []byte {
		if v.IsNil() {
			return append(dst, 0)
		}
		return binary.AppendUvarint(dst, uint64(n)+1)
	}
	switch {
	case typ.Kind() == reflect.Struct && typ.ConvertibleTo(reflect.TypeFor[time.Time]()):
		at := v.Convert(reflect.TypeFor[time.Time]()).Interface().(time.Time)
		return binary.AppendUvarint(binary.AppendVarint(dst, at.Unix()), uint64(at.Nanosecond()))
	case typ.Implements(protoValue):
		m := v.Interface().(proto.Message)
		dst = count(proto.Size(m))
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return append(dst, b...)
	case typ == reflect.TypeFor[netip.Addr]() || typ == reflect.TypeFor[netip.AddrPort]():
		b, err := v.Interface().(encoding.BinaryMarshaler).MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
	}
	switch typ.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(dst, 1)
		}
		return append(dst, 0)
	case reflect.Int8:
		return append(dst, byte(v.Int()))
	case reflect.Uint8:
		return append(dst, byte(v.Uint()))
	case reflect.Int, reflect.Int16, reflect.Int32, reflect.Int64:
		return binary.AppendVarint(dst, v.Int())
	case reflect.Uint, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return binary.AppendUvarint(dst, v.Uint())
	case reflect.Float32:
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(v.Float())))
	case reflect.Float64:
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v.Float()))
	case reflect.String:
		return append(binary.AppendUvarint(dst, uint64(v.Len())), v.String()...)
	}
	return slowAppendHolder(t, dst, v, count)
}

// slowAppendHolder encodes what holds other values.
func slowAppendHolder(t *testing.T, dst []byte, v reflect.Value, count func(int) []byte) []byte {
	typ := v.Type()
	switch typ.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return append(dst, 0)
		}
		return slowAppend(t, append(dst, 1), v.Elem())
	case reflect.Slice, reflect.Array:
		if typ.Kind() == reflect.Slice {
			dst = count(v.Len())
		}
		for i := range v.Len() {
			dst = slowAppend(t, dst, v.Index(i))
		}
		return dst
	case reflect.Map:
		dst = count(v.Len())
		var entries [][]byte
		for _, k := range v.MapKeys() {
			entries = append(entries, slowAppend(t, slowAppend(t, nil, k), v.MapIndex(k)))
		}
		slices.SortFunc(entries, bytes.Compare)
		return append(dst, bytes.Join(entries, nil)...)
	case reflect.Struct:
		for i := range v.NumField() {
			if typ.Field(i).IsExported() {
				dst = slowAppend(t, dst, v.Field(i))
			}
		}
		return dst
	}
	t.Fatalf("no twin for %s", typ)
	return nil
}
