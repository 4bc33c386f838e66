package file

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// field is an exported field of a row's struct.
type field struct {
	name   string // of the column
	tagged bool   // the name comes from a tag and must match exactly
	goName string
	typ    reflect.Type
	offset uintptr
}

// fieldsOf lists the fields that are columns: the exported ones, unless their tag is csv:"-".
func fieldsOf(t reflect.Type) ([]field, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("a CSV row must be a struct, not %s", t)
	}
	var fields []field
	for i := range t.NumField() {
		sf := t.Field(i)
		name, tagged := sf.Tag.Lookup("csv")
		if !sf.IsExported() || name == "-" {
			continue
		}
		f := field{name: name, tagged: tagged && name != "", goName: t.String() + "." + sf.Name, typ: sf.Type, offset: sf.Offset}
		if !f.tagged {
			f.name = sf.Name
		}
		if !isCell(sf.Type) {
			return nil, fmt.Errorf("field %s has type %s, which a CSV cell cannot hold: give it another type or the tag `csv:\"-\"`", f.goName, sf.Type)
		}
		for _, other := range fields {
			if strings.EqualFold(other.name, f.name) {
				return nil, fmt.Errorf("fields %s and %s are both for the column %q", other.goName, f.goName, f.name)
			}
		}
		fields = append(fields, f)
	}
	if len(fields) == 0 {
		return nil, fmt.Errorf("%s has no exported field to hold a CSV column", t)
	}
	return fields, nil
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
)

func isCell(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	}
	return t == timeType
}
