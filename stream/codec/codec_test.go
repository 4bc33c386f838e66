package codec

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func mustFor[T any](t testing.TB) Codec[T] {
	t.Helper()
	c, err := For[T]()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustAppend[T any](t testing.TB, c Codec[T], v T) []byte {
	t.Helper()
	b, err := c.Append(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// equal compares values; messages have caches inside, so they are compared by what they encode to.
func equal[T any](t *testing.T, c Codec[T], a, b T) bool {
	if strings.Contains(c.Schema(), "proto(") {
		return bytes.Equal(slowAppend(t, nil, reflect.ValueOf(a)), slowAppend(t, nil, reflect.ValueOf(b)))
	}
	return reflect.DeepEqual(a, b)
}

// property checks random values of T: the bytes are those of the slow twin, they decode to the value, alone and in a batch, every
// shorter prefix is refused, and the result does not alias the input.
func property[T any](t *testing.T) {
	t.Run(reflect.TypeFor[T]().String(), func(t *testing.T) {
		c := mustFor[T](t)
		r := rand.New(rand.NewPCG(1, 2))
		var all []T
		var batch []byte
		for range 150 {
			var v T
			randomValue(r, reflect.ValueOf(&v).Elem())
			b, err := c.Append([]byte("before"), v)
			if err != nil {
				t.Fatal(err)
			}
			b = bytes.TrimPrefix(b, []byte("before"))
			if twin := slowAppend(t, nil, reflect.ValueOf(&v).Elem()); !bytes.Equal(b, twin) {
				t.Fatalf("%+v\nencodes to %x\n     want %x", v, b, twin)
			}
			all, batch = append(all, v), append(batch, b...)

			src := append(bytes.Clone(b), "rest"...)
			got, rest, err := c.Decode(src)
			if err != nil || string(rest) != "rest" {
				t.Fatalf("decode %x: rest %q, %v", src, rest, err)
			}
			clear(src)
			if !equal(t, c, got, v) {
				t.Fatalf("got %+v, want %+v", got, v)
			}
			for n := range b {
				if _, _, err := c.Decode(b[:n:n]); err == nil {
					t.Fatalf("%d of the %d bytes %x decode", n, len(b), b)
				}
			}
		}
		src := append(bytes.Clone(batch), "rest"...)
		got, rest, err := DecodeAll(c, src, len(all), nil)
		if err != nil || string(rest) != "rest" {
			t.Fatalf("decode the batch: rest %q, %v", rest, err)
		}
		clear(src)
		for i := range all {
			if !equal(t, c, got[i], all[i]) {
				t.Fatalf("value %d of the batch is %+v, want %+v", i, got[i], all[i])
			}
		}
	})
}

func TestCodec_RandomValues_RoundTripLikeTheTwin(t *testing.T) {
	property[bool](t)
	property[int](t)
	property[int8](t)
	property[uint16](t)
	property[uint64](t)
	property[float32](t)
	property[float64](t)
	property[string](t)
	property[Name](t)
	property[[]byte](t)
	property[time.Time](t)
	property[Stamp](t)
	property[time.Duration](t)
	property[*wrapperspb.StringValue](t)
	property[*int64](t)
	property[[]string](t)
	property[[][]float32](t)
	property[[4]uint32](t)
	property[map[string]int](t)
	property[map[int16]Six](t)
	property[map[bool]map[string][]int8](t)
	property[Six](t)
	property[*Six](t)
	property[Numbers](t)
	property[Inner](t)
	property[Nested](t)
	property[[]*Nested](t)
	property[struct{}](t)
}

func TestCodec_ExtremeNumbers_RoundTrip(t *testing.T) {
	c := mustFor[Numbers](t)
	for _, v := range []Numbers{
		{math.MaxInt, math.MaxInt8, math.MaxInt16, math.MaxInt32, math.MaxInt64, math.MaxUint, math.MaxUint8, math.MaxUint16,
			math.MaxUint32, math.MaxUint64, math.MaxFloat32, math.MaxFloat64, math.MaxInt8, math.MaxInt64, math.MaxInt64},
		{math.MinInt, math.MinInt8, math.MinInt16, math.MinInt32, math.MinInt64, 0, 0, 0, 0, 0,
			float32(math.Inf(-1)), math.Inf(1), math.MinInt8, math.MinInt64, math.MinInt64},
	} {
		got, _, err := c.Decode(mustAppend(t, c, v))
		if err != nil || got != v {
			t.Errorf("got %+v, %v, want %+v", got, err, v)
		}
	}
}

func TestCodec_FloatBits_AreKept(t *testing.T) {
	f32, f64 := mustFor[float32](t), mustFor[float64](t)
	for _, bits := range []uint64{0, 1 << 63, 0x7ff0000000000001, 0x7ff8000000000001, 0xfff8dead0000beef} {
		got, _, err := f64.Decode(mustAppend(t, f64, math.Float64frombits(bits)))
		if err != nil || math.Float64bits(got) != bits {
			t.Errorf("float64 %x became %x, %v", bits, math.Float64bits(got), err)
		}
	}
	for _, bits := range []uint32{1 << 31, 0x7f800001, 0x7fc00001} {
		got, _, err := f32.Decode(mustAppend(t, f32, math.Float32frombits(bits)))
		if err != nil || math.Float32bits(got) != bits {
			t.Errorf("float32 %x became %x, %v", bits, math.Float32bits(got), err)
		}
	}
}

func TestCodec_Time_KeepsTheInstantInUTC(t *testing.T) {
	c := mustFor[time.Time](t)
	for _, v := range []time.Time{
		{}, time.Unix(0, 0), time.Unix(-1, 999_999_999),
		time.Date(2013, 1, 1, 5, 15, 0, 123456789, time.FixedZone("EST", -5*3600)),
		time.Date(2000000000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-5000, 1, 1, 0, 0, 0, 1, time.UTC),
	} {
		got, _, err := c.Decode(mustAppend(t, c, v))
		if err != nil || !got.Equal(v) || got.Location() != time.UTC || got.IsZero() != v.IsZero() {
			t.Errorf("%v became %v, %v", v, got, err)
		}
	}
}

func TestCodec_NilAndEmpty_StayApart(t *testing.T) {
	c := mustFor[Nested](t)
	var zero Nested
	got, _, err := c.Decode(mustAppend(t, c, zero))
	if err != nil || got.List != nil || got.Index != nil || got.Raw != nil || got.Ptr != nil || got.Msg != nil {
		t.Errorf("nil became %+v, %v", got, err)
	}
	empty := Nested{List: []Inner{}, Index: map[Name][]uint64{}, Inner: Inner{Raw: []byte{}}, Ptr: &Inner{}, Msg: &wrapperspb.StringValue{}}
	got, _, err = c.Decode(mustAppend(t, c, empty))
	if err != nil || got.List == nil || got.Index == nil || got.Raw == nil || got.Ptr == nil || got.Msg == nil {
		t.Errorf("empty became %+v, %v", got, err)
	}
}

func TestCodec_MapOfMessages_IsDeterministic(t *testing.T) {
	c := mustFor[*structpb.Struct](t)
	fields := map[string]any{}
	for _, k := range strings.Split("a b c d e f g h i j k l m", " ") {
		fields[k] = k
	}
	first, err := structpb.NewStruct(fields)
	if err != nil {
		t.Fatal(err)
	}
	want := mustAppend(t, c, first)
	for range 20 {
		if got := mustAppend(t, c, proto.Clone(first).(*structpb.Struct)); !bytes.Equal(got, want) {
			t.Fatalf("same message, other bytes:\n%x\n%x", got, want)
		}
	}
}

func TestCodec_TypeThatMarshalsItself_IsTheFallback(t *testing.T) {
	c := mustFor[*url.URL](t)
	if want := "*binary(url.URL)"; c.Schema() != want {
		t.Errorf("schema %s, want %s", c.Schema(), want)
	}
	v, err := url.Parse("https://user:secret@example.org/a?b=c#d")
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := c.Decode(mustAppend(t, c, v))
	if err != nil || got.String() != v.String() {
		t.Errorf("got %v, %v", got, err)
	}
}

// mover moves the stack of its goroutine whenever it is encoded or decoded, and fails on demand.
type mover struct{ text string }

func grow(n int) int {
	var room [512]byte
	if n == 0 {
		return int(room[n%7])
	}
	return grow(n-1) + int(room[n%512])
}

func (m mover) MarshalBinary() ([]byte, error) {
	grow(200)
	if m.text == "fail" {
		return nil, errors.New("told to fail")
	}
	return []byte(m.text), nil
}

func (m *mover) UnmarshalBinary(b []byte) error {
	grow(2000)
	if m.text = string(b); m.text == "bad" {
		return errors.New("told to fail")
	}
	return nil
}

func TestCodec_StackMovesWhileItWorks_ValuesAreRight(t *testing.T) {
	type record struct {
		Before string
		Mover  mover
		After  []int64
		Last   string
	}
	c := mustFor[record](t)
	want := record{"before", mover{"middle"}, []int64{1, 2, 3}, "last"}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { // each with a small stack of its own
			b, err := c.Append(nil, want)
			if err != nil {
				t.Error(err)
			}
			if got, _, err := c.Decode(b); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	all.Wait()
}

func TestCodec_MethodFails_ErrorNamesTheField(t *testing.T) {
	type record struct{ List []mover }
	c := mustFor[record](t)
	_, err := c.Append(nil, record{[]mover{{"fail"}}})
	if want := "codec.record.List[]: told to fail"; err == nil || err.Error() != want {
		t.Errorf("append: %v, want %s", err, want)
	}
	_, _, err = c.Decode([]byte("\x02\x03bad"))
	if want := "codec.record.List[]: told to fail"; err == nil || err.Error() != want {
		t.Errorf("decode: %v, want %s", err, want)
	}
}

func TestCodec_ElementsOfNoBytes_AreLimited(t *testing.T) {
	c := mustFor[[]struct{}](t)
	b := mustAppend(t, c, make([]struct{}, maxEmptyElements))
	if got, _, err := c.Decode(b); err != nil || len(got) != maxEmptyElements {
		t.Errorf("at the limit: %d, %v", len(got), err)
	}
	if _, err := c.Append(nil, make([]struct{}, maxEmptyElements+1)); err == nil {
		t.Error("more than the limit can be encoded")
	}
	if _, _, err := c.Decode([]byte{0xff, 0xff, 0xff, 0xff, 0x7f}); err == nil {
		t.Error("more than the limit can be decoded")
	}
}

func TestCodec_HotPath_Allocations(t *testing.T) {
	c := mustFor[Six](t)
	v := sixes(1)[0]
	buf := make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() { buf, _ = c.Append(buf[:0], v) }); n != 0 {
		t.Errorf("encode: %v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { _, _, _ = c.Decode(buf) }); n != 2 {
		t.Errorf("decode: %v allocations, want one per string", n)
	}
	dst := make([]Six, 0, 1)
	if n := testing.AllocsPerRun(100, func() { _, _, _ = DecodeAll(c, buf, 1, dst) }); n != 1 {
		t.Errorf("decode a batch: %v allocations, want one", n)
	}
}
