package codec

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// resolves checks that bytes of the old value decode to the new one, alone, with something behind them, and cut short.
func resolves[Old, New any](t *testing.T, old Old, want New) {
	t.Helper()
	o, c := mustFor[Old](t), mustFor[New](t)
	r, err := Resolve(c, o.Schema())
	if err != nil {
		t.Errorf("%s as %s: %v", o.Schema(), c.Schema(), err)
		return
	}
	src := mustAppend(t, o, old)
	got, rest, err := r.Decode(append(src, "rest"...))
	if err != nil || string(rest) != "rest" || !reflect.DeepEqual(got, want) {
		t.Errorf("%s as %s: got %+v, rest %q, %v, want %+v", o.Schema(), c.Schema(), got, rest, err, want)
	}
	all, _, err := DecodeAll(r, append(src, src...), 2, nil)
	if err != nil || !reflect.DeepEqual(all, []New{want, want}) {
		t.Errorf("%s as %s: batch is %+v, %v", o.Schema(), c.Schema(), all, err)
	}
	for n := range src {
		if _, _, err := r.Decode(src[:n:n]); err == nil {
			t.Errorf("%s as %s: %d of %d bytes decode", o.Schema(), c.Schema(), n, len(src))
		}
	}
	if b := mustAppend(t, r, want); r.Schema() != c.Schema() || string(b) != string(mustAppend(t, c, want)) {
		t.Errorf("%s as %s: encodes %x with schema %s", o.Schema(), c.Schema(), b, r.Schema())
	}
}

func TestResolve_CompatibleSchemas(t *testing.T) {
	resolves(t, int8(-5), int16(-5))
	resolves(t, int8(-5), -5)
	resolves(t, int16(-500), int32(-500))
	resolves(t, int32(-500), int64(-500))
	resolves(t, -500, int64(-500))
	resolves(t, int64(-500), -500)
	resolves(t, time.Second, int64(1e9))
	resolves(t, uint8(200), uint16(200))
	resolves(t, uint16(500), uint32(500))
	resolves(t, uint32(500), uint64(500))
	resolves(t, uint8(200), uint(200))
	resolves(t, float32(1.5), 1.5)
	resolves(t, "x", Name("x"))
	resolves(t, []int8{-1, 2}, []int64{-1, 2})
	resolves(t, [2]int8{-1, 2}, [2]int32{-1, 2})
	resolves(t, [2]uint8{1, 2}, [2]uint16{1, 2})
	resolves(t, map[int8]float32{-1: 1.5}, map[int64]float64{-1: 1.5})
	resolves(t, new(int8), new(int16))
	resolves(t, uint8(200), int16(200))
	resolves(t, uint32(1<<31), int64(1<<31))
	resolves(t, []uint16{1, 1<<16 - 1}, []int{1, 1<<16 - 1})
	resolves(t, "text", []byte("text"))
	resolves(t, []string{"", "a"}, [][]byte{{}, []byte("a")})
	three := int64(3)
	deep := &three
	resolves(t, int8(3), &three)
	resolves(t, deep, &deep)
	resolves(t, uint16(3), &deep)
	resolves(t, map[string]int8{"a": 3}, map[string]*int64{"a": &three})
	resolves(t, [2]struct{}{}, [2]*struct{}{{}, {}})
	resolves(t, struct{ V, W int32 }{3, 4}, struct {
		W int64
		V *int64
	}{4, &three})
	resolves(t, Six{}, struct{}{})
	resolves(t, struct{}{}, Six{})
	resolves(t, [3]struct{}{}, [3]struct{ A string }{})

	type oldPart struct {
		Gone  []string
		Delay int8
	}
	type newPart struct {
		Delay int32
		Extra *string
	}
	type before struct {
		A     string
		B     oldPart
		C     float32
		Parts []oldPart
		Index map[string]oldPart
	}
	type after struct {
		Index map[string]newPart
		New   []int
		C     float64
		Parts []newPart
		B     newPart
		Name  string `weir:"A"`
		Time  time.Time
	}
	resolves(t,
		before{"a", oldPart{[]string{"x", ""}, -3}, 2.5, []oldPart{{nil, 4}, {[]string{}, 5}}, map[string]oldPart{"k": {[]string{"y"}, 6}}},
		after{map[string]newPart{"k": {Delay: 6}}, nil, 2.5, []newPart{{Delay: 4}, {Delay: 5}}, newPart{Delay: -3}, "a", time.Time{}})
}

