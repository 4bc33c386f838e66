package codec

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"unsafe"
)

// maxTexts bounds the strings of a type that Owned clones one by one.
const maxTexts = 64

// Owner is what a codec may implement that knows how a value gets strings of its own: its method is what Owned returns.
type Owner[T any] interface {
	Owned() func(v, before T) T
}

// Owned returns a function that gives a value strings of its own, so that it can be kept without the batch whose text they are part of
// (see DecodeAll). What the value already shares with before, the value that was kept until now, stays as it is. Owned returns nil for types
// without strings, where there is nothing to do.
//
// Strings in fields and arrays are cloned. A value that holds strings behind pointers or in slices and maps is written and read again. If that is
// impossible, because it cannot be encoded or has fields that are not, the value is returned as it is: it keeps more memory than it needs.
func Owned[T any](c Codec[T]) func(v, before T) T {
	b, ok := c.(*builtin[T])
	if !ok {
		if o, ok := c.(Owner[T]); ok {
			return o.Owned()
		}
		if !mayHoldText(reflect.TypeFor[T]()) {
			return nil
		}
		return copyOf(c)
	}
	if !b.today.holdsText() {
		return nil
	}
	if offsets, ok := b.today.texts(nil, 0); ok {
		return func(v, before T) T {
			own(offsets, noescape(unsafe.Pointer(&v)), noescape(unsafe.Pointer(&before)))
			return v
		}
	}
	if b.today.isPartial() {
		return nil
	}
	return copyOf(c)
}

// own clones the strings at the offsets of v. A string that begins where the old one does, and is not longer, is part of it.
func own(offsets []uintptr, v, before unsafe.Pointer) {
	for _, offset := range offsets {
		s, old := (*string)(unsafe.Add(v, offset)), (*string)(unsafe.Add(before, offset))
		if unsafe.StringData(*s) != unsafe.StringData(*old) || len(*s) > len(*old) {
			*s = strings.Clone(*s)
		}
	}
}

// copyOf returns a function that copies values by way of their encoding. A value that refers to the same memory as the one before is not copied.
func copyOf[T any](c Codec[T]) func(v, before T) T {
	return func(v, before T) T {
		if bytes.Equal(memory(&v), memory(&before)) {
			return v
		}
		data, err := c.Append(nil, v)
		if err != nil {
			return v
		}
		if own, rest, err := c.Decode(data); err == nil && len(rest) == 0 {
			return own
		}
		return v
	}
}

func memory[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }

// holdsText tells whether a value may refer to a string.
func (n *node) holdsText() bool {
	switch n.kind {
	case kindString, kindProto, kindBinary:
		return true
	case kindMap:
		return n.key.holdsText() || n.elem.holdsText()
	case kindPointer, kindSlice, kindArray:
		return n.elem.holdsText()
	case kindStruct:
		return slices.ContainsFunc(n.fields, func(f field) bool { return f.node.holdsText() })
	}
	return false
}

// texts appends the offsets of all strings; ok is false if there are too many, or some that have no fixed place.
func (n *node) texts(offsets []uintptr, at uintptr) (_ []uintptr, ok bool) {
	if !n.holdsText() {
		return offsets, true
	}
	ok = true
	switch n.kind {
	case kindString:
		offsets = append(offsets, at)
	case kindStruct:
		for _, f := range n.fields {
			if offsets, ok = f.node.texts(offsets, at+f.offset); !ok {
				return nil, false
			}
		}
	case kindArray:
		for i := range n.len {
			if offsets, ok = n.elem.texts(offsets, at+uintptr(i)*n.elem.typ.Size()); !ok {
				return nil, false
			}
		}
	default:
		return nil, false
	}
	return offsets, len(offsets) <= maxTexts
}

// isPartial tells whether some field is left out of the encoding.
func (n *node) isPartial() bool {
	return n.partial || n.key != nil && n.key.isPartial() || n.elem != nil && n.elem.isPartial() ||
		slices.ContainsFunc(n.fields, func(f field) bool { return f.node.isPartial() })
}

// mayHoldText is holdsText for types whose encoding is the user's.
func mayHoldText(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Pointer, reflect.Interface, reflect.Map:
		return true
	case reflect.Slice, reflect.Array:
		return mayHoldText(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if mayHoldText(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}
