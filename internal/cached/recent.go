package cached

import (
	"math/bits"
	"reflect"
)

// slotOverhead is what an entry in memory takes beside key, value and mark, in bytes.
const slotOverhead = 8

// weight is what the entries of a table take in memory, on average. What values refer to is known of some only: of those that were read, and of one in
// sampleEvery that were written.
type weight struct {
	fixed     int64
	variable  bool
	mean      int64 // of the encoded size, in 1/scale bytes
	countdown int
}

const (
	sampleEvery = 32
	scale       = 16
	// memoryFactor is how much more room something takes in memory than encoded.
	memoryFactor = 2
)

func (w *weight) of() int64 { return w.fixed + w.mean*memoryFactor/scale }

// due reports whether the next size should be learnt.
func (w *weight) due() bool {
	if !w.variable {
		return false
	}
	w.countdown--
	if w.countdown > 0 {
		return false
	}
	w.countdown = sampleEvery
	return true
}

// learn takes an encoded size into the mean: growth counts more than the other way round, since it is what hurts.
func (w *weight) learn(size int) {
	if !w.variable {
		return
	}
	d := int64(size)*scale - w.mean
	if d > 0 {
		w.mean += (d + 3) / 4
	} else {
		w.mean += d / 32
	}
}

// refers reports whether a value takes memory that its size does not tell.
func refers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return refers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if refers(t.Field(i).Type) {
				return true
			}
		}
		return false
	case reflect.String, reflect.Slice, reflect.Map, reflect.Pointer, reflect.Interface:
		return true
	}
	return false
}

// recency is a bit for each of the entries that were used lately, by their hashes. Two entries that have the same bit stay longer than they should.
type recency struct {
	words []uint64
	shift uint8 // a mixed hash shifted by it is its bit
}

const (
	goldenFactor = 0x9E3779B97F4A7C15
	bitsPerEntry = 4
	minWords     = 16
)

func (r *recency) touch(hash uint64) {
	i := hash * goldenFactor >> (r.shift & 63)
	r.words[i>>6] |= 1 << (i & 63)
}

// forget reports whether the entry was used, and clears its bit.
func (r *recency) forget(hash uint64) bool {
	i := hash * goldenFactor >> (r.shift & 63)
	used := r.words[i>>6]>>(i&63)&1 != 0
	r.words[i>>6] &^= 1 << (i & 63)
	return used
}

// fit makes room for n entries. What was used is forgotten then.
func (r *recency) fit(n int) {
	if n*bitsPerEntry <= len(r.words)*64 && len(r.words) > 0 {
		return
	}
	words := max(minWords, 2*len(r.words))
	r.words = make([]uint64, words)
	r.shift = uint8(64 - bits.TrailingZeros(uint(words*64)))
}
