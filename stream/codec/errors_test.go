package codec

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type (
	list struct {
		Next *list
	}
	tree struct {
		Kids map[string][]tree
	}
	embedsTime struct {
		time.Time
		hidden int //nolint:unused // makes the struct one without an encoding
	}
	embedsMessage struct {
		*wrapperspb.StringValue
		N int
	}
	embedsInterface struct {
		proto.Message
		N int
	}
	pair[K any] struct{ A K }
)

func noCodec[T any](t *testing.T, want string) {
	t.Helper()
	if _, err := For[T](); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestFor_TypeWithoutEncoding_ErrorNamesPathAndRemedy(t *testing.T) {
	noCodec[struct{ A []struct{ F func() } }](t, "A[].F is of type func(), which has no encoding: give a codec of your own")
	noCodec[any](t, "codec of interface {}: interface {} is of type interface {}, which has no encoding")
	noCodec[complex64](t, "complex64, which has no encoding")
	noCodec[map[string]chan int](t, "map[string]chan int[] is of type chan int")
	noCodec[struct{ a int }](t, ".a is not exported: export it, tag it `weir:\"-\"` to leave it out, or give a codec of your own")
	noCodec[list](t, "codec of codec.list: codec.list.Next is recursive (codec.list holds itself): give a codec of your own")
	noCodec[tree](t, "codec.tree.Kids[][] is recursive")
	noCodec[struct {
		A int `weir:"x"`
		B int `weir:"x"`
	}](t, `.B has the name "x" of another field`)
	noCodec[struct {
		A int `weir:"x,y"`
	}](t, `.A has the tag weir:"x,y"`)
	noCodec[struct {
		A int `weir:""`
	}](t, `.A has the tag weir:""`)
	noCodec[map[*int]int](t, "map[*int]int[key] is a pointer, which cannot be a key")
	noCodec[map[time.Time]int](t, "is a time, which cannot be a key")
	noCodec[map[any]int](t, "[key] is of type interface {}")
	noCodec[wrapperspb.StringValue](t, "is the protobuf message wrapperspb.StringValue by value: use a pointer to it")
	noCodec[[]struct {
		A int `weir:"-"`
	}](t, "take memory but are written as nothing")
	noCodec[embedsTime](t, "embedsTime.hidden is not exported") // and is not taken for a time
	noCodec[embedsInterface](t, "embedsInterface.Message is of type")
}

func TestFor_StructThatEmbedsAMessage_KeepsItsOtherFields(t *testing.T) {
	c := mustFor[*embedsMessage](t)
	if want := "*struct{StringValue:proto(google.protobuf.StringValue),N:int64}"; c.Schema() != want {
		t.Errorf("schema %s, want %s", c.Schema(), want)
	}
	got, _, err := c.Decode(mustAppend(t, c, &embedsMessage{wrapperspb.String("x"), 7}))
	if err != nil || got.N != 7 || got.GetValue() != "x" {
		t.Errorf("%v, %v", got, err)
	}
	if c := mustFor[pair[int]](t); c.Schema() != "struct{A:int64}" {
		t.Error(c.Schema())
	}
}

func damaged[T any](t *testing.T, src, want string) {
	t.Helper()
	b, err := hex.DecodeString(src)
	if err != nil {
		t.Fatal(err)
	}
	c := mustFor[T](t)
	_, rest, err := c.Decode(b)
	if err == nil || err.Error() != want {
		t.Errorf("%s as %s:\n got %v\nwant %s", src, c.Schema(), err, want)
	}
	if len(rest) != len(b) {
		t.Errorf("%s as %s: after the error %d of %d bytes are left", src, c.Schema(), len(rest), len(b))
	}
}

func TestDecode_DamagedInput_ErrorSaysWhatAndWhere(t *testing.T) {
	type record struct {
		Origin string `weir:"origin"`
	}
	damaged[record](t, "28"+strings.Repeat("61", 12), "codec.record.origin: truncated string: 12 of 40 bytes")
	damaged[[]record](t, "020561", "[]codec.record[].origin: truncated string: 1 of 5 bytes")
	damaged[string](t, "", "string: truncated varint")
	damaged[string](t, "80", "string: truncated varint")
	damaged[string](t, "ffffffffffffffffff01", "string: truncated string: 0 of 18446744073709551615 bytes")
	damaged[int64](t, "ffffffffffffffffff02", "int64: varint of more than 64 bits")
	damaged[int64](t, "8080808080808080808001", "int64: varint of more than 64 bits")
	damaged[int16](t, "808004", "int16: number out of the range of int16")
	damaged[int32](t, "ffffffff1f", "int32: number out of the range of int32")
	damaged[uint16](t, "808004", "uint16: number out of the range of uint16")
	damaged[uint32](t, "ffffffff1f", "uint32: number out of the range of uint32")
	damaged[int8](t, "", "int8: truncated int8: 0 of 1 bytes")
	damaged[bool](t, "02", "bool: bool is neither 0 nor 1: 2")
	damaged[*bool](t, "02", "*bool: pointer flag is neither 0 nor 1: 2")
	damaged[float32](t, "0000", "float32: truncated float32: 2 of 4 bytes")
	damaged[float64](t, "0000", "float64: truncated float64: 2 of 8 bytes")
	damaged[[]byte](t, "0500", "[]uint8: truncated bytes: 1 of 4 bytes")
	damaged[[4]byte](t, "0500", "[4]uint8: truncated array: 2 of 4 bytes")
	damaged[time.Time](t, "008094ebdc03", "time.Time: time has 1000000000 nanoseconds")
	damaged[[]int64](t, "060000", "[]int64: truncated: 5 elements of at least 1 bytes, but 2 bytes are left")
	damaged[[]float64](t, "0300000000", "[]float64: truncated: 2 elements of at least 8 bytes, but 4 bytes are left")
	damaged[[]int64](t, "ffffffffffffffffff01", "[]int64: 18446744073709551614 elements cannot be")
	damaged[map[string]bool](t, "040161", "map[string]bool: truncated: 3 elements of at least 2 bytes, but 2 bytes are left")
	damaged[map[int8]bool](t, "0301000100", "map[int8]bool: map has a key twice")
	damaged[map[struct{}]struct{}](t, "03", "map[struct {}]struct {}: map has a key twice")
	damaged[*wrapperspb.StringValue](t, "0400", "*wrapperspb.StringValue: truncated *wrapperspb.StringValue: 1 of 3 bytes")
}

func TestPlain(t *testing.T) {
	for name, c := range map[string]struct{ got, want bool }{
		"int":       {Plain[int](), true},
		"string":    {Plain[string](), true},
		"time":      {Plain[time.Time](), true},
		"stamp":     {Plain[Stamp](), true},
		"six":       {Plain[Six](), true},
		"array":     {Plain[[3]Six](), true},
		"no array":  {Plain[[0][]int](), true},
		"slice":     {Plain[[]int](), false},
		"map":       {Plain[map[int]int](), false},
		"pointer":   {Plain[*int](), false},
		"interface": {Plain[any](), false},
		"func":      {Plain[func()](), false},
		"chan":      {Plain[chan int](), false},
		"nested":    {Plain[Nested](), false},
		"hidden":    {Plain[struct{ a [2]struct{ b []int } }](), false},
		"message":   {Plain[*wrapperspb.StringValue](), false},
	} {
		if c.got != c.want {
			t.Errorf("%s: plain is %t", name, c.got)
		}
	}
}
