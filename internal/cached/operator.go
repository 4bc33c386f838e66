package cached

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirstream/weir/internal/job"
)

// OperatorConfig is what an Operator is made of.
type OperatorConfig struct {
	Groups         job.KeyGroupRange
	MaxParallelism int
	// Dir makes the operator's directory.
	Dir func() (string, error)
}

// Operator is the keyed state of one operator in one subtask: tables that are sealed together.
type Operator struct {
	backend *Backend
	cfg     OperatorConfig
	tables  []table // ascending by id
	store   Store   // nil: not open
	bare    bool    // nothing was ever written to the store
	scratch []byte

	generation uint32 // in which is written; the first is 1
	sealed     uint32 // up to which everything is in the store
	attention  bool   // the next call on a table has to look after something first
	unsealed   int64  // bytes that were written in this generation, about

	jobs    chan *seal
	pending []*seal // that were begun, and were not seen to have ended
	sealer  sync.WaitGroup
	closing atomic.Bool
	failed  error // why nothing works any more
}

// table is a Table of any type.
type table interface {
	id() uint32
	name() string
	bytes() int64
	freeze(after uint32) (frozen, error)
	evict(limit int) (dropped int)
	entries() int
}

// Failure is what methods of a table panic with when the store has failed.
type Failure struct{ Err error }

// Error is that of the store.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the store's error.
func (f *Failure) Unwrap() error { return f.Err }

// maxSeals bounds the seals that wait for those before them; a task makes no more snapshots at a time, and one seal for itself.
const maxSeals = 8

// NewOperator returns an operator without tables. It must be closed.
func (b *Backend) NewOperator(cfg OperatorConfig) *Operator {
	return &Operator{backend: b, cfg: cfg, bare: true, generation: 1, jobs: make(chan *seal, maxSeals)}
}

func (o *Operator) add(t table) {
	for _, other := range o.tables {
		if other.id() == t.id() && o.failed == nil {
			o.failed = fmt.Errorf("states %s and %s cannot be in one operator, because their names have the same hash: call one of them another name", other.name(), t.name())
		}
	}
	o.tables = append(o.tables, t)
	slices.SortStableFunc(o.tables, func(a, b table) int { return int(int64(a.id()) - int64(b.id())) })
}

// Open makes an empty store, unless there is one already; it is made at the latest when something has to be sealed. Errors of the disk are a *Failure here, too.
func (o *Operator) Open() error {
	if o.store != nil || o.failed != nil {
		return o.failure()
	}
	return o.start(o.backend.disk.Open)
}

func (o *Operator) failure() error {
	if o.failed == nil {
		return nil
	}
	return &Failure{o.failed}
}

// Restore makes the store of parts of others, in the place of Open.
func (o *Operator) Restore(ctx context.Context, parts []Part) error {
	if o.store != nil && o.failed == nil {
		o.failed = errors.New("state is restored into an operator that is open")
	}
	if o.failed != nil {
		return o.failure()
	}
	if err := o.start(func(dir string) (Store, error) { return o.backend.disk.Restore(ctx, dir, parts) }); err != nil {
		return err
	}
	o.bare = false
	return nil
}

func (o *Operator) start(open func(dir string) (Store, error)) error {
	dir, err := o.cfg.Dir()
	if err == nil {
		o.store, err = open(dir)
	}
	if err != nil {
		o.store, o.failed = nil, err
		return o.failure()
	}
	o.backend.join(1)
	o.sealer.Go(o.runSealer)
	return nil
}

// Import makes an empty store, unless there is one already, and lets f take over what it wants of a part of another one.
func (o *Operator) Import(ctx context.Context, p Part, f func(View) error) (err error) {
	if err := o.Open(); err != nil {
		return err
	}
	dir, err := o.cfg.Dir()
	if err != nil {
		return err
	}
	dir = filepath.Join(dir, "imported")
	other, err := o.backend.disk.Restore(ctx, dir, []Part{p})
	if err != nil {
		return &Failure{err}
	}
	view := other.View()
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(*Failure)
			if !ok {
				panic(r)
			}
			err = f
		}
		if e := errors.Join(view.Close(), other.Close(), os.RemoveAll(dir)); err == nil && e != nil {
			err = &Failure{e}
		}
	}()
	return f(view)
}

