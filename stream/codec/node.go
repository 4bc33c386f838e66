package codec

import (
	"reflect"
	"strconv"
	"strings"
)

// kind is the kind of an encoding, and the instruction that encodes or decodes it.
type kind uint8

const (
	kindBool kind = iota + 1
	kindInt8
	kindInt16
	kindInt32
	kindInt64
	kindInt // int in memory, int64 when written
	kindUint8
	kindUint16
	kindUint32
	kindUint64
	kindUint // uint in memory, uint64 when written
	kindFloat32
	kindFloat64
	kindString
	kindBytes
	kindTime
	kindProto
	kindBinary
	kindPointer
	kindSlice
	kindArray
	kindMap
	kindStruct

	// Only as instructions.
	kindScalar // an integer or float that is read as one kind and stored as the same or a wider one
	kindRaw    // an array of bytes
	kindSkip   // something that today's type does not have
	kindWrap   // a pointer to what was written without one
	kindText   // bytes that were written as a string
)

// scalarNames are the schema's names of the kinds that have no parameters.
var scalarNames = [...]string{
	kindBool: "bool", kindInt8: "int8", kindInt16: "int16", kindInt32: "int32", kindInt64: "int64", kindInt: "int64",
	kindUint8: "uint8", kindUint16: "uint16", kindUint32: "uint32", kindUint64: "uint64", kindUint: "uint64",
	kindFloat32: "float32", kindFloat64: "float64", kindString: "string", kindBytes: "bytes", kindTime: "time",
}

func (k kind) signed() bool   { return k >= kindInt8 && k <= kindInt }
func (k kind) unsigned() bool { return k >= kindUint8 && k <= kindUint }

// written is the kind under which the schema knows k.
func (k kind) written() kind {
	switch k {
	case kindInt:
		return kindInt64
	case kindUint:
		return kindUint64
	}
	return k
}

// node is one part of an encoding: of a Go type, or read from a schema.
type node struct {
	kind    kind
	name    string       // proto and binary: the type's name
	typ     reflect.Type // nil when read from a schema
	key     *node        // map
	elem    *node        // pointer, slice, array, map
	len     int          // array
	fields  []field      // struct
	partial bool         // struct: a field is left out by its tag
}

// field is a field of a struct that is encoded.
type field struct {
	name   string
	offset uintptr // 0 when read from a schema
	node   *node
}

// String is the schema.
func (n *node) String() string {
	var b strings.Builder
	n.write(&b)
	return b.String()
}

func (n *node) write(b *strings.Builder) {
	switch n.kind {
	case kindProto:
		b.WriteString("proto(" + n.name + ")")
	case kindBinary:
		b.WriteString("binary(" + n.name + ")")
	case kindPointer:
		b.WriteByte('*')
		n.elem.write(b)
	case kindSlice:
		b.WriteString("[]")
		n.elem.write(b)
	case kindArray:
		b.WriteString("[" + strconv.Itoa(n.len) + "]")
		n.elem.write(b)
	case kindMap:
		b.WriteString("map[")
		n.key.write(b)
		b.WriteByte(']')
		n.elem.write(b)
	case kindStruct:
		b.WriteString("struct{")
		for i, f := range n.fields {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(f.name + ":")
			f.node.write(b)
		}
		b.WriteByte('}')
	default:
		b.WriteString(scalarNames[n.kind])
	}
}

// maxMinSize is where the sum of a type's least size stops, so that it cannot overflow: no input is that long.
const maxMinSize = 1 << 29

// minSize is the fewest bytes that a value takes. Zero means that every value takes none.
func (n *node) minSize() int {
	switch n.kind {
	case kindFloat32:
		return 4
	case kindFloat64:
		return 8
	case kindTime:
		return 2
	case kindArray:
		each := n.elem.minSize()
		if each > 0 && n.len > maxMinSize/each {
			return maxMinSize
		}
		return n.len * each
	case kindStruct:
		sum := 0
		for _, f := range n.fields {
			sum = min(sum+f.node.minSize(), maxMinSize)
		}
		return sum
	}
	return 1
}
