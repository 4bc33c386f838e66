package codec

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"
)

// Codec encodes and decodes values of one type. Implementations are safe for use by many goroutines at once.
type Codec[T any] interface {
	// Append encodes v after dst.
	Append(dst []byte, v T) ([]byte, error)

	// Decode reads one value from the start of src and returns the rest. Decoded values never alias src.
	Decode(src []byte) (v T, rest []byte, err error)

	// Schema describes the encoding. It is stored with state and compared between builds.
	Schema() string
}

// Resolver is what a codec of one's own may implement so that state of older builds can be read.
type Resolver[T any] interface {
	// ResolveSchema returns a codec that decodes bytes written with the schema and encodes as today.
	ResolveSchema(written string) (Codec[T], error)
}

// builtin is the codec that For makes: one program to encode and one to decode.
type builtin[T any] struct {
	today   *node
	schema  string
	encode  []op
	decode  []op
	minSize int // fewest bytes of one value as written
}

// For returns the built-in codec of T, or an error that names the field and the type that has no encoding.
func For[T any]() (Codec[T], error) {
	t := reflect.TypeFor[T]()
	n, err := typeNode(t, codecRemedy)
	if err != nil {
		return nil, fmt.Errorf("codec of %s: %w", t, err)
	}
	if err := fits(n, n, t.String()); err != nil {
		return nil, fmt.Errorf("codec of %s: %w", t, err)
	}
	return &builtin[T]{
		today:   n,
		schema:  n.String(),
		encode:  encodeProgram(nil, n, 0, t.String()),
		decode:  decodeProgram(nil, n, n, 0, t.String()),
		minSize: n.minSize(),
	}, nil
}

// Resolve returns a codec that decodes bytes written with the schema `written` and encodes as c does. It returns c itself when c has that schema.
//
// Struct fields are matched by name, which a tag `weir:"name"` keeps when the Go field is renamed: new ones get the zero value, removed ones are
// skipped, the order is free. Numbers may have become wider where every value stays what it was (int8 to int64, uint8 to uint64 or int16, float32
// to float64), a string may have become a []byte, and a value a pointer to it. The same holds inside structs, slices, arrays, maps and pointers.
// Anything else is an error that names the field and both types.
func Resolve[T any](c Codec[T], written string) (Codec[T], error) {
	if c.Schema() == written {
		return c, nil
	}
	b, ok := c.(*builtin[T])
	if !ok {
		if r, ok := c.(Resolver[T]); ok {
			return r.ResolveSchema(written)
		}
		return nil, fmt.Errorf("codec %T has schema %q and cannot read %q: give it the method ResolveSchema", c, c.Schema(), written)
	}
	w, err := parseSchema(written)
	if err != nil {
		return nil, fmt.Errorf("schema %q: %w", written, err)
	}
	t := reflect.TypeFor[T]()
	if err := fits(w, b.today, t.String()); err != nil {
		return nil, fmt.Errorf("read %q as %q: %w", written, b.schema, err)
	}
	resolved := *b
	resolved.decode, resolved.minSize = decodeProgram(nil, w, b.today, 0, t.String()), w.minSize()
	return &resolved, nil
}

// Append implements Codec.
func (b *builtin[T]) Append(dst []byte, v T) ([]byte, error) {
	return appendValue(b.encode, dst, noescape(unsafe.Pointer(&v)))
}

// Decode implements Codec.
func (b *builtin[T]) Decode(src []byte) (v T, rest []byte, err error) {
	pos, err := decodeValue(b.decode, input{src: src}, 0, noescape(unsafe.Pointer(&v)))
	if err != nil {
		var zero T
		return zero, src, err
	}
	return v, src[pos:], nil
}

// Schema implements Codec.
func (b *builtin[T]) Schema() string { return b.schema }

// decodeAll appends n values to dst, which has room for them. All their strings are parts of one string: a single allocation for the batch.
func (b *builtin[T]) decodeAll(src []byte, n int, dst []T) ([]T, []byte, error) {
	in := input{src: src, text: string(src)}
	pos := 0
	old := len(dst)
	dst = dst[:old+n]
	clear(dst[old:]) // decoding fills zero values, and the spare capacity of dst may have old ones
	for i := range n {
		next, err := decodeValue(b.decode, in, pos, unsafe.Pointer(&dst[old+i]))
		if err != nil {
			return dst[:old], src, fmt.Errorf("value %d of %d: %w", i+1, n, err)
		}
		pos = next
	}
	return dst, src[pos:], nil
}

// DecodeAll appends n values from the start of src to dst and returns the rest of src.
//
// It copies src once and lets the strings of all values be parts of that copy, so src should be the batch and no more, and a value that is kept
// for long keeps the text of its whole batch: clone the strings of such a value (state does, since it encodes). Nothing aliases src itself.
// After an error dst has its old length.
func DecodeAll[T any](c Codec[T], src []byte, n int, dst []T) ([]T, []byte, error) {
	b, _ := c.(*builtin[T])
	least := 0
	if b != nil {
		least = b.minSize
	}
	if err := checkCount(n, least, len(src)); err != nil {
		return dst, src, fmt.Errorf("batch: %w", err)
	}
	old := len(dst)
	dst = slices.Grow(dst, n)
	if b != nil {
		return b.decodeAll(src, n, dst)
	}
	rest := src
	for i := range n {
		v, r, err := c.Decode(rest)
		if err != nil {
			return dst[:old], src, fmt.Errorf("value %d of %d: %w", i+1, n, err)
		}
		dst, rest = append(dst, v), r
	}
	return dst, rest, nil
}

// noescape hides p from escape analysis, so that a value on the stack can be encoded without an allocation. It is correct because
// the programs never keep the pointer nor give it to code that could: maps and values with methods of their own are copied first.
//
//go:nosplit
func noescape(p unsafe.Pointer) unsafe.Pointer {
	x := uintptr(p)
	return *(*unsafe.Pointer)(unsafe.Pointer(&x))
}
