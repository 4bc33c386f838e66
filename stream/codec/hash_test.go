package codec

import (
	"math/bits"
	"strings"
	"testing"
	"time"
)

func TestHash_BitOfKeyChanges_HalfTheBitsOfTheHashDo(t *testing.T) {
	ints, err := Hash[uint64]()
	if err != nil {
		t.Fatal(err)
	}
	pairs, err := Hash[[2]uint64]()
	if err != nil {
		t.Fatal(err)
	}
	const keys = 2000
	for name, hash := range map[string]func(uint64) uint64{"integer": ints, "array": func(k uint64) uint64 { return pairs([2]uint64{1, k}) }} {
		var flips [64][64]int // by bit of the key and bit of the hash
		for k := range uint64(keys) {
			for in := range 64 {
				changed := hash(k) ^ hash(k^1<<in)
				for ; changed != 0; changed &= changed - 1 {
					flips[in][bits.TrailingZeros64(changed)]++
				}
			}
		}
		for in := range flips {
			for out, n := range flips[in] {
				if n < keys*4/10 || n > keys*6/10 {
					t.Errorf("%s: bit %d of the key flips bit %d of the hash %d times of %d", name, in, out, n, keys)
				}
			}
		}
	}
}

func TestHash_DifferentKeys_DifferentHashes(t *testing.T) {
	type key struct{ A, B string }
	hash, err := Hash[key]()
	if err != nil {
		t.Fatal(err)
	}
	if hash(key{"ab", "c"}) == hash(key{"a", "bc"}) {
		t.Error("the border between fields does not count")
	}
	long := strings.Repeat("x", 300) // more than the room on the stack
	if hash(key{long, "a"}) == hash(key{long, "b"}) || hash(key{long, "a"}) != hash(key{strings.Clone(long), "a"}) {
		t.Error("long keys hash wrongly")
	}
}

func TestHash_TypeThatCannotBeAKey_IsRefused(t *testing.T) {
	refused[float64](t, "key of type float64: float64 is a float, which cannot be a key (NaN is not equal to itself): use an integer or a string")
	refused[any](t, "key of type interface {}: interface {} is of type interface {}, which has no encoding: keys are integers, strings, bools, and arrays and structs of such")
	refused[*int](t, "key of type *int: *int is a pointer, which cannot be a key: use what it points to")
	refused[chan int](t, "key of type chan int: chan int is of type chan int, which has no encoding: keys are")
	refused[time.Time](t, "key of type time.Time: time.Time is a time, which cannot be a key (equal instants differ by their location): use its UnixNano")
	refused[struct{ A [2]float32 }](t, ".A[] is a float, which cannot be a key")
	refused[struct{ a int }](t, ".a is not exported: export it")
	refused[struct {
		A int
		B int `weir:"-"`
	}](t, "has a field tagged `weir:\"-\"` and cannot be a key")
	refused[complex128](t, "which has no encoding")
	refused[uintptr](t, "which has no encoding")
}

func refused[K comparable](t *testing.T, want string) {
	t.Helper()
	if _, err := Hash[K](); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestHash_Keys_NoAllocation(t *testing.T) {
	hash, err := Hash[struct {
		A string
		B int64
	}]()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 50)
	if n := testing.AllocsPerRun(100, func() {
		hash(struct {
			A string
			B int64
		}{text, 7})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
