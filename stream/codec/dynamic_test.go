package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func dynamic(t testing.TB, schema string) *Dynamic {
	t.Helper()
	d, err := NewDynamic(schema)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Where the standard library has the same idea of JSON, it is the oracle.
func TestDynamic_JSON_IsThatOfTheStandardLibrary(t *testing.T) {
	type plain struct {
		Six   Six
		Nums  Numbers
		At    time.Time
		Ptr   *Six
		List  []Six
		Grid  [2][3]int16
		Raw   []byte
		ID    [4]byte
		Names map[string][]uint64
		By    map[int8]bool
		None  struct{}
	}
	c := mustFor[plain](t)
	d, r := dynamic(t, c.Schema()), newRand()
	for range 300 {
		var v plain
		randomValue(r, reflect.ValueOf(&v).Elem())
		v.At = time.Unix(r.Int64N(1<<37), r.Int64N(1e9)).UTC() // years that encoding/json knows
		data := mustAppend(t, c, v)
		got, rest, err := d.JSON(append(data, "rest"...))
		if err != nil || string(rest) != "rest" {
			t.Fatalf("rest %q, %v", rest, err)
		}
		var want, compare bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
		// Maps of the two may differ in order, everything else in nothing.
		canonical(t, got, &compare)
		var canonicalWant bytes.Buffer
		canonical(t, want.Bytes(), &canonicalWant)
		if compare.String() != canonicalWant.String() {
			t.Fatalf("%s\nwant %s", compare.String(), canonicalWant.String())
		}
	}
}

func canonical(t *testing.T, text []byte, out *bytes.Buffer) {
	t.Helper()
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	var v any
	if err := in.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if err := json.NewEncoder(out).Encode(v); err != nil {
		t.Fatal(err)
	}
}

func TestDynamic_JSON_OfWhatJSONHasNoWordFor(t *testing.T) {
	check := func(want, schema string, data []byte) {
		t.Helper()
		if got, rest, err := dynamic(t, schema).JSON(data); err != nil || len(rest) > 0 || string(got) != want {
			t.Errorf("%s: %s, %d bytes left, %v", schema, got, len(rest), err)
		}
	}
	check(`"NaN"`, "float64", mustAppend(t, mustFor[float64](t), math.NaN()))
	check(`"-Inf"`, "float32", mustAppend(t, mustFor[float32](t), float32(math.Inf(-1))))
	check(`"a<b\ufffd"`, "string", mustAppend(t, mustFor[string](t), "a<b\xff"))
	check(`[{"key":[1,-2],"value":null}]`, "map[[2]int8]*int64", mustAppend(t, mustFor[map[[2]int8]*int64](t), map[[2]int8]*int64{{1, -2}: nil}))
	check(`{"b":1,"a":2}`, "struct{b:int64,a:int64}", []byte{2, 4})
	check(`"AQI="`, "proto(a.B)", []byte{3, 1, 2})
	check(`null`, "proto(a.B)", []byte{0})
	check(`"AQI="`, "binary(netip.Addr)", []byte{2, 1, 2})
}

// A few bytes must not claim any amount of memory.
func TestDynamic_JSON_OfElementsWithoutBytes_IsBounded(t *testing.T) {
	d := dynamic(t, "[1073741824]struct{}")
	if _, _, err := d.JSON(nil); !errors.Is(err, errLongJSON) {
		t.Errorf("%v", err)
	}
}

func TestNewDynamic_OfAForeignSchema_IsAnError(t *testing.T) {
	if _, err := NewDynamic("my codec 2"); err == nil || !strings.Contains(err.Error(), `"my codec 2" is not that of a built-in codec`) {
		t.Errorf("%v", err)
	}
}

type compound struct {
	Name string
	Part [2]int8
	In   struct {
		N uint64
		B bool
	}
}

// Keys found by their text are those that the job has written, in the same key group.
func TestDynamic_Keys_AreEncodedAndHashedAsByTheirType(t *testing.T) {
	keysAgree(t, func(v string) string { return v })
	keysAgree(t, jsonText[int8])
	keysAgree(t, jsonText[int16])
	keysAgree(t, jsonText[int32])
	keysAgree(t, jsonText[int64])
	keysAgree(t, jsonText[int])
	keysAgree(t, jsonText[uint8])
	keysAgree(t, jsonText[uint16])
	keysAgree(t, jsonText[uint32])
	keysAgree(t, jsonText[uint64])
	keysAgree(t, jsonText[uint])
	keysAgree(t, jsonText[bool])
	keysAgree(t, jsonText[[3]uint16])
	keysAgree(t, jsonText[compound])
}

func jsonText[K any](v K) string {
	text, _ := json.Marshal(v)
	return string(text)
}

func keysAgree[K comparable](t *testing.T, text func(K) string) {
	t.Helper()
	c := mustFor[K](t)
	hash, err := Hash[K]()
	if err != nil {
		t.Fatal(err)
	}
	d, r := dynamic(t, c.Schema()), newRand()
	for range 200 {
		var k K
		randomValue(r, reflect.ValueOf(&k).Elem())
		want := mustAppend(t, c, k)
		got, err := d.AppendKey(nil, text(k))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("key %v: %x, want %x, %v", k, got, want, err)
		}
		if h, err := d.HashKey(got); err != nil || h != hash(k) {
			t.Fatalf("key %v: hash %x, want %x, %v", k, h, hash(k), err)
		}
	}
}

