package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Migration says how values of an older type become values of a newer one; see Migrate.
//
// A migration is for changes that the rules of Resolve do not cover: another type under the same name, a field that is computed from
// others. Values are read by the rules where they suffice, so a migration is asked only for
//
//   - values that were written with exactly the schema of its old type, and
//   - values that today's type cannot read, and its old type can by the rules.
//
// Several migrations make a chain over versions: one from V1 to V2 and one from V2 to today's V3 read state of all three. What was converted is
// written with today's type from the next checkpoint on, so a migration can be taken away when no checkpoint or savepoint is needed any more that
// was written before.
type Migration struct {
	from, to reflect.Type
	schema   string // of from
	err      error

	// one and many find out how values, or slices of them, that were written with a schema are decoded as the old type.
	one  func(written string) (decodeAny, error)
	many func(written string) (decodeAny, error)
	// convert makes a value of type to from one of type from.
	convert func(old any) (any, error)
}

// decodeAny reads a value, or a slice as []any, from the start of src.
type decodeAny func(src []byte) (v any, rest []byte, err error)

// Migrate converts each stored value by a function, which is called on the task's goroutine, or beside it, when the value is read: at a restore,
// or, where values stay encoded, when they are first used. It must give the same result each time, and must not keep what it gets.
func Migrate[Old, New any](convert func(Old) New) Migration {
	if convert == nil {
		return TryMigrate[Old, New](nil)
	}
	return TryMigrate(func(old Old) (New, error) { return convert(old), nil })
}

// TryMigrate is Migrate with a function that may find a value that it cannot convert: then the restore fails, and so does the job.
func TryMigrate[Old, New any](convert func(Old) (New, error)) Migration {
	m := Migration{from: reflect.TypeFor[Old](), to: reflect.TypeFor[New]()}
	one, err := For[Old]()
	if err != nil {
		m.err = err
		return m
	}
	if convert == nil {
		m.err = errors.New("it has no function: give one to Migrate")
		return m
	}
	m.schema = one.Schema()
	m.one = func(written string) (decodeAny, error) { return decoder(one, written, func(v Old) any { return v }) }
	m.many = func(written string) (decodeAny, error) {
		all, err := For[[]Old]()
		if err != nil {
			return nil, err
		}
		return decoder(all, written, func(list []Old) any {
			out := make([]any, len(list))
			for i, v := range list {
				out[i] = v
			}
			return out
		})
	}
	m.convert = func(old any) (any, error) { return convert(old.(Old)) }
	return m
}

// decoder reads values that were written with a schema as those of c, and boxes them.
func decoder[T any](c Codec[T], written string, box func(T) any) (decodeAny, error) {
	resolved, err := Resolve(c, written)
	if err != nil {
		return nil, err
	}
	return func(src []byte) (any, []byte, error) {
		v, rest, err := resolved.Decode(src)
		if err != nil {
			return nil, src, err
		}
		return box(v), rest, nil
	}, nil
}

// migrations are those of one state, whose values are of type to and have the given schema today.
type migrations struct {
	to     reflect.Type
	schema string
	list   []Migration
}

// newMigrations checks that each migration leads to today's type, and that no two are for the same schema.
func newMigrations[V any](schema string, list []Migration) (*migrations, error) {
	ms := &migrations{to: reflect.TypeFor[V](), schema: schema, list: list}
	seen := map[string]bool{}
	for _, m := range list {
		if m.err != nil {
			return nil, fmt.Errorf("migration from %s to %s: %w", m.from, m.to, m.err)
		}
		if m.schema == schema || seen[m.schema] {
			return nil, fmt.Errorf("migration from %s to %s: another type of this state has the schema %q too, so stored values of the two cannot be told apart: name a field otherwise",
				m.from, m.to, m.schema)
		}
		seen[m.schema] = true
		if _, err := ms.path(m); err != nil {
			return nil, err
		}
	}
	return ms, nil
}

// path are the migrations from m to today's type.
func (ms *migrations) path(m Migration) ([]Migration, error) {
	out := []Migration{m}
	for m.to != ms.to {
		next := -1
		for i := range ms.list {
			if ms.list[i].from == m.to {
				next = i
			}
		}
		if next < 0 || len(out) > len(ms.list) {
			return nil, fmt.Errorf("migration from %s to %s: no migration leads from there to %s, the type of the state", m.from, m.to, ms.to)
		}
		m = ms.list[next]
		out = append(out, m)
	}
	return out, nil
}

// converts are the schemas of the old types.
func (ms *migrations) converts() []string {
	var out []string
	for _, m := range ms.list {
		out = append(out, m.schema)
	}
	return out
}

// exact gives the migrations for state that was written with exactly the schema of an old type; nil: there are none.
func (ms *migrations) exact(written string) []Migration {
	for _, m := range ms.list {
		if m.schema == written {
			path, _ := ms.path(m) // newMigrations has seen that there is one
			return path
		}
	}
	return nil
}

// byRules gives the migrations for state that the first old type in order can read by the rules.
func (ms *migrations) byRules(written string) []Migration {
	for _, m := range ms.list {
		if Reads(written, m.schema) == nil {
			path, _ := ms.path(m)
			return path
		}
	}
	return nil
}

