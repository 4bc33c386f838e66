package lsm

import (
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// View is a store as it was at one moment. It must be closed.
type View struct {
	store *Store
	snap  *pebble.Snapshot
}

// View is the content of the store now.
func (s *Store) View() *View { return &View{s, s.db.NewSnapshot()} }

// Close lets go of the view.
func (v *View) Close() error { return v.store.fault(v.snap.Close()) }

// Get is that of the store.
func (v *View) Get(key []byte) (value []byte, done io.Closer, err error) {
	value, done, err = v.snap.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil, nil
	}
	return value, done, v.store.fault(err)
}

// Range calls f for the entries from lower up to but without upper, in order, until f returns an error, which it returns. Key and value are good until f
// returns.
func (v *View) Range(lower, upper []byte, f func(key, value []byte) error) (err error) {
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
