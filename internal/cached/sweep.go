package cached

import (
	"errors"

	"github.com/weirstream/weir/internal/job"
)

// sweep is where a table is gone through, bit by bit.
type sweep[K comparable, V any] struct {
	since uint32 // the generation in which the one before ended
	begun bool
	group int    // that is gone through
	at    []byte // what comes next in it; nil: its beginning
	rows  []row[K, V]
}

type row[K comparable, V any] struct {
	key K
	v   V
}

// sweepRows is how many rows are read at once.
const sweepRows = 256

var errEnough = errors.New("enough")

// Sweep calls f for about as many of the next entries as limit says, and reports whether it has come to the end; then it begins again. It goes through the
// store, so it waits, and shows nothing, until a seal has put everything there that was in memory at the end of the sweep before. What it shows may be
// older than what Get does. f must not change the table.
func (t *Table[K, V]) Sweep(limit int, f func(key K, v V)) (ended bool) {
	if t.op.attention {
		t.op.attend()
	}
	s := &t.sweep
	if !s.begun {
		if s.since == t.op.generation || t.op.sealed+1 < t.op.generation {
			return false
		}
		s.begun, s.group = true, t.op.cfg.Groups.Start
	}
	for limit > 0 {
		if len(s.rows) == 0 && !t.readRows() {
			*s = sweep[K, V]{since: t.op.generation}
			return true
		}
		n := min(limit, len(s.rows))
		for _, r := range s.rows[:n] {
			f(r.key, r.v)
		}
		s.rows = s.rows[n:]
		limit -= n
	}
	return false
}

// readRows reads the next rows; false: there are none.
func (t *Table[K, V]) readRows() bool {
	s := &t.sweep
	s.rows = nil
	if t.op.bare {
		return false
	}
	view := t.op.store.View()
	var err error
	for len(s.rows) == 0 && err == nil && s.group < t.op.cfg.Groups.End {
		prefix := t.groupPrefix(s.group)
		lower := prefix
		if s.at != nil {
			lower = s.at
		}
		err = view.Range(lower, after(prefix), func(at, data []byte) error {
			if len(s.rows) == sweepRows {
				s.at = append([]byte(nil), at...)
				return errEnough
			}
			key, v, err := t.decodeRow(at, data)
			s.rows = append(s.rows, row[K, V]{key, v})
			return err
		})
		if err == nil {
			s.group, s.at = s.group+1, nil
		}
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	if err = errors.Join(err, view.Close()); err != nil {
		t.op.fail(err)
	}
	return len(s.rows) > 0
}

// Groups is the range of key groups of the table.
func (t *Table[K, V]) Groups() job.KeyGroupRange { return t.op.cfg.Groups }
