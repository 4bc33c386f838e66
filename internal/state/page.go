package state

import "math/bits"

const (
	bucketSlots = 8
	buckets     = 8
	bucketBits  = 3
	bucketMask  = buckets - 1
	pageSlots   = buckets * bucketSlots
	tagBits     = 7
	// fingerprintBits bounds the depth of a directory: 2^23 pages hold about 350 million entries of one key group; beyond that, overflow
	// pages take the rest.
	fingerprintBits = 16 + tagBits

	everyByte    = 0x0101010101010101
	everyTopBit  = 0x8080808080808080
	goldenFactor = 0x9E3779B97F4A7C15
)

// fingerprint is what a table keeps of a key's hash. Its first bits index the directory, the last bits before the tag choose the bucket in a
// page, and its last bits are the tag. Each stays selective until directories use them too: buckets up to 2^14 pages in one key
// group, tags up to 2^16.
type fingerprint uint32

// fingerprintOf mixes all bits of the hash, since hash modulo max parallelism is the same for all keys of a group.
func fingerprintOf(hash uint64) fingerprint {
	hi, lo := bits.Mul64(hash, goldenFactor)
	return fingerprint((hi ^ lo) >> (64 - fingerprintBits))
}

// tag is never zero, so that it is different from that of an empty slot.
func (f fingerprint) tag() uint8 { return uint8(f) | 1<<tagBits }

func (f fingerprint) bit(depth uint8) bool { return f>>(fingerprintBits-1-depth)&1 != 0 }

// bucket is the home of an entry in its page.
func (f fingerprint) bucket() int { return int(f >> tagBits & bucketMask) }

// page holds up to pageSlots entries. An entry is in the bucket of its fingerprint, or, if that was full when it came, in the next one that was
// not; full buckets that were passed by are marked. A page of keys and values without pointers has no pointers: that is why next is an
// index.
//
// Pages are large so that the directory of a large table stays in a processor's cache, and so that the garbage collector has few objects to
// mark. Buckets are small so that the tags and the entry, which are the only memory that an update touches, lie side by side.
type page[K comparable, V any] struct {
	version uint64
	next    uint32 // 1 + the index in group.overflow of the page behind this one, which is full then; 0 is none
	used    uint8  // entries in all buckets
	depth   uint8  // number of first bits that the fingerprints of all entries share
	passed  uint8  // a bit for each bucket that entries were passed by
	buckets [buckets]bucket[K, V]
}

// bucket holds entries in its first slots.
type bucket[K comparable, V any] struct {
	tags     uint64              // a byte for each entry, 0 for an empty slot
	prefixes [bucketSlots]uint16 // fingerprints without tags
	entries  [bucketSlots]entry[K, V]
}

// entry keeps key and value side by side: an update touches one cache line of entries.
type entry[K comparable, V any] struct {
	key   K
	value V
}

// candidates returns a bit for each entry whose tag is f's. A zero byte of a difference is an equal tag; the trick may also report the byte after
// a zero one, which the comparison of keys sorts out. It never reports an empty slot, whose difference is neither 0 nor 1.
func (b *bucket[K, V]) candidates(f fingerprint) uint64 {
	difference := b.tags ^ uint64(f.tag())*everyByte
	return (difference - everyByte) &^ difference & everyTopBit
}

// firstOf returns the slot of the first candidate.
func firstOf(candidates uint64) int { return bits.TrailingZeros64(candidates) / 8 & (bucketSlots - 1) }

// find returns the slot of key in the bucket, or -1.
func (b *bucket[K, V]) find(f fingerprint, key K) int {
	for c := b.candidates(f); c != 0; c &= c - 1 {
		if i := firstOf(c); b.entries[i].key == key {
			return i
		}
	}
	return -1
}

// find returns the slot of key, or -1.
func (p *page[K, V]) find(f fingerprint, key K) int {
	home := f.bucket()
	for n := range buckets {
		b := (home + n) & bucketMask
		if i := p.buckets[b].find(f, key); i >= 0 {
			return b*bucketSlots + i
		}
		if p.passed>>b&1 == 0 {
			break
		}
	}
	return -1
}

// get returns the entry of key, or nil.
func (p *page[K, V]) get(f fingerprint, key K) *entry[K, V] {
	if i := p.find(f, key); i >= 0 {
		return p.entry(i)
	}
	return nil
}

