package codec

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"google.golang.org/protobuf/proto"
)

// typeNode describes the encoding of a Go type.
func typeNode(t reflect.Type, remedy string) (*node, error) {
	w := &walk{remedy: remedy}
	return w.node(t, t.String())
}

// walk goes through a type and remembers which types it is in.
type walk struct {
	in     []reflect.Type
	remedy string // what to do about a type that has no encoding
}

var (
	timeType        = reflect.TypeFor[time.Time]()
	protoType       = reflect.TypeFor[proto.Message]()
	marshalerType   = reflect.TypeFor[encoding.BinaryMarshaler]()
	unmarshalerType = reflect.TypeFor[encoding.BinaryUnmarshaler]()
)

const (
	codecRemedy = "give a codec of your own"
	keyRemedy   = "keys are integers, strings, bools, and arrays and structs of such"
)

// node describes t, which was found at path. Types with methods to marshal themselves use them only where the structure cannot be encoded.
func (w *walk) node(t reflect.Type, path string) (*node, error) {
	if slices.Contains(w.in, t) {
		return nil, fmt.Errorf("%s is recursive (%s holds itself): %s", path, t, w.remedy)
	}
	w.in = append(w.in, t)
	n, err := w.structure(t, path)
	w.in = w.in[:len(w.in)-1]
	if err != nil && marshalsItself(t) {
		return &node{kind: kindBinary, name: t.String(), typ: t}, nil
	}
	return n, err
}

// basic are the kinds that need nothing but their kind.
var basic = map[reflect.Kind]kind{
	reflect.Bool: kindBool, reflect.String: kindString, reflect.Float32: kindFloat32, reflect.Float64: kindFloat64,
	reflect.Int: kindInt, reflect.Int8: kindInt8, reflect.Int16: kindInt16, reflect.Int32: kindInt32, reflect.Int64: kindInt64,
	reflect.Uint: kindUint, reflect.Uint8: kindUint8, reflect.Uint16: kindUint16, reflect.Uint32: kindUint32, reflect.Uint64: kindUint64,
}

func (w *walk) structure(t reflect.Type, path string) (*node, error) {
	if k, ok := basic[t.Kind()]; ok {
		return &node{kind: k, typ: t}, nil
	}
	switch t.Kind() {
	case reflect.Struct:
		if t.ConvertibleTo(timeType) {
			return &node{kind: kindTime, typ: t}, nil
		}
		return w.structNode(t, path)
	case reflect.Pointer:
		if name := protoName(t); name != "" {
			return &node{kind: kindProto, name: name, typ: t}, nil
		}
		return w.holder(kindPointer, t, path)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return &node{kind: kindBytes, typ: t}, nil
		}
		return w.holder(kindSlice, t, path+"[]")
	case reflect.Array:
		return w.holder(kindArray, t, path+"[]")
	case reflect.Map:
		key, err := w.node(t.Key(), path+"[key]")
		if err != nil {
			return nil, err
		}
		if why := key.keyProblem(path+"[key]", false); why != nil {
			return nil, why
		}
		n, err := w.holder(kindMap, t, path+"[]")
		if err != nil {
			return nil, err
		}
		n.key = key
		return n, nil
	}
	return nil, fmt.Errorf("%s is of type %s, which has no encoding: %s", path, t, w.remedy)
}

func (w *walk) holder(k kind, t reflect.Type, path string) (*node, error) {
	elem, err := w.node(t.Elem(), path)
	if err != nil {
		return nil, err
	}
	n := &node{kind: k, typ: t, elem: elem}
	if k == kindArray {
		n.len = t.Len()
	}
	return n, nil
}

func (w *walk) structNode(t reflect.Type, path string) (*node, error) {
	if protoName(reflect.PointerTo(t)) != "" {
		return nil, fmt.Errorf("%s is the protobuf message %s by value: use a pointer to it", path, t)
	}
	n := &node{kind: kindStruct, typ: t}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "_" {
			continue
		}
		at := path + "." + f.Name
		name, tagged := f.Tag.Lookup("weir")
		if name == "-" {
			n.partial = true
			continue
		}
		if !f.IsExported() {
			return nil, fmt.Errorf("%s is not exported: export it, tag it `weir:\"-\"` to leave it out, or %s", at, w.remedy)
		}
		if !tagged {
			name = f.Name
		}
		if !validName(name) {
			return nil, fmt.Errorf("%s has the tag weir:%q: a name has letters, digits and _-. only", at, name)
		}
		if slices.ContainsFunc(n.fields, func(o field) bool { return o.name == name }) {
			return nil, fmt.Errorf("%s has the name %q of another field: give one of them a tag", at, name)
		}
		of, err := w.node(f.Type, at)
		if err != nil {
			return nil, err
		}
		n.fields = append(n.fields, field{name: name, offset: f.Offset, node: of})
	}
	return n, nil
}

// validName tells whether a schema can have the field name.
func validName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !nameRune(r) })
}

func nameRune(r rune) bool {
	return r != unicode.ReplacementChar && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-.", r))
}

// protoName is the full name of the protobuf message that t points to, or empty. Types that only embed a message are none: the rest of them would be lost.
func protoName(t reflect.Type) (name string) {
	if t.Kind() != reflect.Pointer || !t.Implements(protoType) {
		return ""
	}
	// A struct that embeds a nil message interface panics when asked.
	defer func() {
		if recover() != nil {
			name = ""
		}
	}()
	m := reflect.New(t.Elem()).Interface().(proto.Message).ProtoReflect()
	if reflect.TypeOf(m.Interface()) != t {
		return ""
	}
	return string(m.Descriptor().FullName())
}

// marshalsItself tells whether t has methods of its own to marshal and unmarshal. Methods that come from an embedded field do not count: they know that field only.
func marshalsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	if !p.Implements(marshalerType) || !p.Implements(unmarshalerType) || !validName(t.String()) {
		return false
	}
	if t.Kind() != reflect.Struct {
		return true
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && (f.Type.Implements(marshalerType) || reflect.PointerTo(f.Type).Implements(marshalerType)) {
			return false
		}
	}
	return true
}
