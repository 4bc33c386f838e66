package codec

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// MaxJSONBytes bounds the JSON text of one value: elements that take no bytes have a text all the same.
const MaxJSONBytes = 64 << 20

var errLongJSON = fmt.Errorf("value is longer than %d bytes as JSON", MaxJSONBytes)

// Dynamic reads values by their schema alone, without their Go type, for tools that look at state. It may be used by many goroutines at once.
//
// In JSON, integers and floats are numbers (NaN and the infinities are strings), structs are objects with their fields in the order in which they were
// written, times are RFC 3339 in UTC, bytes, protobuf messages and values that marshal themselves are base64, nil is null. Maps are objects when
// their keys are strings, integers or bools, else lists of objects with key and value. Text that is not UTF-8 has U+FFFD where it is broken.
type Dynamic struct{ node *node }

// NewDynamic returns a reader of what a built-in codec with the schema has written. Schemas of other codecs are errors.
func NewDynamic(schema string) (*Dynamic, error) {
	n, err := parseSchema(schema)
	if err != nil {
		return nil, fmt.Errorf("schema %q is not that of a built-in codec: %w", schema, err)
	}
	return &Dynamic{n}, nil
}

// Skip returns what follows the value at the start of src.
func (d *Dynamic) Skip(src []byte) (rest []byte, err error) {
	next, err := skipValue(d.node, src, 0)
	if err != nil {
		return src, err
	}
	return src[next:], nil
}

// JSON is the value at the start of src as compact JSON, and what follows it.
func (d *Dynamic) JSON(src []byte) (text, rest []byte, err error) {
	w := jsonWriter{src: src}
	next, err := w.value(d.node, 0)
	if err != nil {
		return nil, src, err
	}
	return w.out, src[next:], nil
}

// jsonWriter writes values that it reads from src.
type jsonWriter struct{ src, out []byte }

func (w *jsonWriter) add(s string) { w.out = append(w.out, s...) }

