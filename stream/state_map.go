package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/weirstream/weir/internal/linked"
	"github.com/weirstream/weir/stream/codec"
)

// MapState is a state that holds a map for each key. Each of its entries is stored by itself, so that what an entry costs does not depend on how large the map
// is, and going through the map of one key touches no other. What a value refers to must not be changed once it was put: put another value.
type MapState[K, U comparable, V any] struct {
	declaration[K, V]
	users       userKeys[U]
	expiringMap expiringMap[K, U, V] // nil: entries live for ever; see cell
}

// userKeys is what there is to know of the keys in the maps.
type userKeys[U comparable] struct {
	codec codec.Codec[U]
	hash  func(U) uint64
}

// NewMap declares a map state, whose maps have keys of type U, which may be what a key may be, and values of type V. The name is part of the checkpoint:
// it must stay the same between versions.
func NewMap[K, U comparable, V any](name string) *MapState[K, U, V] {
	s := &MapState[K, U, V]{declaration: declare[K, V](name, kindMap)}
	hash, err := codec.Hash[U]()
	if err == nil {
		s.users.hash = hash
		s.users.codec, err = codec.For[U]()
	}
	if err != nil && s.err == nil {
		s.err = fmt.Errorf("keys of the maps: %w", err)
	}
	return s
}

// Get returns what the map of the current key has for u.
func (s *MapState[K, U, V]) Get(c *Context[K], u U) (V, bool) {
	if s.expiringMap != nil {
		return s.expiringMap.get(c, u)
	}
	return mapOf[U](&s.declaration, c).Get(c.hash, c.key, u)
}

// Contains tells whether the map of the current key has an entry for u.
func (s *MapState[K, U, V]) Contains(c *Context[K], u U) bool {
	_, ok := s.Get(c, u)
	return ok
}

// Put sets what the map of the current key has for u. A new entry goes behind the others; one that is there stays where it is.
func (s *MapState[K, U, V]) Put(c *Context[K], u U, v V) {
	if s.expiringMap != nil {
		s.expiringMap.put(c, u, v)
		return
	}
	mapOf[U](&s.declaration, c).Put(c.hash, c.key, u, v)
}

// Delete takes an entry away, if it is there.
func (s *MapState[K, U, V]) Delete(c *Context[K], u U) {
	if s.expiringMap != nil {
		s.expiringMap.delete(c, u)
		return
	}
	mapOf[U](&s.declaration, c).Delete(c.hash, c.key, u)
}

// Len is the number of entries of the current key. It costs the same for any number, but for a state whose entries expire, where all are looked at.
func (s *MapState[K, U, V]) Len(c *Context[K]) int {
	if s.expiringMap != nil {
		return s.expiringMap.length(c)
	}
	return mapOf[U](&s.declaration, c).Len(c.hash, c.key)
}

// All goes through the entries of the current key that were there when it began, in the order in which they were put first. The map may be changed meanwhile:
// what is deleted before it is reached is left out, and what is put anew is not reached.
func (s *MapState[K, U, V]) All(c *Context[K]) iter.Seq2[U, V] {
	if s.expiringMap != nil {
		return s.expiringMap.all(c)
	}
	return mapOf[U](&s.declaration, c).All(c.hash, c.key)
}

// Clear takes all entries of the current key away.
func (s *MapState[K, U, V]) Clear(c *Context[K]) {
	if s.expiringMap != nil {
		s.expiringMap.clear(c)
		return
	}
	mapOf[U](&s.declaration, c).Clear(c.hash, c.key)
}

func (s *MapState[K, U, V]) bind(index int, operator string) error {
	if err := s.declaration.bind(index, operator); err != nil {
		return err
	}
	if s.expiringMap != nil {
		s.expiringMap.bind(&s.declaration)
	}
	return nil
}

func (s *MapState[K, U, V]) newTable(env *Env, op *operatorContext, keys keyForm[K]) table {
	if s.expiringMap != nil {
		return s.expiringMap.newTable(env, op, keys, s.users)
	}
	return newMapTable(env, op, &s.declaration, keys, s.users)
}