func (p *page[K, V]) entry(i int) *entry[K, V] {
	return &p.buckets[i/bucketSlots].entries[i%bucketSlots]
}

// count is the number of entries.
func (b *bucket[K, V]) count() int { return bits.OnesCount64(b.tags & everyTopBit) }

func (b *bucket[K, V]) fingerprint(i int) fingerprint {
	return fingerprint(b.prefixes[i])<<tagBits | fingerprint(b.tags>>(8*i)&(1<<tagBits-1))
}

// set overwrites slot i, which keeps its entry.
func (b *bucket[K, V]) set(i int, f fingerprint) {
	b.tags = b.tags&^(0xff<<(8*i)) | uint64(f.tag())<<(8*i)
	b.prefixes[i] = uint16(f >> tagBits)
}

// push takes a slot of a page that is not full for an entry, which is zero, and returns it.
func (p *page[K, V]) push(f fingerprint) *entry[K, V] {
	at := f.bucket()
	b := &p.buckets[at]
	n := b.count()
	for n == bucketSlots {
		p.passed |= 1 << at
		at = (at + 1) & bucketMask
		b = &p.buckets[at]
		n = b.count()
	}
	n &= bucketSlots - 1
	p.used++
	b.set(n, f)
	return &b.entries[n]
}

// cut takes out the entry in slot i: the last one of its bucket fills the hole. What is left there is zero, so that nothing is kept alive by
// it and the next push finds zeros.
func (p *page[K, V]) cut(i int) {
	b := &p.buckets[i/bucketSlots]
	i %= bucketSlots
	last := b.count() - 1
	b.set(i, b.fingerprint(last))
	b.entries[i] = b.entries[last]
	b.tags &^= 0xff << (8 * last)
	b.prefixes[last] = 0
	b.entries[last] = entry[K, V]{}
	if p.used--; p.used == 0 {
		p.passed = 0
	}
}

// take puts a copy of an entry of q into p, which is not full.
func (p *page[K, V]) take(q *bucket[K, V], i int) { *p.push(q.fingerprint(i)) = q.entries[i] }

// divide moves the entries whose next bit is set to q, which is empty, and makes both pages of the next depth.
func (p *page[K, V]) divide(q *page[K, V]) {
	for at := range p.buckets {
		b := &p.buckets[at]
		for i := b.count() - 1; i >= 0; i-- {
			if b.fingerprint(i).bit(p.depth) {
				q.take(b, i)
				p.cut(at*bucketSlots + i)
			}
		}
	}
	p.depth++
	q.depth = p.depth
	if p.passed != 0 {
		p.bringHome()
	}
}

// bringHome puts entries that are not in their own buckets there, if there is room now.
func (p *page[K, V]) bringHome() {
	p.passed = 0
	for at := range p.buckets {
		b := &p.buckets[at]
		for i := b.count() - 1; i >= 0; i-- {
			if f := b.fingerprint(i); f.bucket() != at {
				e := b.entries[i]
				p.cut(at*bucketSlots + i)
				*p.push(f) = e
			}
		}
	}
}

// takeAll puts copies of all entries of q into p, which has room for them.
func (p *page[K, V]) takeAll(q *page[K, V]) {
	for b := range q.buckets {
		from := &q.buckets[b]
		for i := range from.count() {
			p.take(from, i)
		}
	}
}

// takeOne moves an entry of q, which is not empty, to p, which is not full.
func (p *page[K, V]) takeOne(q *page[K, V]) {
	for b := range q.buckets {
		from := &q.buckets[b]
		if n := from.count(); n > 0 {
			p.take(from, n-1)
			q.cut(b*bucketSlots + n - 1)
			return
		}
	}
}

// visit calls fn for each entry until it returns an error, which visit returns.
func (p *page[K, V]) visit(fn func(key K, v V) error) error {
	for b := range p.buckets {
		entries := p.buckets[b].entries[:p.buckets[b].count()]
		for i := range entries {
			if err := fn(entries[i].key, entries[i].value); err != nil {
				return err
			}
		}
	}
	return nil
}

// each calls fn for each entry.
func (p *page[K, V]) each(fn func(key K, v V)) {
	_ = p.visit(func(key K, v V) error { // no call gives an error
		fn(key, v)
		return nil
	})
}