// quote adds a JSON string. Unlike json.Marshal it leaves <, > and & as they are.
func (w *jsonWriter) quote(s string) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always has an encoding, and a Buffer takes everything
	w.out = append(w.out, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

func (w *jsonWriter) value(n *node, pos int) (next int, err error) {
	if len(w.out) > MaxJSONBytes {
		return 0, errLongJSON
	}
	switch n.kind {
	case kindPointer:
		set, next, err := readBool(w.src, pos, "pointer flag")
		if err != nil {
			return 0, err
		}
		if !set {
			w.add("null")
			return next, nil
		}
		return w.value(n.elem, next)
	case kindArray:
		return w.list(n.elem, n.len, pos)
	case kindSlice:
		count, next, err := readCount(w.src, pos, n.elem.minSize())
		if err != nil {
			return 0, err
		}
		if count < 0 {
			w.add("null")
			return next, nil
		}
		return w.list(n.elem, count, next)
	case kindMap:
		return w.mapOf(n, pos)
	case kindStruct:
		return w.object(n, pos)
	}
	return w.leaf(n, pos)
}

func (w *jsonWriter) list(elem *node, count, pos int) (next int, err error) {
	w.add("[")
	for i := range count {
		if i > 0 {
			w.add(",")
		}
		if pos, err = w.value(elem, pos); err != nil {
			return 0, err
		}
	}
	w.add("]")
	return pos, nil
}

func (w *jsonWriter) object(n *node, pos int) (next int, err error) {
	w.add("{")
	for i, f := range n.fields {
		if i > 0 {
			w.add(",")
		}
		w.quote(f.name)
		w.add(":")
		if pos, err = w.value(f.node, pos); err != nil {
			return 0, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	w.add("}")
	return pos, nil
}

func (w *jsonWriter) mapOf(n *node, pos int) (int, error) {
	count, pos, err := readCount(w.src, pos, n.key.minSize()+n.elem.minSize())
	if err != nil || count < 0 {
		w.add("null")
		return pos, err
	}
	named := n.key.kind == kindString || n.key.kind == kindBool || n.key.kind.signed() || n.key.kind.unsigned()
	begin, between, end := `{"key":`, `,"value":`, "}"
	if named {
		w.add("{")
		begin, between, end = "", ":", ""
	} else {
		w.add("[")
	}
	for i := range count {
		if i > 0 {
			w.add(",")
		}
		w.add(begin)
		quoted := named && n.key.kind != kindString
		if quoted {
			w.add(`"`)
		}
		if pos, err = w.value(n.key, pos); err != nil {
			return 0, err
		}
		if quoted {
			w.add(`"`)
		}
		w.add(between)
		if pos, err = w.value(n.elem, pos); err != nil {
			return 0, err
		}
		w.add(end)
	}
	if named {
		w.add("}")
	} else {
		w.add("]")
	}
	return pos, nil
}

// leaf writes what holds nothing else.
func (w *jsonWriter) leaf(n *node, pos int) (next int, err error) {
	switch n.kind {
	case kindBool:
		v, next, err := readBool(w.src, pos, "bool")
		w.add(strconv.FormatBool(v))
		return next, err
	case kindString:
		length, next, err := readLength(w.src, pos, "string")
		if err == nil {
			w.quote(string(w.src[next : next+length]))
		}
		return next + length, err
	case kindBinary:
		length, next, err := readLength(w.src, pos, n.name)
		w.base64(w.src[next : next+length])
		return next + length, err
	case kindBytes, kindProto:
		b, next, err := readBytes(w.src, pos, n.String())
		if b == nil {
			w.add("null")
			return next, err
		}
		w.base64(b)
		return next, err
	case kindTime:
		v, next, err := readTime(w.src, pos)
		w.quote(v.Format(time.RFC3339Nano))
		return next, err
	case kindFloat64:
		if len(w.src)-pos < 8 {
			return 0, truncated("float64", len(w.src)-pos, 8)
		}
		w.float(math.Float64frombits(leUint64(w.src[pos:])), 64)
		return pos + 8, nil
	}
	bits, next, err := readScalar(n.kind, w.src, pos)
	switch {
	case err != nil:
		return 0, err
	case n.kind == kindFloat32:
		w.float(math.Float64frombits(bits), 32)
	case n.kind.signed():
		w.out = strconv.AppendInt(w.out, int64(bits), 10)
	default:
		w.out = strconv.AppendUint(w.out, bits, 10)
	}
	return next, nil
}

func (w *jsonWriter) base64(b []byte) {
	w.add(`"`)
	w.out = base64.StdEncoding.AppendEncode(w.out, b)
	w.add(`"`)
}

func (w *jsonWriter) float(f float64, size int) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		w.quote(strconv.FormatFloat(f, 'g', -1, size))
		return
	}
	var text []byte
	if size == 32 {
		text, _ = json.Marshal(float32(f)) // a finite float always has an encoding
	} else {
		text, _ = json.Marshal(f)
	}
	w.out = append(w.out, text...)
}

// AppendKey encodes the key that text means after dst: a string, an integer or a bool as it is, an array or a struct as JSON with all of its fields.
func (d *Dynamic) AppendKey(dst []byte, text string) ([]byte, error) {
	if err := d.node.hashProblem(); err != nil {
		return dst, err
	}
	if d.node.kind == kindString {
		return appendText(dst, text), nil
	}
	if d.node.kind != kindArray && d.node.kind != kindStruct {
		return appendScalar(dst, d.node.kind, text)
	}
	var v any
	in := json.NewDecoder(bytes.NewReader([]byte(text)))
	in.UseNumber()
	if err := in.Decode(&v); err != nil {
		return dst, fmt.Errorf("a key of type %s is written as JSON: %w", d.node, err)
	}
	if in.More() {
		return dst, fmt.Errorf("a key of type %s is one JSON value, and more follows it", d.node)
	}
	return appendKeyJSON(dst, d.node, v, "key")
}

// HashKey is what the function that Hash returns gives for the encoded key.
func (d *Dynamic) HashKey(encoded []byte) (uint64, error) {
	if err := d.node.hashProblem(); err != nil {
		return 0, err
	}
	if rest, err := d.Skip(encoded); err != nil {
		return 0, err
	} else if len(rest) > 0 {
		return 0, errors.New("something follows the key")
	}
	return d.node.hashOf(encoded)
}
