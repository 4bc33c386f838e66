package file

import (
	"errors"
	"reflect"
	"strconv"
	"time"
	"unsafe"
)

// setter parses a cell into a struct field. What it says in an error follows the cell's text, as in `"x" is not a whole number`.
type setter func(target unsafe.Pointer, cell []byte) error

var (
	errNotWhole    = errors.New("is not a whole number")
	errNotNatural  = errors.New("is not a whole number of at least 0")
	errRange       = errors.New("is out of the range of the field")
	errNotNumber   = errors.New("is not a number")
	errNotBool     = errors.New("is not true or false")
	errNotTime     = errors.New("is not a time such as 2006-01-02T15:04:05Z")
	errNotDuration = errors.New("is not a duration such as 1m30s")
)

// newSetter chooses the setter for a type that isCell accepts.
func newSetter(t reflect.Type) setter {
	switch {
	case t == timeType:
		return setTime
	case t == durationType:
		return setDuration
	}
	switch t.Kind() {
	case reflect.String:
		return (&interner{}).set
	case reflect.Bool:
		return setBool
	case reflect.Float32:
		return setFloat[float32](32)
	case reflect.Float64:
		return setFloat[float64](64)
	case reflect.Int:
		return setInt[int]
	case reflect.Int8:
		return setInt[int8]
	case reflect.Int16:
		return setInt[int16]
	case reflect.Int32:
		return setInt[int32]
	case reflect.Int64:
		return setInt[int64]
	case reflect.Uint:
		return setUint[uint]
	case reflect.Uint8:
		return setUint[uint8]
	case reflect.Uint16:
		return setUint[uint16]
	case reflect.Uint32:
		return setUint[uint32]
	}
	return setUint[uint64]
}

func setTime(target unsafe.Pointer, cell []byte) error {
	var t time.Time
	if err := t.UnmarshalText(cell); err != nil {
		return errNotTime
	}
	*(*time.Time)(target) = t.UTC()
	return nil
}

func setDuration(target unsafe.Pointer, cell []byte) error {
	d, err := time.ParseDuration(string(cell))
	if err != nil {
		return errNotDuration
	}
	*(*time.Duration)(target) = d
	return nil
}

func setBool(target unsafe.Pointer, cell []byte) error {
	b, err := strconv.ParseBool(string(cell))
	if err != nil {
		return errNotBool
	}
	*(*bool)(target) = b
	return nil
}

func setFloat[F float32 | float64](bits int) setter {
	return func(target unsafe.Pointer, cell []byte) error {
		f, err := strconv.ParseFloat(string(cell), bits)
		if err != nil {
			return numberError(err, errNotNumber)
		}
		*(*F)(target) = F(f)
		return nil
	}
}

// shortDigits is how many decimal digits surely fit into 64 bits, with and without a sign.
const shortDigits = 18

func setInt[I int | int8 | int16 | int32 | int64](target unsafe.Pointer, cell []byte) error {
	digits := cell
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	n, ok := shortNumber(digits)
	if !ok {
		var err error
		if n, err = strconv.ParseInt(string(cell), 10, 64); err != nil {
			return numberError(err, errNotWhole)
		}
	} else if len(digits) < len(cell) {
		n = -n
	}
	v := I(n)
	if int64(v) != n {
		return errRange
	}
	*(*I)(target) = v
	return nil
}

func setUint[U uint | uint8 | uint16 | uint32 | uint64](target unsafe.Pointer, cell []byte) error {
	short, ok := shortNumber(cell)
	n := uint64(short)
	if !ok {
		var err error
		if n, err = strconv.ParseUint(string(cell), 10, 64); err != nil {
			return numberError(err, errNotNatural)
		}
	}
	v := U(n)
	if uint64(v) != n {
		return errRange
	}
	*(*U)(target) = v
	return nil
}

// shortNumber reads up to shortDigits digits and nothing else.
func shortNumber(digits []byte) (n int64, ok bool) {
	if len(digits) == 0 || len(digits) > shortDigits {
		return 0, false
	}
	for _, c := range digits {
		if c -= '0'; c > 9 {
			return 0, false
		}
		n = n*10 + int64(c)
	}
	return n, true
}

func numberError(err, syntax error) error {
	if errors.Is(err, strconv.ErrRange) {
		return errRange
	}
	return syntax
}

// Limits of an interner: how many strings it remembers, and how long they are at most, in bytes.
const (
	internSlots  = 256
	internLength = 32
)

// interner makes strings of cells and shares those that come again soon: many columns have few distinct values, and a shared string costs no
// allocation.
type interner struct {
	slots [internSlots]string
}

func (in *interner) set(target unsafe.Pointer, cell []byte) error {
	s := (*string)(target)
	if len(cell) > internLength {
		*s = string(cell)
		return nil
	}
	h := uint32(len(cell))
	for _, c := range cell {
		h = (h ^ uint32(c)) * 16777619
	}
	slot := &in.slots[(h^h>>16)%internSlots]
	if *slot != string(cell) {
		*slot = string(cell)
	}
	*s = *slot
	return nil
}
