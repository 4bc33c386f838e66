package lsm

import (
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weirstream/weir/internal/cached"
)

// view is a store as it was at one moment.
type view struct {
	store *Store
	snap  *pebble.Snapshot
}

// View implements cached.Store.
func (s *Store) View() cached.View { return &view{s, s.db.NewSnapshot()} }

// Close lets go of the view.
func (v *view) Close() error { return v.store.fault(v.snap.Close()) }

// Get is that of the store.
func (v *view) Get(key []byte) (value []byte, done io.Closer, err error) {
	value, done, err = v.snap.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil, nil
	}
	return value, done, v.store.fault(err)
}

// Range calls f for the entries from lower up to but without upper, in order, until f returns an error, which it returns. Key and value are good until f
// returns.
func (v *view) Range(lower, upper []byte, f func(key, value []byte) error) (err error) {
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return v.store.fault(err)
	}
	defer func() {
		if e := it.Close(); err == nil {
			err = v.store.fault(e)
		}
	}()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return v.store.fault(err)
		}
		if err := f(it.Key(), value); err != nil {
			return err
		}
	}
	return nil
}
