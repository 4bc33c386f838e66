package codec

import "reflect"

// Plain tells whether T holds no slice, map, pointer, interface, channel or function, so that a shallow copy of a value is a deep
// one. Strings and time.Time are plain.
func Plain[T any]() bool { return plain(reflect.TypeFor[T]()) }

func plain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Map, reflect.Pointer, reflect.Interface, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return false
	case reflect.Array:
		return t.Len() == 0 || plain(t.Elem())
	case reflect.Struct:
		if t.ConvertibleTo(timeType) {
			return true
		}
		for i := range t.NumField() {
			if !plain(t.Field(i).Type) {
				return false
			}
		}
	}
	return true
}
