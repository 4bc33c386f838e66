package state

import "slices"

// minEntriesPerSlot bounds the size of a directory: it is doubled only if it then has at least as many entries per slot, whatever the
// hashes are. Above it, a page that cannot be split grows a chain of overflow pages.
const minEntriesPerSlot = pageSlots / 4

// mergeEntries is how many entries two neighbouring pages have at most when they become one. It is far below pageSlots, so that a page
// is not split and merged again and again.
const mergeEntries = pageSlots / 4

// place names a slot of a page: link is 0 for the page in the directory, else the page's name as in page.next.
type place struct {
	link  uint32
	index int // -1 is nowhere
}

func (g *group[K, V]) locate(f fingerprint, key K) place {
	link := uint32(0)
	for {
		p := g.page(f, link)
		if i := p.find(f, key); i >= 0 {
			return place{link, i}
		}
		if p.next == 0 {
			return place{0, -1}
		}
		link = p.next
	}
}

func (g *group[K, V]) page(f fingerprint, link uint32) *page[K, V] {
	if link == 0 {
		return g.dir[f>>g.shift]
	}
	return g.overflow[link-1]
}

// slots returns the half-open range of directory slots that point to the page of the given depth which holds f.
func (g *group[K, V]) slots(f fingerprint, depth uint8) (from, to int) {
	span := 1 << (g.depth() - depth)
	from = int(f>>g.shift) &^ (span - 1)
	return from, from + span
}

func (g *group[K, V]) point(f fingerprint, p *page[K, V]) {
	from, to := g.slots(f, p.depth)
	for i := from; i < to; i++ {
		g.dir[i] = p
	}
}

// writable returns a page after making sure that no open snapshot sees it: it is replaced by a copy if need be.
func (t *Table[K, V]) writable(g *group[K, V], f fingerprint, link uint32) *page[K, V] {
	p := g.page(f, link)
	if !t.visible(g, p.version) {
		p.version = t.version // so that nobody asks again
		return p
	}
	t.unshare(g)
	c := t.replace(p)
	if link == 0 {
		g.point(f, c)
	} else {
		g.overflow[link-1] = c
	}
	return c
}

// unshare makes the directory writable.
func (t *Table[K, V]) unshare(g *group[K, V]) {
	if t.visible(g, g.version) {
		g.dir = slices.Clone(g.dir)
		g.overflow = slices.Clone(g.overflow)
		g.version = t.version
	}
}

// insert returns a new slot for an entry with fingerprint f.
func (t *Table[K, V]) insert(g *group[K, V], f fingerprint) *entry[K, V] {
	for {
		p := g.page(f, 0)
		if p.used < pageSlots {
			return t.writable(g, f, 0).push(f)
		}
		if p.depth == g.depth() && !t.grow(g) {
			return t.last(g, f).push(f)
		}
		t.split(g, f)
	}
}

// grow doubles the directory if its limit permits.
func (t *Table[K, V]) grow(g *group[K, V]) bool {
	if g.shift == 0 || g.count < minEntriesPerSlot*2*len(g.dir) {
		return false
	}
	t.unshare(g)
	dir := make([]*page[K, V], 2*len(g.dir))
	for i, p := range g.dir {
		dir[2*i], dir[2*i+1] = p, p
	}
	g.dir = dir
	g.shift--
	return true
}

// split makes two pages of the next depth of the page that holds f and the pages behind it.
func (t *Table[K, V]) split(g *group[K, V], f fingerprint) {
	t.unshare(g)
	p := g.page(f, 0)
	low := f &^ (1 << (fingerprintBits - 1 - p.depth))
	high := low | 1<<(fingerprintBits-1-p.depth)
	if p.next == 0 && !t.visible(g, p.version) {
		q := t.newPage()
		*q = page[K, V]{version: t.version}
		p.version = t.version
		p.divide(q)
		g.point(low, p)
		g.point(high, q)
		return
	}
	for _, half := range []fingerprint{low, high} {
		g.point(half, &page[K, V]{version: t.version, depth: p.depth + 1})
	}
	for {
		for b := range p.buckets {
			from := &p.buckets[b]
			for i := range from.count() {
				to := low
				if from.fingerprint(i).bit(p.depth) {
					to = high
				}
				t.last(g, to).take(from, i)
			}
		}
		if p.next == 0 {
			return
		}
		p = g.takeOverflow(p.next)
	}
}

// last returns the end of the chain of pages for f, writable and with room for an entry.
func (t *Table[K, V]) last(g *group[K, V], f fingerprint) *page[K, V] {
	link := uint32(0)
	for p := g.page(f, 0); p.next != 0; p = g.page(f, link) {
		link = p.next
	}
	p := t.writable(g, f, link)
	if p.used < pageSlots {
		return p
	}
	t.unshare(g)
	q := &page[K, V]{version: t.version, depth: p.depth}
	p.next = g.addOverflow(q)
	return q
}

func (g *group[K, V]) addOverflow(p *page[K, V]) (link uint32) {
	if n := len(g.free); n > 0 {
		i := g.free[n-1]
		g.free = g.free[:n-1]
		g.overflow[i] = p
		return i + 1
	}
	g.overflow = append(g.overflow, p)
	return uint32(len(g.overflow))
}

// takeOverflow unlinks an overflow page from the group, whose arrays must be writable.
func (g *group[K, V]) takeOverflow(link uint32) *page[K, V] {
	p := g.overflow[link-1]
	g.overflow[link-1] = nil
	g.free = append(g.free, link-1)
	return p
}

// remove takes away the entry at a place. An entry of the last page of the chain takes its room, so that only the last page may have empty slots.
func (t *Table[K, V]) remove(g *group[K, V], f fingerprint, at place) {
	t.writable(g, f, at.link).cut(at.index)
	before, link := at.link, at.link
	for p := g.page(f, link); p.next != 0; p = g.page(f, link) {
		before, link = link, p.next
	}
	if link != at.link {
		g.page(f, at.link).takeOne(t.writable(g, f, link))
	} else {
		before = t.before(g, f, link)
	}
	if link != 0 && g.page(f, link).used == 0 {
		t.writable(g, f, before).next = 0
		t.unshare(g)
		g.takeOverflow(link)
	}
}

// before returns the page in front of an overflow page of f's chain.
func (t *Table[K, V]) before(g *group[K, V], f fingerprint, link uint32) uint32 {
	before := uint32(0)
	for p := g.page(f, 0); p.next != 0 && p.next != link; p = g.page(f, before) {
		before = p.next
	}
	return before
}

// merge joins the page that holds f with its neighbour, the one that differs in the last bit of the depth, when both are nearly empty.
func (t *Table[K, V]) merge(g *group[K, V], f fingerprint) {
	p := g.page(f, 0)
	if p.depth == 0 || p.used > mergeEntries || p.next != 0 {
		return
	}
	q := g.page(f^1<<(fingerprintBits-p.depth), 0)
	if q.depth != p.depth || q.next != 0 || p.used+q.used > mergeEntries {
		return
	}
	p = t.writable(g, f, 0)
	t.unshare(g)
	p.takeAll(q)
	p.depth--
	g.point(f, p)
}