// mapOf is the maps of a state in the subtask that c belongs to.
func mapOf[U, K comparable, V any](d *declaration[K, V], c *Context[K]) *linked.Map[K, U, V] {
	if d.index < len(c.tables) {
		if t, ok := c.tables[d.index].(*mapTable[K, U, V]); ok && t.of == d {
			return t.Map
		}
	}
	panic(d.foreign())
}

// mapTable is the maps of all keys of one subtask: V is what is stored for an entry.
type mapTable[K, U comparable, V any] struct {
	*linked.Map[K, U, V]
	of             *declaration[K, V]
	keys           keyForm[K]
	users          userKeys[U]
	heads          rows[K, linked.Head[U]]
	entries        rows[linked.Member[K, U], linked.Entry[U, V]]
	maxParallelism int
	clock          *Clock
	passes         passes
	expired        []linked.Member[K, U]
}

func newMapTable[K, U comparable, V any](env *Env, op *operatorContext, of *declaration[K, V], keys keyForm[K], users userKeys[U]) *mapTable[K, U, V] {
	t := &mapTable[K, U, V]{of: of, keys: keys, users: users, maxParallelism: env.MaxParallelism, clock: op.clock}
	t.heads = newRows(env, rowsSpec[K, linked.Head[U]]{
		name: of.id + "/heads", keys: keys.codec, values: linked.HeadCodec[U]{Users: users.codec}, hash: keys.hash,
		plain: codec.Plain[K]() && codec.Plain[U](),
	})
	t.entries = newRows(env, rowsSpec[linked.Member[K, U], linked.Entry[U, V]]{
		name: of.id, keys: linked.MemberCodec[K, U]{Keys: keys.codec, Users: users.codec},
		values: linked.EntryCodec[U, V]{Users: users.codec, Values: of.codec},
		hash: func(m linked.Member[K, U]) uint64 {
			return linked.HashOf(keys.hash(m.Key), users.hash(m.User), env.MaxParallelism)
		},
		plain: codec.Plain[K]() && codec.Plain[U]() && of.plain,
	})
	cfg := linked.Config[K, U, V]{Heads: t.heads, Entries: t.entries, Hash: users.hash, MaxParallelism: env.MaxParallelism, OwnValue: of.own}
	if own := codec.Owned(users.codec); own != nil {
		cfg.OwnUser = func(u U) U {
			var nothing U
			return own(u, nothing)
		}
	}
	t.Map = linked.New(cfg)
	if of.ttl != nil {
		t.passes = newPasses(of.ttl)
		op.sweeps = append(op.sweeps, t)
	}
	return t
}

func (t *mapTable[K, U, V]) schema() StateSchema {
	s := StateSchema{Name: t.of.id, Kind: t.of.kind, ValueType: t.of.codec.Schema(), MapKeyType: t.users.codec.Schema()}
	t.keys.describe(&s)
	if t.of.ttl != nil {
		s.TTL = t.of.ttl.millis
	}
	return s
}

func (t *mapTable[K, U, V]) eachKey(f func(K) error) error {
	return t.heads.Range(func(key K, _ linked.Head[U]) error { return f(key) })
}

func (t *mapTable[K, U, V]) converts() []string { return codec.Converts(t.of.codec) }

func (t *mapTable[K, U, V]) check(written StateSchema) error {
	_, _, _, err := t.resolve(written)
	return err
}

func (t *mapTable[K, U, V]) resolve(written StateSchema) (keys codec.Codec[K], users codec.Codec[U], values codec.Codec[V], err error) {
	if err := sameKind(written, t.of.kind); err != nil {
		return nil, nil, nil, err
	}
	if keys, err = t.keys.read(written); err != nil {
		return nil, nil, nil, fmt.Errorf("key: %w", err)
	}
	if users, err = codec.ResolveKey(t.users.codec, written.MapKeyType); err != nil {
		return nil, nil, nil, fmt.Errorf("key of the maps: %w", err)
	}
	if values, err = t.of.read(written, t.clock.now); err != nil {
		return nil, nil, nil, fmt.Errorf("value: %w", err)
	}
	return keys, users, values, nil
}

