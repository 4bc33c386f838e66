package state

// Cursor is a place between two pages of a table; the zero value is the beginning. It stays good whatever becomes of the table.
type Cursor struct {
	group int
	next  uint64 // the first fingerprint behind the pages that were visited
}

// Begins reports whether the cursor is at the beginning, where Sweep ends up after the last page.
func (c Cursor) Begins() bool { return c == Cursor{} }

// Sweep calls f for each entry of some pages from a place on: whole pages until limit is reached, where each page counts as one more than it
// has entries. It returns the place behind them. An entry that is there from one beginning to the next is visited at least once, whatever
// else comes and goes between the calls. f must not change the table.
func (t *Table[K, V]) Sweep(at Cursor, limit int, f func(key K, v V)) Cursor {
	for at.group < len(t.groups) {
		g := &t.groups[at.group]
		for at.next < 1<<fingerprintBits {
			if limit <= 0 {
				return at
			}
			p := g.page(fingerprint(at.next), 0)
			span := uint64(1) << (fingerprintBits - p.depth)
			at.next = at.next&^(span-1) + span
			for {
				limit -= 1 + int(p.used)
				p.each(f)
				if p.next == 0 {
					break
				}
				p = g.overflow[p.next-1]
			}
		}
		at = Cursor{group: at.group + 1}
	}
	return Cursor{}
}
