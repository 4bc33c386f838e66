package codec

import (
	"fmt"
	"reflect"
	"unsafe"
)

// op is an instruction of a program that encodes or decodes one value: what is at an offset in memory. Nested structs are flattened
// into the program of the struct around them, so that a record of basic fields is one loop over one slice, without reflection.
type op struct {
	kind   kind
	offset uintptr
	path   string // for errors
	more   *more  // nil for most basic kinds
}

// more is what only the rarer instructions need.
type more struct {
	from, to kind         // scalar: as written, as stored
	typ      reflect.Type // pointer, slice, map, proto, binary: the type in memory
	body     []op         // pointer, slice, array, map: the program of the element
	key      []op         // map: the program of the key
	size     uintptr      // slice, array: the distance of elements in memory
	len      int          // array, raw: the number of elements
	minSize  int          // slice, map: the fewest bytes of an element as written
	skip     *node        // skip: what to skip
}

// encodeProgram appends the instructions that encode a value of type n at the offset. What takes no bytes has none.
func encodeProgram(ops []op, n *node, offset uintptr, path string) []op {
	if n.minSize() == 0 {
		return ops
	}
	o := op{kind: n.kind, offset: offset, path: path}
	switch n.kind {
	case kindStruct:
		for _, f := range n.fields {
			ops = encodeProgram(ops, f.node, offset+f.offset, path+"."+f.name)
		}
		return ops
	case kindProto, kindBinary:
		o.more = &more{typ: n.typ}
	case kindPointer, kindSlice, kindArray, kindMap:
		if n.raw() {
			o.kind, o.more = kindRaw, &more{len: n.len}
			break
		}
		o.more = &more{typ: n.typ, body: encodeProgram(nil, n.elem, 0, path+n.step()), size: n.elem.typ.Size(), len: n.len}
		if n.kind == kindMap {
			o.more.key = encodeProgram(nil, n.key, 0, path+"[key]")
		}
	}
	return append(ops, o)
}

// raw tells whether n is an array whose bytes in memory are its encoding.
func (n *node) raw() bool {
	return n.kind == kindArray && (n.elem.kind == kindUint8 || n.elem.kind == kindInt8)
}

// step is how the path to the element of n goes on.
func (n *node) step() string {
	if n.kind == kindPointer {
		return ""
	}
	return "[]"
}

// decodeProgram appends the instructions that decode what was written as w to the value of type t at the offset; see fits for what is possible.
func decodeProgram(ops []op, w, t *node, offset uintptr, path string) []op {
	o := op{kind: t.kind, offset: offset, path: path}
	switch {
	case widens(w.kind, t.kind):
		if t.kind.written() != w.kind.written() || (t.kind != kindInt64 && t.kind != kindInt) {
			o.kind, o.more = kindScalar, &more{from: w.kind, to: t.kind}
		}
		return append(ops, o)
	case t.kind == kindPointer && w.kind != kindPointer:
		o.kind, o.more = kindWrap, &more{typ: t.typ, body: decodeProgram(nil, w, t.elem, 0, path)}
		return append(ops, o)
	case t.kind == kindBytes && w.kind == kindString:
		o.kind = kindText
		return append(ops, o)
	}
	switch t.kind {
	case kindStruct:
		return decodeStruct(ops, w, t, offset, path)
	case kindProto, kindBinary:
		o.more = &more{typ: t.typ}
	case kindPointer, kindSlice, kindArray, kindMap:
		if t.raw() && w.elem.kind == t.elem.kind {
			o.kind, o.more = kindRaw, &more{len: t.len}
			break
		}
		o.decodeElements(w, t)
		if w.minSize() == 0 && len(o.more.body) == 0 {
			return ops
		}
	}
	return append(ops, o)
}

func decodeStruct(ops []op, w, t *node, offset uintptr, path string) []op {
	for _, wf := range w.fields {
		at := path + "." + wf.name
		tf := t.field(wf.name)
		if tf == nil {
			ops = append(ops, op{kind: kindSkip, path: at, more: &more{skip: wf.node}})
			continue
		}
		ops = decodeProgram(ops, wf.node, tf.node, offset+tf.offset, at)
	}
	return ops
}

func (n *node) field(name string) *field {
	for i := range n.fields {
		if n.fields[i].name == name {
			return &n.fields[i]
		}
	}
	return nil
}

// decodeElements compiles the programs of what t holds.
func (o *op) decodeElements(w, t *node) {
	body := decodeProgram(nil, w.elem, t.elem, 0, o.path+t.step())
	o.more = &more{typ: t.typ, body: body, size: t.elem.typ.Size(), len: t.len, minSize: w.elem.minSize()}
	if t.kind == kindMap {
		o.more.key = decodeProgram(nil, w.key, t.key, 0, o.path+"[key]")
		o.more.minSize = min(o.more.minSize+w.key.minSize(), maxMinSize)
	}
}

func (o *op) wrap(err error) error { return fmt.Errorf("%s: %w", o.path, err) }

// sliceHeader is a slice in memory.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}
