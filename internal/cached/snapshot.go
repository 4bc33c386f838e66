package cached

import (
	"errors"
	"sync"

	"github.com/weirstream/weir/internal/job"
)

// Snapshot is the state of an operator at one moment. It may be read from any goroutine until it is released, and waits for the seal when it is read.
type Snapshot struct {
	link bool // files are wanted
	done <-chan struct{}

	mu struct {
		sync.Mutex
		released bool
		view     View
		linked   Linked
		err      error
	}
}

// Snapshot freezes the state, in microseconds. With link the snapshot has files, too.
func (o *Operator) Snapshot(link bool) (*Snapshot, error) {
	if o.failed == nil {
		o.failed = o.reaped()
	}
	if o.failed != nil {
		return nil, o.failure()
	}
	s := &Snapshot{link: link}
	f, err := o.freeze(s)
	if err != nil {
		return nil, err
	}
	s.done = f.done
	return s, nil
}

// reaped is reap with an error in the place of a panic.
func (o *Operator) reaped() (err error) {
	defer func() {
		if f, ok := recover().(*Failure); ok {
			err = f.Err
		}
	}()
	o.reap(false)
	return nil
}

// prepared is called when the seal has ended: the store is now what the snapshot is.
func (s *Snapshot) prepared(store Store, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.err = err; err != nil || s.mu.released {
		return
	}
	s.mu.view = store.View()
	if s.link {
		s.mu.linked, s.mu.err = store.Link()
	}
}

// Files are the state in the form of the store.
func (s *Snapshot) Files() ([]File, error) {
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.mu.err != nil:
		return nil, s.mu.err
	case s.mu.linked == nil:
		return nil, errors.New("the snapshot has no files, or is released")
	}
	return s.mu.linked.Files(), nil
}

// view is what the store had. It is good until the release.
func (s *Snapshot) view() (View, error) {
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.err == nil && s.mu.released {
		return nil, errors.New("a snapshot is read after its release")
	}
	return s.mu.view, s.mu.err
}

// Release lets go of the snapshot. It may be called from any goroutine and more than once, when nobody reads it any more.
func (s *Snapshot) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.released = true
	if s.mu.view != nil {
		_ = s.mu.view.Close() // what was read of it was read well
		s.mu.view = nil
	}
	if s.mu.linked != nil {
		_ = s.mu.linked.Remove() // it goes with the operator's directory
		s.mu.linked = nil
	}
}

// Rows is a table in a Snapshot.
type Rows[K comparable, V any] struct {
	table *Table[K, V] // of which only what never changes is looked at
	snap  *Snapshot
}

// In is the table in a snapshot of its operator.
func (t *Table[K, V]) In(s *Snapshot) *Rows[K, V] { return &Rows[K, V]{t, s} }

// Groups is the range of key groups.
func (r *Rows[K, V]) Groups() job.KeyGroupRange { return r.table.op.cfg.Groups }

// Get returns what key had.
func (r *Rows[K, V]) Get(hash uint64, key K) (v V, ok bool, err error) {
	view, err := r.snap.view()
	if err != nil {
		return v, false, err
	}
	at, err := r.table.storeKey(nil, job.KeyGroupOf(hash, r.table.op.cfg.MaxParallelism), key)
	if err != nil {
		return v, false, err
	}
	data, done, err := view.Get(at)
	if err != nil || done == nil {
		return v, false, err
	}
	v, err = r.table.decode(data)
	return v, err == nil, errors.Join(err, done.Close())
}

// Range calls f for each entry of a key group, by their encoding, until f returns an error, which it returns.
func (r *Rows[K, V]) Range(group int, f func(key K, v V) error) error {
	view, err := r.snap.view()
	if err != nil {
		return err
	}
	lower := r.table.groupPrefix(group)
	return view.Range(lower, after(lower), func(at, data []byte) error {
		key, v, err := r.table.decodeRow(at, data)
		if err != nil {
			return err
		}
		return f(key, v)
	})
}

// ReleaseGroup does nothing: what is frozen on disk costs the table nothing.
func (r *Rows[K, V]) ReleaseGroup(int) {}

// Release does nothing: the snapshot is released by who took it.
func (r *Rows[K, V]) Release() {}

// after is the least key that does not begin with prefix.
func after(prefix []byte) []byte {
	out := append([]byte(nil), prefix...)
	for i := len(out) - 1; i >= 0; i-- {
		if out[i]++; out[i] != 0 {
			return out
		}
	}
	return append(append([]byte(nil), prefix...), 0xff) // no key group is so high
}