// choose says how to read what was written with a schema: by migrations, or, when there are none, as today's type, with what today says to that.
func choose[C any](ms *migrations, written string, today func() (C, error), migrated func([]Migration) (C, error)) (C, error) {
	if path := ms.exact(written); path != nil {
		return migrated(path)
	}
	c, err := today()
	if err == nil {
		return c, nil
	}
	if path := ms.byRules(written); path != nil {
		return migrated(path)
	}
	return c, fmt.Errorf("%w (no migration takes it either: they take %q)", err, ms.converts())
}

// through converts a value by each of the migrations in turn.
func through(path []Migration, v any) (any, error) {
	for _, m := range path {
		var err error
		if v, err = m.convert(v); err != nil {
			return nil, fmt.Errorf("migrate %s to %s: %w", m.from, m.to, err)
		}
	}
	return v, nil
}

// Migrating returns a codec that reads what migrations convert, beside what c reads by the rules, and encodes as c. It refuses migrations that do not
// lead to V, and two types with one schema, whose values could not be told apart. Migrations that c has already stay.
func Migrating[V any](c Codec[V], list []Migration) (Codec[V], error) {
	if before, ok := c.(migrating[V]); ok {
		c, list = before.Codec, slices.Concat(before.migrations.list, list)
	}
	ms, err := newMigrations[V](c.Schema(), list)
	if err != nil {
		return nil, err
	}
	return migrating[V]{c, ms}, nil
}

// MigratingElements is Migrating for slices whose elements, with the given schema today, are converted one by one.
func MigratingElements[E any](c Codec[[]E], element string, list []Migration) (Codec[[]E], error) {
	if before, ok := c.(migratingElements[E]); ok {
		c, list = before.Codec, slices.Concat(before.migrations.list, list)
	}
	ms, err := newMigrations[E](element, list)
	if err != nil {
		return nil, err
	}
	return migratingElements[E]{c, ms}, nil
}

// Converts are the schemas of the old types that c has migrations for, which are of elements after MigratingElements.
func Converts[V any](c Codec[V]) []string {
	if m, ok := c.(interface{ Converts() []string }); ok {
		return m.Converts()
	}
	return nil
}

// migrating is a codec with migrations.
type migrating[V any] struct {
	Codec[V]
	migrations *migrations
}

// ResolveSchema implements Resolver.
func (c migrating[V]) ResolveSchema(written string) (Codec[V], error) {
	return choose(c.migrations, written,
		func() (Codec[V], error) { return Resolve(c.Codec, written) },
		func(path []Migration) (Codec[V], error) {
			decode, err := path[0].one(written)
			return migrated[V]{c.Codec, path, decode}, err
		})
}

// Converts is what Converts of the package gives.
func (c migrating[V]) Converts() []string { return c.migrations.converts() }

// migratingElements is a codec of slices with migrations of their elements.
type migratingElements[E any] struct {
	Codec[[]E]
	migrations *migrations
}

// ResolveSchema implements Resolver.
func (c migratingElements[E]) ResolveSchema(written string) (Codec[[]E], error) {
	today := func() (Codec[[]E], error) { return Resolve(c.Codec, written) }
	element, ok := strings.CutPrefix(written, "[]")
	if !ok {
		return today()
	}
	return choose(c.migrations, element, today, func(path []Migration) (Codec[[]E], error) {
		decode, err := path[0].many(written)
		return migratedList[E]{c.Codec, path, decode}, err
	})
}

// Converts is what Converts of the package gives.
func (c migratingElements[E]) Converts() []string { return c.migrations.converts() }

// migrated decodes values of an older type. It encodes as today.
type migrated[V any] struct {
	Codec[V]
	path   []Migration
	decode decodeAny
}

// Decode implements Codec.
func (c migrated[V]) Decode(src []byte) (v V, rest []byte, err error) {
	old, rest, err := c.decode(src)
	if err != nil {
		return v, src, err
	}
	today, err := through(c.path, old)
	if err != nil {
		return v, src, err
	}
	v, _ = today.(V) // a nil interface value stays nil
	return v, rest, nil
}

// migratedList decodes lists whose elements are of an older type. It encodes as today.
type migratedList[E any] struct {
	Codec[[]E]
	path   []Migration
	decode decodeAny
}

// Decode implements Codec.
func (c migratedList[E]) Decode(src []byte) ([]E, []byte, error) {
	old, rest, err := c.decode(src)
	if err != nil {
		return nil, src, err
	}
	elements := old.([]any)
	if len(elements) == 0 && isNil(src) {
		return nil, rest, nil
	}
	out := make([]E, len(elements))
	for i, e := range elements {
		today, err := through(c.path, e)
		if err != nil {
			return nil, src, fmt.Errorf("element %d: %w", i+1, err)
		}
		out[i], _ = today.(E)
	}
	return out, rest, nil
}

// isNil tells whether an encoded slice is nil.
func isNil(src []byte) bool {
	n, size := binary.Uvarint(src)
	return size > 0 && n == 0
}
