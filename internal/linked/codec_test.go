package linked

import (
	"testing"

	"github.com/weirstream/weir/stream/codec"
)

func codecFor[T any](t testing.TB) codec.Codec[T] {
	t.Helper()
	c, err := codec.For[T]()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// roundTrip holds that what is written is read, with what follows it, and that no part of it alone is.
func roundTrip[T comparable](t *testing.T, c codec.Codec[T], values ...T) {
	t.Helper()
	for _, v := range values {
		data, err := c.Append([]byte("x"), v)
		if err != nil {
			t.Fatal(err)
		}
		data = data[1:]
		got, rest, err := c.Decode(append(data, "rest"...))
		if err != nil || got != v || string(rest) != "rest" {
			t.Errorf("%+v became %+v, %q, %v", v, got, rest, err)
		}
		for i := range data {
			if _, _, err := c.Decode(data[:i]); err == nil {
				t.Errorf("the first %d of the %d bytes of %+v were accepted", i, len(data), v)
			}
		}
	}
}

func TestCodecs_ReadWhatTheyWrite(t *testing.T) {
	users, keys := codecFor[string](t), codecFor[int](t)
	roundTrip[Head[string]](t, HeadCodec[string]{users}, Head[string]{"a", "bc", 300}, Head[string]{})
	roundTrip[Member[int, string]](t, MemberCodec[int, string]{keys, users}, Member[int, string]{-7, "u"}, Member[int, string]{})
	roundTrip[Entry[string, int]](t, EntryCodec[string, int]{users, keys},
		Entry[string, int]{Value: 5}, Entry[string, int]{5, "p", "n", HasPrev | HasNext}, Entry[string, int]{5, "p", "", HasPrev}, Entry[string, int]{5, "", "n", HasNext})
}

func FuzzEntryCodec(f *testing.F) {
	c := EntryCodec[string, int]{codecFor[string](f), codecFor[int](f)}
	for _, e := range []Entry[string, int]{{Value: 5}, {5, "p", "n", HasPrev | HasNext}} {
		data, err := c.Append(nil, e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, rest, err := c.Decode(data)
		if err != nil {
			return
		}
		again, err := c.Append(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		if got, left, err := c.Decode(append(again, rest...)); err != nil || got != e || len(left) != len(rest) {
			t.Errorf("%+v became %+v, %v", e, got, err)
		}
	})
}
