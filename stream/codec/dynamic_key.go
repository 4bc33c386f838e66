package codec

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"
)

func leUint64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// hashProblem says why values of a schema cannot be keys of keyed state; it is what Hash refuses of Go types.
func (n *node) hashProblem() error {
	switch {
	case n.kind == kindString, n.kind == kindBool, n.kind.signed(), n.kind.unsigned():
		return nil
	case n.kind == kindArray:
		return n.elem.hashProblem()
	case n.kind == kindStruct:
		for _, f := range n.fields {
			if err := f.node.hashProblem(); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
		}
		return nil
	}
	return fmt.Errorf("%s cannot be a key: %s", n, keyRemedy)
}

// hashOf hashes a key that is encoded as n says. It must agree with Hash.
func (n *node) hashOf(encoded []byte) (uint64, error) {
	switch n.kind {
	case kindString:
		length, next, err := readLength(encoded, 0, "string")
		if err != nil {
			return 0, err
		}
		return xxh3.Hash(encoded[next : next+length]), nil
	case kindArray, kindStruct:
		return xxh3.Hash(encoded), nil
	case kindBool:
		v, _, err := readBool(encoded, 0, "bool")
		if v {
			return mix(1), err
		}
		return mix(0), err
	}
	bits, _, err := readScalar(n.kind, encoded, 0)
	return mix(bits), err
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// scalarBits are the sizes of the integers that a schema knows.
var scalarBits = [...]int{kindInt8: 8, kindInt16: 16, kindInt32: 32, kindInt64: 64, kindUint8: 8, kindUint16: 16, kindUint32: 32, kindUint64: 64}

// appendScalar encodes an integer or a bool that is written as text.
func appendScalar(dst []byte, k kind, text string) ([]byte, error) {
	switch {
	case k == kindBool:
		switch text {
		case "true":
			return append(dst, 1), nil
		case "false":
			return append(dst, 0), nil
		}
		return dst, fmt.Errorf("%q is no bool: true or false", text)
	case k.signed():
		v, err := strconv.ParseInt(text, 10, scalarBits[k])
		if err != nil {
			return dst, fmt.Errorf("%q is no %s", text, scalarNames[k])
		}
		if k == kindInt8 {
			return append(dst, byte(v)), nil
		}
		return binary.AppendUvarint(dst, zigzag(v)), nil
	}
	v, err := strconv.ParseUint(text, 10, scalarBits[k])
	if err != nil {
		return dst, fmt.Errorf("%q is no %s", text, scalarNames[k])
	}
	if k == kindUint8 {
		return append(dst, byte(v)), nil
	}
	return binary.AppendUvarint(dst, v), nil
}

// appendKeyJSON encodes what was read from JSON, numbers as json.Number. Nothing is guessed: all fields must be there, and no others.
func appendKeyJSON(dst []byte, n *node, v any, path string) (_ []byte, err error) {
	switch v := v.(type) {
	case map[string]any:
		if n.kind != kindStruct {
			break
		}
		for name := range v {
			if !slices.ContainsFunc(n.fields, func(f field) bool { return f.name == name }) {
				return dst, fmt.Errorf("%s has no field %q: it is %s", path, name, n)
			}
		}
		for _, f := range n.fields {
			fv, ok := v[f.name]
			if !ok {
				return dst, fmt.Errorf("%s lacks the field %q: it is %s", path, f.name, n)
			}
			if dst, err = appendKeyJSON(dst, f.node, fv, path+"."+f.name); err != nil {
				return dst, err
			}
		}
		return dst, nil
	case []any:
		if n.kind != kindArray || len(v) != n.len {
			break
		}
		for i := range v {
			if dst, err = appendKeyJSON(dst, n.elem, v[i], path+"["+strconv.Itoa(i)+"]"); err != nil {
				return dst, err
			}
		}
		return dst, nil
	case string:
		if n.kind == kindString {
			return appendText(dst, v), nil
		}
	case bool:
		if n.kind == kindBool {
			return appendScalar(dst, n.kind, strconv.FormatBool(v))
		}
	case json.Number:
		if n.kind.signed() || n.kind.unsigned() {
			dst, err = appendScalar(dst, n.kind, v.String())
			if err != nil {
				return dst, fmt.Errorf("%s: %w", path, err)
			}
			return dst, nil
		}
	}
	text, _ := json.Marshal(v) // it was read from JSON
	return dst, fmt.Errorf("%s: %s is no %s", path, strings.TrimSpace(string(text)), n)
}