// Close ends the store, after the seals that were begun. Snapshots must be released.
func (o *Operator) Close() error {
	if o.store == nil {
		return nil
	}
	o.closing.Store(true)
	close(o.jobs)
	o.sealer.Wait()
	err := o.store.Close()
	o.store, o.failed = nil, errClosed
	o.backend.join(-1)
	if err != nil {
		return &Failure{err}
	}
	return nil
}

var errClosed = errors.New("the state of the operator is closed")

// fail ends the work of the task.
func (o *Operator) fail(err error) {
	if o.failed == nil {
		o.failed = err
	}
	o.attention = true
	panic(&Failure{o.failed})
}

// limit is how many bytes entries in memory may take. What is written while a seal goes on is there twice.
func (o *Operator) limit() int64 { return o.backend.share.Load() * 3 / 4 }

// hard is where a task waits for room.
func (o *Operator) hard() int64 { return o.backend.share.Load() * 7 / 8 }

func (o *Operator) sealAt() int64 { return o.backend.share.Load() / 4 }

// changed notes that so many bytes wait for a seal, more than before.
func (o *Operator) changed(bytes int64) {
	o.unsealed += bytes
	if o.unsealed >= o.sealAt() {
		o.attention = true
	}
}

// grown notes that something came into memory.
func (o *Operator) grown(int64) {
	if o.bytes() > o.limit() {
		o.attention = true
	}
}

func (o *Operator) bytes() (n int64) {
	for _, t := range o.tables {
		n += t.bytes()
	}
	return n
}

// evictWork is how many entries are looked at for one that comes in.
const evictWork = 48

// attend does what has become due: seals, and makes room.
func (o *Operator) attend() {
	o.attention = false
	if o.failed != nil {
		o.fail(o.failed)
	}
	o.reap(false)
	if o.unsealed >= o.sealAt() && len(o.pending) == 0 {
		o.beginSeal()
	}
	if o.bytes() <= o.limit() {
		return
	}
	o.evict(evictWork)
	for o.bytes() > o.hard() && o.entries() > 0 {
		o.makeRoom()
	}
}

// makeRoom lets the task wait until something can be dropped.
func (o *Operator) makeRoom() {
	if o.shrink() {
		return
	}
	if o.unsealed > 0 && len(o.pending) < maxSeals {
		o.beginSeal()
	}
	start := time.Now()
	o.reap(true)
	o.backend.stats.waits.Add(1)
	o.backend.stats.waited.Add(int64(time.Since(start)))
	o.shrink()
}

// shrinkWork is how many entries are looked at before the size is.
const shrinkWork = 1024

// shrink drops what it can until what is left is within the limit, and reports whether it is. It looks at each entry twice, since the first time those stay
// that were used lately.
func (o *Operator) shrink() bool {
	for looked := 0; o.bytes() > o.limit() && looked <= 2*o.entries()+2*shrinkWork; looked += shrinkWork {
		o.evict(shrinkWork)
	}
	return o.bytes() <= o.limit()
}

func (o *Operator) entries() (n int) {
	for _, t := range o.tables {
		n += t.entries()
	}
	return n
}

func (o *Operator) evict(limit int) {
	dropped := 0
	for _, t := range o.tables {
		dropped += t.evict(limit)
	}
	o.backend.stats.evicted.Add(int64(dropped))
}

// reap takes note of seals that have ended. With wait it waits for all of them.
func (o *Operator) reap(wait bool) {
	for len(o.pending) > 0 {
		s := o.pending[0]
		if !wait {
			select {
			case <-s.done:
			default:
				return
			}
		}
		<-s.done
		o.pending = o.pending[1:]
		if s.err != nil {
			o.fail(s.err)
		}
		o.sealed = s.until
	}
}

// beginSeal freezes what is not sealed, for nobody but the task.
func (o *Operator) beginSeal() {
	if _, err := o.freeze(nil); err != nil {
		o.fail(err)
	}
}

// freeze begins a seal of everything that was written until now.
func (o *Operator) freeze(snapshot *Snapshot) (*seal, error) {
	if err := o.Open(); err != nil {
		return nil, err
	}
	s := &seal{after: o.generation - 1, until: o.generation, bare: o.bare, snapshot: snapshot, done: make(chan struct{})}
	for _, t := range o.tables {
		f, err := t.freeze(s.after)
		if err != nil {
			s.release()
			return nil, err
		}
		if f != nil {
			s.tables = append(s.tables, f)
		}
	}
	o.bare = o.bare && len(s.tables) == 0
	o.generation++
	o.unsealed = 0
	o.pending = append(o.pending, s)
	o.jobs <- s
	return s, nil
}