// TestResolve_RemovedFieldOfEveryKind_IsSkipped reads random values of the largest struct as one that has the last fields only.
func TestResolve_RemovedFieldOfEveryKind_IsSkipped(t *testing.T) {
	type wide struct {
		All  Nested
		Nums Numbers
		Six  map[string]Six
		Last string
	}
	type narrow struct{ Last string }
	r, c := newRand(), mustFor[wide](t)
	for range 100 {
		var v wide
		randomValue(r, reflect.ValueOf(&v).Elem())
		resolves(t, v, narrow{v.Last})
	}
	if got, err := Resolve(mustFor[narrow](t), c.Schema()); err != nil || got.Schema() != "struct{Last:string}" {
		t.Error(got, err)
	}
}

func unresolved[Old, New any](t *testing.T, want string) {
	t.Helper()
	o, c := mustFor[Old](t), mustFor[New](t)
	_, err := Resolve(c, o.Schema())
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%s as %s:\n got %v\nwant %s", o.Schema(), c.Schema(), err, want)
	}
}

func TestResolve_IncompatibleSchemas_AreRefused(t *testing.T) {
	type part struct{ X int64 }
	type textPart struct{ X string }
	unresolved[struct{ P []textPart }, struct{ P []part }](t,
		`read "struct{P:[]struct{X:string}}" as "struct{P:[]struct{X:int64}}": struct { P []codec.part }.P[].X: string cannot become int64: give the new field another name`)
	unresolved[int64, int32](t, "int64 cannot become int32")
	unresolved[int8, uint8](t, "int8 cannot become uint8")
	unresolved[uint16, int16](t, "uint16 cannot become int16")
	unresolved[int64, float64](t, "int64 cannot become float64")
	unresolved[float64, float32](t, "float64 cannot become float32")
	unresolved[int32, float64](t, "int32 cannot become float64")
	unresolved[bool, int8](t, "bool cannot become int8")
	unresolved[[]byte, string](t, "bytes cannot become string")
	unresolved[[]byte, []uint16](t, "bytes cannot become []uint16")
	unresolved[*int64, int64](t, "*int64 cannot become int64")
	unresolved[string, *int64](t, "string cannot become int64")
	unresolved[[2]int8, [3]int8](t, "[2]int8 cannot become [3]int8")
	unresolved[[]int8, [3]int8](t, "[]int8 cannot become [3]int8")
	unresolved[map[string]int8, map[int8]int8](t, "[key]: string cannot become int8")
	unresolved[int64, time.Time](t, "int64 cannot become time")
	unresolved[part, string](t, "struct{X:int64} cannot become string")
	unresolved[map[struct{ A, B int8 }]bool, map[struct{ A int8 }]bool](t, "different keys would be one")
	unresolved[map[[1]struct{ A, B int8 }]bool, map[[1]struct{ A int8 }]bool](t, "different keys would be one")
	unresolved[[]struct{}, []part](t, "take memory but are written as nothing")
}

