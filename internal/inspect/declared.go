package inspect

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/stream/codec"
)

// keyedKinds are the kinds of keyed state, with what is in front of the value type in the schema of what is stored: the value type of a list state is
// that of its elements.
var keyedKinds = map[string]string{
	"value": "", "reducing": "", "aggregating": "", "list": "[]", kindMap: "", "event-timers": "", "processing-timers": "",
}

// The kinds that are stored in another form.
const (
	kindMap      = "map"
	timersSuffix = "-timers"
)

// declared is a keyed state with what reads it.
type declared struct {
	checkpoint.StateSchema
	keys   *codec.Dynamic
	parts  []named        // of what an entry is found by, behind the key: the namespace, the key in the map, the time of a timer
	values *codec.Dynamic // with the time of the last access, if entries expire; nil: timers have none
}

// named is a part of what an entry is found by.
type named struct {
	name string
	*codec.Dynamic
}

// newDeclared returns an error that goes on where the name of the state ends.
func newDeclared(schema checkpoint.StateSchema) (d declared, err error) {
	many, ok := keyedKinds[schema.Kind]
	if !ok {
		return d, fmt.Errorf(" is of kind %q, which this version cannot read", schema.Kind)
	}
	d.StateSchema = schema
	if d.keys, err = codec.NewDynamic(schema.KeyType); err != nil {
		return d, fmt.Errorf(": key: %w", err)
	}
	parts := []struct{ name, schema string }{{"namespace", schema.NamespaceType}}
	if schema.Kind == kindMap {
		parts = append(parts, struct{ name, schema string }{"key", schema.MapKeyType})
	}
	value := schema.ValueType
	if d.timers() {
		parts = append(parts, struct{ name, schema string }{"at", value})
	}
	for _, p := range parts {
		if p.schema == "" && p.name == "namespace" {
			continue
		}
		part, err := codec.NewDynamic(p.schema)
		if err != nil {
			return d, fmt.Errorf(": %s: %w", p.name, err)
		}
		d.parts = append(d.parts, named{p.name, part})
	}
	if d.timers() {
		return d, nil
	}
	if schema.TTL != 0 {
		value = "struct{value:" + value + ",last_access:int64}"
	}
	if d.values, err = codec.NewDynamic(many + value); err != nil {
		return d, fmt.Errorf(": value: %w", err)
	}
	return d, nil
}

func (d *declared) timers() bool {
	return d.Kind == "event"+timersSuffix || d.Kind == "processing"+timersSuffix
}

// single tells whether a key has at most one entry.
func (d *declared) single() bool { return len(d.parts) == 0 }

// skip returns what follows the key and some parts at the start of data.
func (d *declared) skip(data []byte, parts []named) (rest []byte, err error) {
	if rest, err = d.keys.Skip(data); err != nil {
		return data, fmt.Errorf("key: %w", err)
	}
	for _, p := range parts {
		if rest, err = p.Skip(rest); err != nil {
			return data, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return rest, nil
}

func (d *declared) skipValue(data []byte) (rest []byte, err error) {
	if d.values == nil {
		return data, nil
	}
	if rest, err = d.values.Skip(data); err != nil {
		return data, fmt.Errorf("value: %w", err)
	}
	return rest, nil
}

// entries gives f the entries of the state at the start of data, each with all that it is found by, and returns what follows them.
func (d *declared) entries(data []byte, f func(id, value []byte) error) (rest []byte, bad, err error) {
	count, data, bad := readCount(data)
	if bad != nil {
		return nil, bad, nil
	}
	for range count {
		parts := d.parts
		if d.Kind == kindMap {
			parts = parts[:len(parts)-1]
		}
		value, bad := d.skip(data, parts)
		if bad != nil {
			return nil, bad, nil
		}
		id := data[:len(data)-len(value)]
		if d.Kind == kindMap {
			rest, bad, err = d.mapEntries(id, value, f)
		} else if rest, bad = d.skipValue(value); bad == nil {
			err = f(id, value[:len(value)-len(rest)])
		}
		if bad != nil || err != nil {
			return nil, bad, err
		}
		if count > 1 && len(rest) == len(data) { // one key at most takes no bytes
			return nil, fmt.Errorf("%d entries that take no bytes", count), nil
		}
		data = rest
	}
	return data, nil, nil
}

// mapEntries gives f those of one key's map.
func (d *declared) mapEntries(key, data []byte, f func(id, value []byte) error) (rest []byte, bad, err error) {
	count, data, bad := readCount(data)
	if bad != nil {
		return nil, bad, nil
	}
	user, id := d.parts[len(d.parts)-1], slices.Clone(key)
	for range count {
		value, bad := user.Skip(data)
		if bad != nil {
			return nil, fmt.Errorf("key in the map: %w", bad), nil
		}
		rest, bad := d.skipValue(value)
		if bad != nil {
			return nil, bad, nil
		}
		if count > 1 && len(rest) == len(data) {
			return nil, fmt.Errorf("%d entries of a map that take no bytes", count), nil
		}
		id = append(id[:len(key)], data[:len(data)-len(value)]...)
		if err := f(id, value[:len(value)-len(rest)]); err != nil {
			return nil, nil, err
		}
		data = rest
	}
	return data, nil, nil
}

func readCount(data []byte) (n uint64, rest []byte, err error) {
	n, size := binary.Uvarint(data)
	if size <= 0 {
		return 0, data, fmt.Errorf("truncated entry count")
	}
	return n, data[size:], nil
}

// idJSON is what an entry is found by: the key alone, or a list of the key and the parts behind it.
func (d *declared) idJSON(id []byte) (json.RawMessage, error) {
	text, rest, err := d.keys.JSON(id)
	if err != nil || d.single() {
		return text, err
	}
	out := append([]byte("["), text...)
	for _, p := range d.parts {
		if text, rest, err = p.JSON(rest); err != nil {
			return nil, err
		}
		out = append(append(out, ','), text...)
	}
	return append(out, ']'), nil
}

// entryJSON is one of the entries of a key: an object of its parts behind the key, and the value. rest is the id without the key.
func (d *declared) entryJSON(rest, value []byte) (json.RawMessage, error) {
	out := []byte("{")
	add := func(name string, text []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), name...), `":`...)
		out = append(out, text...)
	}
	for _, p := range d.parts {
		text, behind, err := p.JSON(rest)
		if err != nil {
			return nil, err
		}
		add(p.name, text)
		rest = behind
	}
	if d.values != nil {
		text, _, err := d.values.JSON(value)
		if err != nil {
			return nil, err
		}
		add("value", text)
	}
	return append(out, '}'), nil
}

// entries cuts a key group into its entries, of each state in turn.
func (o *operator) entries(data []byte, f func(state int, key, value []byte) error, damage func(error) error) error {
	for n := range o.states {
		d := &o.states[n]
		rest, bad, err := d.entries(data, func(id, value []byte) error { return f(n, id, value) })
		if bad != nil {
			return damage(fmt.Errorf("state %s: %w", d.Name, bad))
		}
		if err != nil {
			return err
		}
		data = rest
	}
	if len(data) > 0 {
		return damage(fmt.Errorf("%d bytes are left over", len(data)))
	}
	return nil
}
