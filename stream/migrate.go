package stream

import (
	"github.com/weirstream/weir/stream/codec"
)

// Migration says how state of an older type becomes state of a newer one. Make it with Migrate or TryMigrate, and attach it to the declaration of a
// state with the declaration's method Migrate.
//
// A migration is for changes that the rules of codec.Resolve do not cover: another type under the same name, a field that is computed from others.
// State is read by the rules where they suffice, so a migration is asked only for
//
//   - state that was written with exactly the schema of its old type, and
//   - state that today's type cannot read, and its old type can by the rules.
//
// Several migrations make a chain over versions: one from V1 to V2 and one from V2 to today's V3 read state of all three. What was converted is
// written with today's type from the next checkpoint on, so a migration can be taken away when no checkpoint or savepoint is needed any more that
// was written before. Keys cannot be migrated: state is found by their hash.
type Migration = codec.Migration

// Migrate converts each stored value, or element of a list, by a function. It is called on the task's goroutine, or beside it, when the value is read:
// at a restore, or, where values stay encoded, when they are first used. It must give the same result each time, and must not keep what it gets.
func Migrate[Old, New any](convert func(Old) New) Migration { return codec.Migrate(convert) }

// TryMigrate is Migrate with a function that may find a value that it cannot convert: then the restore fails, and so does the job.
func TryMigrate[Old, New any](convert func(Old) (New, error)) Migration {
	return codec.TryMigrate(convert)
}

// attach puts migrations on c, unless the declaration is wrong already.
func attach[V any](c *codec.Codec[V], err *error, list []Migration) {
	if *err != nil {
		return
	}
	m, wrong := codec.Migrating(*c, list)
	if wrong != nil {
		*err = wrong
		return
	}
	*c = m
}

// Migrate attaches migrations and returns s: stored values may be of their old types. See Migration.
func (s *Value[K, V]) Migrate(migrations ...Migration) *Value[K, V] {
	attach(&s.codec, &s.err, migrations)
	return s
}

// Migrate attaches migrations and returns s: what is stored may be of their old types. See Migration.
func (s *Reducing[K, V]) Migrate(migrations ...Migration) *Reducing[K, V] {
	attach(&s.codec, &s.err, migrations)
	return s
}

// Migrate attaches migrations and returns s: stored accumulators may be of their old types. See Migration.
func (s *Aggregating[K, In, Acc, Out]) Migrate(migrations ...Migration) *Aggregating[K, In, Acc, Out] {
	attach(&s.codec, &s.err, migrations)
	return s
}

// Migrate attaches migrations, of elements, and returns s: stored elements may be of their old types. See Migration.
func (s *List[K, E]) Migrate(migrations ...Migration) *List[K, E] {
	if s.err != nil {
		return s
	}
	attach(&s.elements, &s.err, migrations)
	if s.err != nil {
		return s
	}
	list := s.codec.(listCodec[E])
	if list.Codec, s.err = codec.MigratingElements(list.Codec, list.element, migrations); s.err == nil {
		s.codec = list
	}
	return s
}

// Migrate attaches migrations and returns s: stored elements may be of their old types. See Migration.
func (s *ListState[E]) Migrate(migrations ...Migration) *ListState[E] {
	attach(&s.codec, &s.err, migrations)
	return s
}

// Migrate attaches migrations, of values, and returns s: stored values may be of their old types. See Migration.
func (s *BroadcastState[K, V]) Migrate(migrations ...Migration) *BroadcastState[K, V] {
	attach(&s.values, &s.err, migrations)
	return s
}

// Migrate attaches migrations, of values, and returns s: stored values may be of their old types. See Migration.
func (s *MapState[K, U, V]) Migrate(migrations ...Migration) *MapState[K, U, V] {
	attach(&s.codec, &s.err, migrations)
	return s
}