func (t *mapTable[K, U, V]) snapshot() (tableSnapshot, error) {
	view := &mapSnapshot[K, U, V]{of: t, heads: t.heads.Snapshot(), entries: t.entries.Snapshot(), now: t.clock.now}
	if _, onDisk := t.heads.(*diskRows[K, linked.Head[U]]); onDisk || t.of.plain { // what is on disk is encoded already
		return view, nil
	}
	return encodeAll(view, view.heads.Groups())
}

// mapSnapshot is the tables of the maps as they were at one moment. Of the table it uses what never changes.
type mapSnapshot[K, U comparable, V any] struct {
	of      *mapTable[K, U, V]
	heads   rowsSnapshot[K, linked.Head[U]]
	entries rowsSnapshot[linked.Member[K, U], linked.Entry[U, V]]
	now     Timestamp
}

// appendGroup writes uvarint count, then for each key the key, uvarint count, and user keys and values in turn, in order.
func (s *mapSnapshot[K, U, V]) appendGroup(dst []byte, group int) ([]byte, error) {
	t := s.of
	view := linked.View[K, U, V]{Entries: s.entries, Hash: t.users.hash, MaxParallelism: t.maxParallelism}
	start, keys := len(dst), uint64(0)
	err := s.heads.Range(group, func(key K, head linked.Head[U]) (err error) {
		before := len(dst)
		if dst, err = t.keys.codec.Append(dst, key); err != nil {
			return fmt.Errorf("encode key: %w", err)
		}
		first, n := len(dst), uint64(0)
		err = view.Each(t.keys.hash(key), key, head, func(u U, v V) (err error) {
			if t.of.live != nil {
				if _, left := t.of.live(v, s.now); left == noneLive {
					return nil
				}
			}
			if dst, err = t.users.codec.Append(dst, u); err != nil {
				return fmt.Errorf("encode key in the map of key %v: %w", key, err)
			}
			if dst, err = t.of.codec.Append(dst, v); err != nil {
				return fmt.Errorf("encode value %v of key %v: %w", u, key, err)
			}
			n++
			return nil
		})
		if n == 0 {
			dst = dst[:before]
			return err
		}
		dst = insertCount(dst, first, n)
		keys++
		return err
	})
	return insertCount(dst, start, keys), err
}

func (s *mapSnapshot[K, U, V]) releaseGroup(group int) {
	s.heads.ReleaseGroup(group)
	s.entries.ReleaseGroup(group)
}

func (s *mapSnapshot[K, U, V]) release() {
	s.heads.Release()
	s.entries.Release()
}

func (t *mapTable[K, U, V]) restore(group int, written StateSchema, data []byte) ([]byte, error) {
	keys, users, values, err := t.resolve(written)
	if err != nil {
		return nil, Permanent(err)
	}
	n, size := binary.Uvarint(data)
	if size <= 0 {
		return nil, errors.New("truncated entry count")
	}
	data = data[size:]
	for range n {
		var key K
		if key, data, err = keys.Decode(data); err != nil {
			return nil, fmt.Errorf("decode key: %w", err)
		}
		hash := t.keys.hash(key)
		if err := inGroup(group, key, hash, t.maxParallelism); err != nil {
			return nil, err
		}
		data, err = readEntries(data, users, values, func(u U, v V) error {
			t.Put(hash, key, u, v)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("map of key %v: %w", key, err)
		}
	}
	return data, nil
}

// sweep implements sweeper.
func (t *mapTable[K, U, V]) sweep(now Timestamp) Timestamp {
	if now < t.passes.due {
		return t.passes.due
	}
	ended := t.entries.Sweep(sweepEntries, func(m linked.Member[K, U], e linked.Entry[U, V]) {
		if _, n := t.of.live(e.Value, now); n == noneLive {
			t.expired = append(t.expired, m)
		}
	})
	for _, m := range t.expired {
		hash := t.keys.hash(m.Key)
		if v, ok := t.Get(hash, m.Key, m.User); ok { // what was shown may be older
			if _, n := t.of.live(v, now); n == noneLive {
				t.Delete(hash, m.Key, m.User)
			}
		}
	}
	clear(t.expired)
	t.expired = t.expired[:0]
	return t.passes.next(now, ended)
}
