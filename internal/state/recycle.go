package state

import "reflect"

// Copies for snapshots are made into pages that earlier copies have left behind: memory that is new costs more than the copy, and gives the garbage
// collector work. Only pages without pointers are used again, because others would keep alive what they point to.

// newPage returns a page whose content is unspecified.
func (t *Table[K, V]) newPage() *page[K, V] {
	n := len(t.spare)
	if n == 0 {
		return new(page[K, V])
	}
	p := t.spare[n-1]
	t.spare[n-1] = nil
	t.spare = t.spare[:n-1]
	return p
}

// replace makes a copy of a page that open snapshots see, which takes its place.
func (t *Table[K, V]) replace(p *page[K, V]) *page[K, V] {
	c := t.newPage()
	*c = *p
	c.version = t.version
	if n := len(t.open); t.recycles && n > 0 && p.version != 0 {
		newest := t.open[n-1]
		newest.replaced = append(newest.replaced, p)
	}
	return c
}

// recycle takes back what was kept for a snapshot that is released; open are the ones before it that are not.
func (t *Table[K, V]) recycle(m *mark[K, V], open []*mark[K, V]) {
	for _, p := range m.replaced {
		if n := len(open); n > 0 && p.version <= open[n-1].version {
			open[n-1].replaced = append(open[n-1].replaced, p)
		} else if len(t.spare) < t.maxSpare() {
			t.spare = append(t.spare, p)
		}
	}
	m.replaced = nil
}

// maxSpare bounds the pages that are kept to be used again: full, they would hold all entries of the table.
func (t *Table[K, V]) maxSpare() int { return 1 + t.length/pageSlots }

// hasPointers reports whether values of a type refer to other memory.
func hasPointers(typ reflect.Type) bool {
	switch typ.Kind() {
	case reflect.Array:
		return typ.Len() > 0 && hasPointers(typ.Elem())
	case reflect.Struct:
		for i := range typ.NumField() {
			if hasPointers(typ.Field(i).Type) {
				return true
			}
		}
		return false
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return false
	}
	return true
}
