package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirstream/weir/internal/cached"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/timer"
	"github.com/weirstream/weir/stream/codec"
)

// disk is the state of an operator whose job has a backend that keeps it on disk.
type disk struct {
	*cached.Operator
	taking *cached.Snapshot // of all tables of the operator; nil: no snapshot is being taken
}

// openDisk gives the operator such a state, if its job wants one. It must be called before tables are made.
func (e *Env) openDisk() {
	if e.Host.State != nil {
		e.Host.disk = &disk{Operator: e.Host.State.NewOperator(cached.OperatorConfig{Groups: e.KeyGroups, MaxParallelism: e.MaxParallelism, Dir: e.WorkDir})}
	}
}

// IsStateFailure reports whether err, or an error in it, is that of the disk on which a backend keeps state: the operator is not to blame.
func IsStateFailure(err error) bool {
	var f *cached.Failure
	return errors.As(err, &f)
}

// diskRows is a table of such an operator.
type diskRows[K comparable, V any] struct {
	*cached.Table[K, V]
	disk *disk
}

func newDiskRows[K comparable, V any](env *Env, spec rowsSpec[K, V]) rows[K, V] {
	return &diskRows[K, V]{
		Table: cached.NewTable(env.Host.disk.Operator, cached.TableConfig[K, V]{
			Name: spec.name, Keys: spec.keys, Values: spec.values, Hash: spec.hash, Plain: spec.plain, OwnKey: ownKey(spec.keys),
		}),
		disk: env.Host.disk,
	}
}

// ownKey is nil when there is nothing that a key must have of its own.
func ownKey[K comparable](keys codec.Codec[K]) func(K) K {
	own := codec.Owned(keys)
	if own == nil {
		return nil
	}
	return func(key K) K {
		var nothing K
		return own(key, nothing)
	}
}

// Snapshot is part of the operator's snapshot that is being taken, or one by itself.
func (t *diskRows[K, V]) Snapshot() rowsSnapshot[K, V] {
	if s := t.disk.taking; s != nil {
		return diskSnapshot[K, V]{Rows: t.In(s)}
	}
	s, err := t.disk.Snapshot(false)
	if err != nil {
		panic(err)
	}
	return diskSnapshot[K, V]{Rows: t.In(s), own: s}
}

type diskSnapshot[K comparable, V any] struct {
	*cached.Rows[K, V]
	own *cached.Snapshot // nil: it is released with that of the operator
}

func (s diskSnapshot[K, V]) Release() {
	if s.own != nil {
		s.own.Release()
	}
}

// adopter is a table that can take over rows in the form in which a disk has them.
type adopter interface {
	adopt(written StateSchema, from cached.View) error
}

func (t *valueTable[K, V]) adopt(written StateSchema, from cached.View) error {
	keys, values, err := t.resolve(written)
	if err != nil {
		return err
	}
	return adoptRows(t.rows, from, keys, values)
}

func (t *timerTable[K]) adopt(written StateSchema, from cached.View) error {
	keys, err := t.resolve(written)
	if err != nil {
		return err
	}
	return adoptRows(t.rows, from, codec.Codec[timer.Timer[K]](timer.Codec[K]{Keys: keys}), t.numbers)
}

// adoptRows writes rows anew that were written with other codecs.
func adoptRows[K comparable, V any](to rows[K, V], from cached.View, keys codec.Codec[K], values codec.Codec[V]) error {
	t, ok := to.(*diskRows[K, V])
	if !ok {
		return errors.New("it is not kept on disk")
	}
	return t.Adopt(from, keys, values)
}

// Backend implements FileStateful.
func (o *keyedOperator[K, T]) Backend() string {
	if o.env.Host.disk == nil {
		return string(job.MemoryBackend)
	}
	return string(job.PebbleBackend)
}

// RestoreFiles implements FileStateful. Files whose states have the types that they were written with become the operator's own; those of other states are
// read with the old types and written with those of today.
func (o *keyedOperator[K, T]) RestoreFiles(ctx context.Context, parts []RestoredFiles) error {
	if o.env.Host.disk == nil {
		return Permanent(o.env.fail(fmt.Errorf("the checkpoint has its state in files of the backend %s, and the job keeps state in memory: run it with --state-backend %s, or start from a savepoint in the canonical form",
			job.PebbleBackend, job.PebbleBackend)))
	}
	same := true
	in := make([]cached.Part, len(parts))
	for i, p := range parts {
		if err := o.CheckStates(p.Written); err != nil {
			return Permanent(o.env.fail(err))
		}
		for _, w := range p.Written {
			same = same && sameForm(w, o.tableNamed(w.Name).schema())
		}
		in[i] = cached.Part{First: p.Groups.Start, End: p.Groups.End, Whole: p.Whole}
		for _, f := range p.Files {
			in[i].Files = append(in[i].Files, cached.File(f))
		}
	}
	if same {
		return o.env.fail(o.env.Host.disk.Restore(ctx, in))
	}
	for i, p := range parts {
		if err := o.env.Host.disk.Import(ctx, in[i], func(from cached.View) error { return o.adopt(p.Written, from) }); err != nil {
			return o.env.fail(err)
		}
	}
	return nil
}

// adopt takes over rows that may have been written with other types.
func (o *keyedOperator[K, T]) adopt(written []StateSchema, from cached.View) error {
	for _, w := range written {
		t, ok := o.tableNamed(w.Name).(adopter)
		if !ok {
			return Permanent(fmt.Errorf("state %q was written with other types, in files of the backend %s, which a state of kind %s cannot read: start from a savepoint in the canonical form",
				w.Name, job.PebbleBackend, w.Kind))
		}
		if err := t.adopt(w, from); err != nil {
			return fmt.Errorf("restore state %q: %w", w.Name, err)
		}
	}
	return nil
}

// sameForm reports whether rows that were written with the one schema are read with the other as they are.
func sameForm(a, b StateSchema) bool {
	if (a.TTL == 0) != (b.TTL == 0) {
		return false
	}
	a.TTL, b.TTL = 0, 0
	return a == b
}

// diskKeyedSnapshot is the snapshot of an operator with state on disk.
type diskKeyedSnapshot struct {
	keyedSnapshot
	state *cached.Snapshot
}

// Files implements FileSnapshot.
func (s *diskKeyedSnapshot) Files(context.Context) ([]SnapshotFile, error) {
	files, err := s.state.Files()
	out := make([]SnapshotFile, len(files))
	for i, f := range files {
		out[i] = SnapshotFile(f)
	}
	return out, err
}

// Release implements KeyedSnapshot.
func (s *diskKeyedSnapshot) Release() {
	s.keyedSnapshot.Release()
	s.state.Release()
}