func TestDynamic_Keys_ThatAreNone(t *testing.T) {
	for _, c := range []struct{ schema, text, want string }{
		{"int8", "128", `"128" is no int8`},
		{"uint64", "-1", `"-1" is no uint64`},
		{"bool", "yes", "true or false"},
		{"float64", "1", "float64 cannot be a key"},
		{"struct{a:time}", "{}", "a: time cannot be a key"},
		{"struct{a:int64}", "1", "key: 1 is no struct{a:int64}"},
		{"struct{a:int64}", "{", "is written as JSON"},
		{"struct{a:int64}", `{"a":1}{}`, "more follows it"},
		{"struct{a:int64}", `{"a":1,"b":2}`, `key has no field "b"`},
		{"struct{a:int64,b:string}", `{"a":1}`, `key lacks the field "b"`},
		{"struct{a:int8}", `{"a":1.5}`, `key.a: "1.5" is no int8`},
		{"[2]string", `["x"]`, `is no [2]string`},
		{"[2]string", `["x",null]`, `key[1]: null is no string`},
	} {
		if _, err := dynamic(t, c.schema).AppendKey(nil, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s as %s: %v", c.text, c.schema, err)
		}
	}
}

// FuzzDynamic checks that any bytes of any schema are refused, or read as JSON to the same end as they are skipped.
func FuzzDynamic(f *testing.F) {
	c := mustFor[Nested](f)
	r := newRand()
	for range 10 {
		var v Nested
		randomValue(r, reflect.ValueOf(&v).Elem())
		f.Add(c.Schema(), mustAppend(f, c, v))
	}
	f.Add("map[float64]string", []byte{2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 'x'})
	f.Fuzz(func(t *testing.T, schema string, src []byte) {
		d, err := NewDynamic(schema)
		if err != nil {
			return
		}
		text, rest, err := d.JSON(src)
		if errors.Is(err, errLongJSON) {
			return // it has a test of its own
		}
		skipped, skipErr := d.Skip(src)
		if (err == nil) != (skipErr == nil) || err == nil && len(rest) != len(skipped) {
			t.Fatalf("JSON: %d left, %v; skip: %d left, %v", len(rest), err, len(skipped), skipErr)
		}
		if err == nil && !json.Valid(text) {
			t.Fatalf("no JSON: %s", text)
		}
	})
}
