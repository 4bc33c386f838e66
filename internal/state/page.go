package state

import "math/bits"

const (
	pageSlots = 16
	slotMask  = pageSlots - 1
	tagBits   = 7
	// fingerprintBits bounds the depth of a directory: 2^23 pages hold about 90 million entries of one key group; beyond that, overflow
	// pages take the rest.
	fingerprintBits = 16 + tagBits

	everyByte    = 0x0101010101010101
	everyTopBit  = 0x8080808080808080
	tagsPerWord  = 8
	goldenFactor = 0x9E3779B97F4A7C15
)

// fingerprint is what a table keeps of a key's hash. Its first bits index the directory, its last bits are the tag, which stays
// selective within a page until directories use them too (more than 2^16 pages in one key group).
type fingerprint uint32

// fingerprintOf mixes all bits of the hash, since hash modulo max parallelism is the same for all keys of a group.
func fingerprintOf(hash uint64) fingerprint {
	hi, lo := bits.Mul64(hash, goldenFactor)
	return fingerprint((hi ^ lo) >> (64 - fingerprintBits))
}

// tag is never zero, so that it is different from that of an empty slot.
func (f fingerprint) tag() uint8 { return uint8(f) | 1<<tagBits }

func (f fingerprint) bit(depth uint8) bool { return f>>(fingerprintBits-1-depth)&1 != 0 }

// page holds up to pageSlots entries in its first slots. What is searched first fills one cache line. A page of keys and values
// without pointers has no pointers: that is why next is an index.
type page[K comparable, V any] struct {
	tags     [pageSlots / tagsPerWord]uint64 // a byte for each entry
	version  uint64
	next     uint32 // 1 + the index in group.overflow of the page behind this one, which is full then; 0 is none
	used     uint8
	depth    uint8             // number of first bits that the fingerprints of all entries share
	prefixes [pageSlots]uint16 // fingerprints without tags
	entries  [pageSlots]entry[K, V]
}

// entry keeps key and value side by side: an update touches one cache line of entries.
type entry[K comparable, V any] struct {
	key   K
	value V
}

// candidates returns a bit for each entry whose tag is f's, without a branch: which of the two words has it cannot be predicted. A
// zero byte of a difference is an equal tag; the trick may also report the byte after a zero one, which the comparison of keys sorts
// out. It never reports an empty slot, whose difference is neither 0 nor 1.
func (p *page[K, V]) candidates(f fingerprint) uint64 {
	pattern := uint64(f.tag()) * everyByte
	low, high := p.tags[0]^pattern, p.tags[1]^pattern
	low = (low - everyByte) &^ low & everyTopBit
	high = (high - everyByte) &^ high & everyTopBit
	return low>>7 | high>>6
}

// firstOf returns the slot of the first candidate.
func firstOf(candidates uint64) int {
	n := bits.TrailingZeros64(candidates)
	return (n>>3 | n<<3) & slotMask
}

// find returns the slot of key, or -1.
func (p *page[K, V]) find(f fingerprint, key K) int {
	for c := p.candidates(f); c != 0; c &= c - 1 {
		if i := firstOf(c); p.entries[i].key == key {
			return i
		}
	}
	return -1
}

func (p *page[K, V]) fingerprint(i int) fingerprint {
	tag := p.tags[i/tagsPerWord] >> (i % tagsPerWord * 8) & (1<<tagBits - 1)
	return fingerprint(p.prefixes[i])<<tagBits | fingerprint(tag)
}

func (p *page[K, V]) setTag(i int, tag uint8) {
	shift := i % tagsPerWord * 8
	word := &p.tags[i/tagsPerWord]
	*word = *word&^(0xff<<shift) | uint64(tag)<<shift
}

// push takes the next slot for an entry, which is zero, and returns it.
func (p *page[K, V]) push(f fingerprint) int {
	i := int(p.used)
	p.used++
	p.setTag(i, f.tag())
	p.prefixes[i] = uint16(f >> tagBits)
	return i
}

// pop clears the last slot, so that nothing is kept alive by it and the next push finds zeros.
func (p *page[K, V]) pop() {
	p.used--
	i := int(p.used)
	p.setTag(i, 0)
	p.prefixes[i] = 0
	p.entries[i] = entry[K, V]{}
}

// set overwrites slot i of p with slot j of q.
func (p *page[K, V]) set(i int, q *page[K, V], j int) {
	f := q.fingerprint(j)
	p.setTag(i, f.tag())
	p.prefixes[i] = uint16(f >> tagBits)
	p.entries[i] = q.entries[j]
}