func TestResolve_SameSchema_IsTheCodecItself(t *testing.T) {
	c := mustFor[Nested](t)
	if got, err := Resolve(c, c.Schema()); err != nil || got != c {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestResolve_DamagedSchema_IsRefused(t *testing.T) {
	c := mustFor[int64](t)
	for schema, want := range map[string]string{
		"":                              `schema "": unknown type "" at byte 0`,
		"int65":                         `unknown type "int65" at byte 0`,
		"int64 ":                        "something after the end at byte 5",
		"struct{":                       "no field name at byte 7",
		"struct{A:int8":                 `no "," at byte 13`,
		"struct{A:int8,}":               "no field name at byte 14",
		"struct{A:int8,A:int8}":         `second field "A" at byte 15`,
		"struct{A}":                     `no ":" at byte 8`,
		"map[string":                    `no "]" at byte 10`,
		"[-1]bool":                      "no array length",
		"[x]bool":                       "no array length",
		"[99999999999]bool":             "no array length",
		"[3bool":                        "no array length",
		"[3":                            `no "]" at byte 2`,
		"proto()":                       "no type name",
		"proto(a":                       `no ")" at byte 7`,
		strings.Repeat("*", 200):        "deeper than 100 types",
		strings.Repeat("x", 1+(1<<20)):  "longer than 1048576 bytes",
		strings.Repeat("[]", 50) + "xy": `unknown type "xy" at byte 100`,
	} {
		_, err := Resolve(c, schema)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("schema %.40q: %.200v, want %s", schema, err, want)
		}
	}
}

// versioned is a codec of one's own that knows its older schema.
type versioned struct{ hexes }

func (versioned) ResolveSchema(string) (Codec[string], error) { return hexes{}, nil }

func TestResolve_CodecOfOnesOwn_DecidesItself(t *testing.T) {
	if _, err := Resolve[string](hexes{}, "other"); err == nil || !strings.Contains(err.Error(), `schema "angles" and cannot read "other"`) {
		t.Error(err)
	}
	if c, err := Resolve[string](versioned{}, "other"); err != nil || c != Codec[string](hexes{}) {
		t.Error(c, err)
	}
}

// keyResolves checks that keys of the old type are found by the hash of the new one, and unkeyed that they would not be.
func keyResolves[Old, New comparable](t *testing.T) {
	t.Helper()
	o, c := mustFor[Old](t), mustFor[New](t)
	if err := ReadsKey(o.Schema(), c.Schema()); err != nil {
		t.Error(err)
		return
	}
	resolved, err := ResolveKey(c, o.Schema())
	if err != nil {
		t.Error(err)
		return
	}
	before, after := mustHash[Old](t), mustHash[New](t)
	r := newRand()
	for range 200 {
		var old Old
		randomValue(r, reflect.ValueOf(&old).Elem())
		key, _, err := resolved.Decode(mustAppend(t, o, old))
		if err != nil || before(old) != after(key) {
			t.Errorf("%s %v has hash %x, as %s %v it has %x (%v)", o.Schema(), old, before(old), c.Schema(), key, after(key), err)
			return
		}
	}
}

func mustHash[K comparable](t *testing.T) func(K) uint64 {
	t.Helper()
	hash, err := Hash[K]()
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func keyUnresolved[Old, New comparable](t *testing.T) {
	t.Helper()
	o, c := mustFor[Old](t), mustFor[New](t)
	if _, err := ResolveKey(c, o.Schema()); err == nil || !strings.Contains(err.Error(), "their hashes differ") || !strings.Contains(err.Error(), o.Schema()) {
		t.Errorf("keys %s as %s: %v", o.Schema(), c.Schema(), err)
	}
	if err := ReadsKey(o.Schema(), c.Schema()); err == nil {
		t.Errorf("keys %s as %s fit", o.Schema(), c.Schema())
	}
}

func TestResolveKey_OnlyWhereTheHashStays(t *testing.T) {
	type pair struct {
		A int16
		B string
	}
	type renamed struct {
		Letter int64 `weir:"A"`
		B      string
	}
	keyResolves[int8, int64](t)
	keyResolves[int32, int](t)
	keyResolves[uint16, int32](t)
	keyResolves[string, Name](t)
	keyResolves[pair, renamed](t)
	keyResolves[[2]uint16, [2]uint64](t)
	keyUnresolved[int64, string](t)
	keyUnresolved[int64, int32](t)
	keyUnresolved[[2]int8, [2]int16](t)
	keyUnresolved[[2]uint16, [2]int32](t)
	keyUnresolved[pair, struct {
		B string
		A int16
	}](t)
	keyUnresolved[pair, struct {
		A int16
		B string
		C bool
	}](t)
	keyUnresolved[pair, struct{ A int16 }](t)
	keyUnresolved[pair, struct {
		X int16
		B string
	}](t)
}

func TestReads_AgreesWithResolve(t *testing.T) {
	for _, w := range []string{"int8", "[]string", "map[string]struct{A:int8,B:bytes}", "struct{}", "[]struct{}"} {
		for _, c := range []string{"int64", "[]bytes", "map[string]struct{B:bytes,A:*int16}", "struct{A:int8}", "[]struct{A:int8}"} {
			var err error
			switch c {
			case "int64":
				_, err = Resolve(mustFor[int64](t), w)
			case "[]bytes":
				_, err = Resolve(mustFor[[][]byte](t), w)
			case "struct{A:int8}":
				_, err = Resolve(mustFor[struct{ A int8 }](t), w)
			case "[]struct{A:int8}":
				_, err = Resolve(mustFor[[]struct{ A int8 }](t), w)
			default:
				_, err = Resolve(mustFor[map[string]struct {
					B []byte
					A *int16
				}](t), w)
			}
			if reads := Reads(w, c); (reads == nil) != (err == nil) {
				t.Errorf("%s as %s: Reads says %v, Resolve %v", w, c, reads, err)
			}
		}
	}
}
