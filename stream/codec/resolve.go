package codec

import "fmt"

// Reads says why values that were written with one schema of a built-in codec cannot become values with another one, or nil. It is what Resolve
// goes by, for those who do not have the types.
func Reads(written, today string) error {
	w, t, err := parseBoth(written, today)
	if err != nil {
		return err
	}
	if err := fits(w, t, "value"); err != nil {
		return fmt.Errorf("read %q as %q: %w", written, today, err)
	}
	return nil
}

// ReadsKey is Reads for keys, whose hash must stay the same: state is found by it.
func ReadsKey(written, today string) error {
	w, t, err := parseBoth(written, today)
	if err != nil {
		return err
	}
	return keyFits(w, t)
}

func parseBoth(written, today string) (w, t *node, err error) {
	if w, err = parseSchema(written); err != nil {
		return nil, nil, fmt.Errorf("schema %q: %w", written, err)
	}
	if t, err = parseSchema(today); err != nil {
		return nil, nil, fmt.Errorf("schema %q: %w", today, err)
	}
	return w, t, nil
}

// ResolveKey is Resolve for keys of state. A key may become what has the same hash: a wider integer, and in a struct or an array an integer of 16
// bits or more may become a wider one of the same sign. Anything else is an error: the stored keys would be in the wrong key groups.
func ResolveKey[K any](c Codec[K], written string) (Codec[K], error) {
	if b, ok := c.(*builtin[K]); ok && c.Schema() != written {
		w, err := parseSchema(written)
		if err != nil {
			return nil, fmt.Errorf("schema %q: %w", written, err)
		}
		if err := keyFits(w, b.today); err != nil {
			return nil, err
		}
	}
	return Resolve(c, written)
}

// keyFits says why keys that were written as w cannot be those of type t.
func keyFits(w, t *node) error {
	integers := (w.kind.signed() || w.kind.unsigned()) && widens(w.kind, t.kind)
	if integers || sameEncoding(w, t) {
		return nil
	}
	return fmt.Errorf("keys %q cannot become keys %q: their hashes differ, so what is stored for them would not be found; keep the type of the key"+
		" (a field may have another name in Go and keep its stored one by a tag), or give the operator another id and leave its state behind", w, t)
}

// sameEncoding tells whether equal keys have equal bytes as w and as t. Fields must have the same names too, since values are matched by them.
func sameEncoding(w, t *node) bool {
	if w.kind.written() != t.kind.written() {
		sameSign := w.kind.signed() && t.kind.signed() || w.kind.unsigned() && t.kind.unsigned()
		return sameSign && widens(w.kind, t.kind) && w.kind != kindInt8 && w.kind != kindUint8 // those of 8 bits are no varints
	}
	if w.len != t.len || w.name != t.name || len(w.fields) != len(t.fields) || w.elem != nil && !sameEncoding(w.elem, t.elem) {
		return false
	}
	for i := range w.fields {
		if w.fields[i].name != t.fields[i].name || !sameEncoding(w.fields[i].node, t.fields[i].node) {
			return false
		}
	}
	return true
}

// fits says why what was written as w cannot become a value of type t, which may come from a schema or from a Go type. Path is where they are.
func fits(w, t *node, path string) error {
	switch {
	case widens(w.kind, t.kind), t.kind == kindBytes && w.kind == kindString:
		return nil
	case t.kind == kindPointer && w.kind != kindPointer:
		return fits(w, t.elem, path)
	case w.kind != t.kind || w.name != t.name || w.len != t.len:
		return fmt.Errorf("%s: %s cannot become %s: give the new field another name, convert state with stream.Migrate, or %s", path, w, t, codecRemedy)
	}
	switch t.kind {
	case kindStruct:
		for _, wf := range w.fields {
			if tf := t.field(wf.name); tf != nil {
				if err := fits(wf.node, tf.node, path+"."+wf.name); err != nil {
					return err
				}
			}
		}
	case kindPointer, kindSlice, kindArray, kindMap:
		return elementsFit(w, t, path)
	}
	return nil
}

func elementsFit(w, t *node, path string) error {
	if err := fits(w.elem, t.elem, path+t.step()); err != nil {
		return err
	}
	if t.kind == kindMap {
		if err := fits(w.key, t.key, path+"[key]"); err != nil {
			return err
		}
		if !keepsKeys(w.key, t.key) {
			return fmt.Errorf("%s[key]: %s cannot become %s: different keys would be one", path, w.key, t.key)
		}
	}
	// Without this a few bytes could claim any amount of memory.
	if t.kind == kindSlice && w.elem.minSize() == 0 && t.elem.takesMemory() {
		return fmt.Errorf("%s: elements of type %s take memory but are written as nothing (%s): encode a field of them, or %s",
			path, t.elem.goType(), w.elem, codecRemedy)
	}
	return nil
}

func (n *node) takesMemory() bool {
	if n.typ == nil {
		return n.minSize() > 0
	}
	return n.typ.Size() > 0
}

// goType is the name of the type, or what the schema knows of it.
func (n *node) goType() string {
	if n.typ == nil {
		return n.String()
	}
	return n.typ.String()
}

// widens tells whether every value of the number kind w is one of t. The same kind of integers is included; other kinds than numbers are not.
func widens(w, t kind) bool {
	w, t = w.written(), t.written()
	switch {
	case w.signed() && t.signed(), w.unsigned() && t.unsigned():
		return w <= t
	case w.unsigned() && t.signed():
		return w-kindUint8 < t-kindInt8 // both are in order of their size
	}
	return w == kindFloat32 && t == kindFloat64
}
