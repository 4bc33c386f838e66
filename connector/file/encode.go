package file

import (
	"reflect"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

// rowEncoder writes structs as CSV rows. It may be used by many goroutines.
type rowEncoder struct {
	fields []field
	cells  []cellAppender
}

type cellAppender func(dst []byte, value unsafe.Pointer) []byte

func newRowEncoder(fields []field) *rowEncoder {
	e := &rowEncoder{fields: fields}
	for _, f := range fields {
		e.cells = append(e.cells, newCellAppender(f.typ))
	}
	return e
}

func (e *rowEncoder) header() []byte {
	var dst []byte
	for i, f := range e.fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendCell(dst, f.name)
	}
	return append(dst, '\n')
}

// append writes the row of the struct at value.
func (e *rowEncoder) append(dst []byte, value unsafe.Pointer) []byte {
	first := len(dst)
	for i, cell := range e.cells {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = cell(dst, unsafe.Add(value, e.fields[i].offset))
	}
	if len(dst) == first {
		dst = append(dst, `""`...) // a blank line would be no row
	}
	return append(dst, '\n')
}

func newCellAppender(t reflect.Type) cellAppender {
	switch {
	case t == timeType:
		return func(dst []byte, p unsafe.Pointer) []byte {
			return (*time.Time)(p).UTC().AppendFormat(dst, time.RFC3339Nano)
		}
	case t == durationType:
		return func(dst []byte, p unsafe.Pointer) []byte { return append(dst, (*time.Duration)(p).String()...) }
	}
	switch t.Kind() {
	case reflect.String:
		return func(dst []byte, p unsafe.Pointer) []byte { return appendCell(dst, *(*string)(p)) }
	case reflect.Bool:
		return func(dst []byte, p unsafe.Pointer) []byte { return strconv.AppendBool(dst, *(*bool)(p)) }
	case reflect.Float32:
		return func(dst []byte, p unsafe.Pointer) []byte {
			return strconv.AppendFloat(dst, float64(*(*float32)(p)), 'g', -1, 32)
		}
	case reflect.Float64:
		return func(dst []byte, p unsafe.Pointer) []byte {
			return strconv.AppendFloat(dst, *(*float64)(p), 'g', -1, 64)
		}
	case reflect.Int:
		return appendInt[int]
	case reflect.Int8:
		return appendInt[int8]
	case reflect.Int16:
		return appendInt[int16]
	case reflect.Int32:
		return appendInt[int32]
	case reflect.Int64:
		return appendInt[int64]
	case reflect.Uint:
		return appendUint[uint]
	case reflect.Uint8:
		return appendUint[uint8]
	case reflect.Uint16:
		return appendUint[uint16]
	case reflect.Uint32:
		return appendUint[uint32]
	}
	return appendUint[uint64]
}

func appendInt[I int | int8 | int16 | int32 | int64](dst []byte, p unsafe.Pointer) []byte {
	return strconv.AppendInt(dst, int64(*(*I)(p)), 10)
}

func appendUint[U uint | uint8 | uint16 | uint32 | uint64](dst []byte, p unsafe.Pointer) []byte {
	return strconv.AppendUint(dst, uint64(*(*U)(p)), 10)
}

// appendCell quotes a text if it would be read as something else without.
func appendCell(dst []byte, s string) []byte {
	if !needsQuotes(s) {
		return append(dst, s...)
	}
	dst = append(dst, '"')
	for i := range len(s) {
		if s[i] == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, s[i])
	}
	return append(dst, '"')
}

func needsQuotes(s string) bool {
	if strings.HasPrefix(s, byteOrderMark) {
		return true
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c == ',' || c == '"' || c == '\n' || c == '\r':
			return true
		case (c == ' ' || c == '\t') && (i == 0 || i == len(s)-1): // other readers trim
			return true
		}
	}
	return false
}
