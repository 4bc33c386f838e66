package cached

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/state"
)

// seal is what was written in some generations, on its way into the store.
type seal struct {
	after, until uint32   // generations, the second one included
	bare         bool     // the store is empty
	tables       []frozen // those with changes
	snapshot     *Snapshot
	err          error // known when done is closed
	done         chan struct{}
}

// frozen is the changes of a table.
type frozen interface {
	// collect appends those of a key group, in any order.
	collect(group int, b *batch) error
	release()
}

func (s *seal) release() {
	for _, t := range s.tables {
		t.release()
	}
}

// runSealer works off seals in their order. After an error it does nothing more, and each seal has that error.
func (o *Operator) runSealer() {
	// What it does is ended by the end of the jobs, which Close sees to.
	ctx := context.Background()
	var failed error
	for s := range o.jobs {
		if failed == nil {
			failed = o.seal(ctx, s)
		}
		s.release()
		s.err = failed
		if s.snapshot != nil {
			s.snapshot.prepared(o.store, failed)
		}
		close(s.done)
		for more := len(s.tables) > 0; more && failed == nil && len(o.jobs) == 0 && !o.closing.Load(); {
			more, failed = o.store.Tidy(ctx)
		}
	}
}

// seal writes what was frozen, key group by key group.
func (o *Operator) seal(ctx context.Context, s *seal) error {
	if len(s.tables) == 0 {
		return nil
	}
	var b batch
	rows := 0
	written, err := o.store.Write(ctx, func(w Writer) error {
		for group := o.cfg.Groups.Start; group < o.cfg.Groups.End; group++ {
			b.reset()
			for _, t := range s.tables { // ascending by id
				from := len(b.rows)
				if err := t.collect(group, &b); err != nil {
					return err
				}
				b.sort(from)
			}
			rows += len(b.rows)
			if err := b.write(w); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	c := &o.backend.stats
	c.seals.Add(1)
	c.rows.Add(int64(rows))
	c.written.Add(written)
	return nil
}

// batch is the changes of a key group.
type batch struct {
	data []byte
	rows []batchRow
}

type batchRow struct {
	first   uint64 // bytes of the key behind the prefix
	at      int    // of the key in data
	value   int    // where the key ends
	end     int
	deleted bool
}

func (b *batch) reset() { b.data, b.rows = b.data[:0], b.rows[:0] }

func (b *batch) keyOf(r *batchRow) []byte { return b.data[r.at:r.value] }

// sort orders the rows from one on.
func (b *batch) sort(from int) {
	for i := from; i < len(b.rows); i++ {
		r := &b.rows[i]
		var first [8]byte
		copy(first[:], b.keyOf(r)[prefixBytes:])
		r.first = binary.BigEndian.Uint64(first[:])
	}
	slices.SortFunc(b.rows[from:], func(x, y batchRow) int {
		if c := cmp.Compare(x.first, y.first); c != 0 {
			return c
		}
		return bytes.Compare(b.keyOf(&x), b.keyOf(&y))
	})
}

func (b *batch) write(w Writer) error {
	for i := range b.rows {
		r := &b.rows[i]
		var err error
		if r.deleted {
			err = w.Delete(b.keyOf(r))
		} else {
			err = w.Set(b.keyOf(r), b.data[r.value:r.end])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *Table[K, V]) id() uint32   { return binary.BigEndian.Uint32(t.prefix[2:]) }
func (t *Table[K, V]) name() string { return t.cfg.Name }
func (t *Table[K, V]) bytes() int64 { return int64(t.slots.Len()) * t.weight.of() }
func (t *Table[K, V]) entries() int { return t.slots.Len() }

// freeze returns what was written in later generations, or nil.
func (t *Table[K, V]) freeze(after uint32) (frozen, error) {
	if t.changed == 0 {
		return nil, nil
	}
	t.changed = 0
	f := &frozenTable[K, V]{table: t, rows: t.slots.Snapshot(), after: after, bare: t.op.bare}
	if t.cfg.Plain {
		return f, nil
	}
	defer f.release()
	groups := t.op.cfg.Groups
	e := encodedTable{first: groups.Start, groups: make([]batch, groups.Len())}
	for i := range e.groups {
		if err := f.collect(groups.Start+i, &e.groups[i]); err != nil {
			return nil, err
		}
	}
	return e, nil
}

type frozenTable[K comparable, V any] struct {
	table *Table[K, V] // of which only what never changes is looked at
	rows  *state.Snapshot[K, slot[V]]
	after uint32
	bare  bool // nothing is in the store that could be deleted
}

func (f *frozenTable[K, V]) collect(group int, b *batch) error {
	return f.rows.Range(group, func(key K, s slot[V]) (err error) {
		if s.mark <= f.after || s.absent && f.bare {
			return nil
		}
		r := batchRow{at: len(b.data), deleted: s.absent}
		if b.data, err = f.table.storeKey(b.data, group, key); err != nil {
			return err
		}
		r.value = len(b.data)
		if !s.absent {
			if b.data, err = f.table.cfg.Values.Append(b.data, s.value); err != nil {
				return fmt.Errorf("encode the value of key %v of state %s: %w", key, f.table.cfg.Name, err)
			}
		}
		r.end = len(b.data)
		b.rows = append(b.rows, r)
		return nil
	})
}

func (f *frozenTable[K, V]) release() { f.rows.Release() }

// encodedTable is changes that were encoded when they were frozen.
type encodedTable struct {
	first  int
	groups []batch
}

func (e encodedTable) collect(group int, b *batch) error {
	from := &e.groups[group-e.first]
	at := len(b.data)
	b.data = append(b.data, from.data...)
	for _, r := range from.rows {
		r.at, r.value, r.end = r.at+at, r.value+at, r.end+at
		b.rows = append(b.rows, r)
	}
	return nil
}

func (encodedTable) release() {}

// evict drops some entries that are in the store as they are here, from where it ended the last time.
func (t *Table[K, V]) evict(limit int) int {
	t.victims = t.victims[:0]
	t.hand = t.slots.Sweep(t.hand, limit, t.look)
	for _, v := range t.victims {
		t.slots.Delete(v.hash, v.key)
	}
	n := len(t.victims)
	clear(t.victims)
	if cap(t.victims) > maxVictims {
		t.victims = nil
	}
	return n
}

// maxVictims is how much room for victims is kept.
const maxVictims = 1024

// consider chooses an entry to be dropped, unless it is not sealed or was used since it was last looked at.
func (t *Table[K, V]) consider(key K, s slot[V]) {
	if s.mark > t.op.sealed {
		return
	}
	hash := t.cfg.Hash(key)
	if !t.recent.forget(hash) {
		t.victims = append(t.victims, victim[K]{hash, key})
	}
}
