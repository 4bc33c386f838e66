package codec

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"
)

func newRand() *rand.Rand { return rand.New(rand.NewPCG(3, 4)) }

// FuzzDecode_Nested checks that any bytes either are refused, or decode to a value that encodes and decodes to itself.
func FuzzDecode_Nested(f *testing.F) {
	c := mustFor[Nested](f)
	r := newRand()
	for range 20 {
		var v Nested
		randomValue(r, reflect.ValueOf(&v).Elem())
		f.Add(mustAppend(f, c, v))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		before := bytes.Clone(src)
		v, rest, err := c.Decode(src)
		batch, batchRest, batchErr := DecodeAll(c, src, 1, nil)
		if !bytes.Equal(src, before) {
			t.Fatal("input was changed")
		}
		if (err == nil) != (batchErr == nil) || len(rest) != len(batchRest) {
			t.Fatalf("alone: rest %d, %v; in a batch: rest %d, %v", len(rest), err, len(batchRest), batchErr)
		}
		if err != nil {
			return
		}
		first := mustAppend(t, c, v)
		if b := mustAppend(t, c, batch[0]); !bytes.Equal(b, first) {
			t.Fatalf("in a batch it is\n%x, alone\n%x", b, first)
		}
		again, rest, err := c.Decode(first)
		if err != nil || len(rest) > 0 {
			t.Fatalf("decode %x: rest %x, %v", first, rest, err)
		}
		if second := mustAppend(t, c, again); !bytes.Equal(first, second) {
			t.Fatalf("encodes to\n%x, then\n%x", first, second)
		}
	})
}

// FuzzResolve_Skip checks that any bytes of the older schema are read or refused, whole, when most fields are skipped.
func FuzzResolve_Skip(f *testing.F) {
	type narrow struct{ Stamp Stamp }
	old := mustFor[Nested](f)
	c, err := Resolve(mustFor[narrow](f), old.Schema())
	if err != nil {
		f.Fatal(err)
	}
	r := newRand()
	for range 20 {
		var v Nested
		randomValue(r, reflect.ValueOf(&v).Elem())
		f.Add(mustAppend(f, old, v))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		v, rest, err := old.Decode(src)
		if err != nil {
			_, _, _ = c.Decode(src) // may be read, since what is inside messages and keys is not looked at, but must not panic
			return
		}
		got, narrowRest, err := c.Decode(src)
		if err != nil || got.Stamp != v.Stamp || len(narrowRest) != len(rest) {
			t.Fatalf("got %v, rest %d, %v; want %v, rest %d", got, len(narrowRest), err, v.Stamp, len(rest))
		}
	})
}

// FuzzParseSchema checks that any text is refused or means what it prints as, and that decoding by it is safe.
func FuzzParseSchema(f *testing.F) {
	c := mustFor[Nested](f)
	f.Add(c.Schema(), []byte{})
	f.Add(mustFor[Numbers](f).Schema(), bytes.Repeat([]byte{1}, 50))
	f.Add("struct{A:[3][]map[int8]*time,B:proto(a.b),Flag:bool}", []byte("\x02\x01\x02\x03"))
	f.Add("struct{Zero:[1073741824][1073741824]struct{},Flag:bool}", []byte("\x01"))
	f.Fuzz(func(t *testing.T, schema string, src []byte) {
		n, err := parseSchema(schema)
		if err != nil {
			return
		}
		again, err := parseSchema(n.String())
		if err != nil || again.String() != n.String() {
			t.Fatalf("%q prints as %q, then %v, %v", schema, n, again, err)
		}
		if pos, err := skipValue(n, src, 0); err == nil && (pos < n.minSize() || pos > len(src)) {
			t.Fatalf("skip %q in %d bytes ends at %d", schema, len(src), pos)
		}
		if r, err := Resolve(c, schema); err == nil {
			_, _, _ = r.Decode(src)
		}
	})
}
