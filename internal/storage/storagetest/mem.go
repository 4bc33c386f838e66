package storagetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirstream/weir/internal/storage"
)

// Kind is the kind of an operation on the fake.
type Kind string

// The kinds of operations.
const (
	Create    Kind = "create"
	Write     Kind = "write"
	Commit    Kind = "commit"
	WriteFile Kind = "write-file"
	Open      Kind = "open"
	ReadAt    Kind = "read-at"
	ReadFile  Kind = "read-file"
	Stat      Kind = "stat"
	List      Kind = "list"
	MkdirAll  Kind = "mkdir-all"
	Remove    Kind = "remove"
	RemoveAll Kind = "remove-all"
)

// Op is one operation, as the predicate of SetFaults sees it.
type Op struct {
	Kind Kind
	Path string
}

// String is "kind path".
func (o Op) String() string { return string(o.Kind) + " " + o.Path }

// Fault is what goes wrong with an operation; the zero Fault is nothing.
type Fault struct {
	Stall    <-chan struct{} // the operation waits until it is closed
	Before   error           // nothing is done
	Unsynced bool            // what is done is visible, but a crash undoes it; a storage that knows it also gives an error
	After    error           // it is done, but the caller gets an error
}

// Mem is a storage.Storage in memory that loses on Crash what was not durable, and fails as it is told to.
type Mem struct {
	mu struct {
		sync.Mutex
		now     time.Time
		faults  func(Op) Fault
		visible map[string]memFile
		durable map[string]memFile
		crashes int
	}
}

type memFile struct {
	data []byte // never changed
	mod  time.Time
}

var errCrashed = errors.New("the machine has crashed since the file was created")

// NewMem returns an empty storage.
func NewMem() *Mem {
	m := &Mem{}
	m.mu.visible, m.mu.durable = map[string]memFile{}, map[string]memFile{}
	return m
}

// SetTime sets the modification time of files that are written from now on.
func (m *Mem) SetTime(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.now = now
}

// SetFaults makes predicate decide the fate of every operation; nil: all succeed. It may be called by several goroutines at once.
func (m *Mem) SetFaults(predicate func(Op) Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.faults = predicate
}

// Crash forgets all that was not durable. Files that were being written can no longer be committed.
func (m *Mem) Crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.visible = maps.Clone(m.mu.durable)
	m.mu.crashes++
}

// do runs one operation with its fault around it; apply is called with the lock held and gives what it changes.
func (m *Mem) do(op Op, apply func() error) error {
	m.mu.Lock()
	faults := m.mu.faults
	m.mu.Unlock()
	var f Fault
	if faults != nil {
		f = faults(op)
	}
	if f.Stall != nil {
		<-f.Stall
	}
	if f.Before != nil {
		return fmt.Errorf("%s: %w", op, f.Before)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.mu.visible
	m.mu.visible = maps.Clone(before)
	if err := apply(); err != nil {
		m.mu.visible = before
		return fmt.Errorf("%s: %w", op, err)
	}
	if !f.Unsynced {
		m.syncDifference(before)
		m.syncRemoval(op)
	}
	if f.After != nil {
		return fmt.Errorf("%s: %w", op, f.After)
	}
	return nil
}

// syncDifference makes durable what has changed since before, and nothing else.
func (m *Mem) syncDifference(before map[string]memFile) {
	for name, file := range m.mu.visible {
		if old, ok := before[name]; !ok || &old.data[0] != &file.data[0] {
			m.mu.durable[name] = file
		}
	}
	for name := range before {
		if _, ok := m.mu.visible[name]; !ok {
			delete(m.mu.durable, name)
		}
	}
}

// syncRemoval makes durable that something is gone, also if an earlier operation has removed it without a sync.
func (m *Mem) syncRemoval(op Op) {
	below := op.Kind == RemoveAll
	if !below && op.Kind != Remove {
		return
	}
	maps.DeleteFunc(m.mu.durable, func(name string, _ memFile) bool {
		return name == op.Path || below && strings.HasPrefix(name, op.Path+"/")
	})
}

func check(ctx context.Context, name string) error {
	return cmp.Or(context.Cause(ctx), storage.CheckPath(name))
}

// put is called with the lock held. The byte in front tells two files of equal content apart.
func (m *Mem) put(name string, data []byte) error {
	if err := m.conflict(name); err != nil {
		return err
	}
	m.mu.visible[name] = memFile{append([]byte{0}, data...), m.mu.now}
	return nil
}

// conflict refuses a file in the place of a directory and the other way round.
func (m *Mem) conflict(name string) error {
	for other := range m.mu.visible {
		if strings.HasPrefix(other, name+"/") {
			return fmt.Errorf("%w: it is a directory", storage.ErrExists)
		}
		if strings.HasPrefix(name, other+"/") {
			return fmt.Errorf("%s is a file and not a directory", other)
		}
	}
	return nil
}

func (m *Mem) get(name string) ([]byte, error) {
	f, ok := m.mu.visible[name]
	if !ok {
		return nil, storage.ErrNotFound
	}
	return f.data[1:], nil
}

// Create is the method of storage.Storage.
func (m *Mem) Create(ctx context.Context, name string) (storage.Writer, error) {
	w := &memWriter{m: m, name: name}
	err := m.do(Op{Create, name}, func() error {
		w.crashes = m.mu.crashes
		return cmp.Or(check(ctx, name), m.conflict(name))
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// WriteFile is the method of storage.Storage.
func (m *Mem) WriteFile(ctx context.Context, name string, data []byte, mode storage.Mode) error {
	return m.do(Op{WriteFile, name}, func() error {
		if err := check(ctx, name); err != nil {
			return err
		}
		if _, ok := m.mu.visible[name]; ok && mode == storage.CreateOnly {
			return storage.ErrExists
		}
		return m.put(name, data)
	})
}

// Open is the method of storage.Storage.
func (m *Mem) Open(ctx context.Context, name string) (storage.File, error) {
	f := &memOpen{m: m, name: name}
	err := m.do(Op{Open, name}, func() (err error) {
		if err := check(ctx, name); err != nil {
			return err
		}
		f.data, err = m.get(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// ReadFile is the method of storage.Storage.
func (m *Mem) ReadFile(ctx context.Context, name string, limit int64) (data []byte, err error) {
	err = m.do(Op{ReadFile, name}, func() error {
		if err := check(ctx, name); err != nil {
			return err
		}
		stored, err := m.get(name)
		if int64(len(stored)) > limit {
			err = fmt.Errorf("%w: %d bytes, at most %d are allowed", storage.ErrTooLarge, len(stored), limit)
		}
		data = bytes.Clone(stored)
		return err
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// Stat is the method of storage.Storage.
func (m *Mem) Stat(ctx context.Context, name string) (info storage.Info, err error) {
	err = m.do(Op{Stat, name}, func() error {
		if err := check(ctx, name); err != nil {
			return err
		}
		data, err := m.get(name)
		info = storage.Info{Path: name, Size: int64(len(data)), ModTime: m.mu.visible[name].mod}
		return err
	})
	if err != nil {
		return storage.Info{}, err
	}
	return info, nil
}

// List is the method of storage.Storage.
func (m *Mem) List(ctx context.Context, dir string) (out []storage.Info, err error) {
	err = m.do(Op{List, dir}, func() error {
		prefix := ""
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if dir != "" {
			prefix = dir + "/"
			if err := storage.CheckPath(dir); err != nil {
				return err
			}
		}
		for _, name := range slices.Sorted(maps.Keys(m.mu.visible)) {
			if f := m.mu.visible[name]; strings.HasPrefix(name, prefix) {
				out = append(out, storage.Info{Path: name, Size: int64(len(f.data) - 1), ModTime: f.mod})
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// MkdirAll is the method of storage.Storage; directories of the fake exist when something is in them.
func (m *Mem) MkdirAll(ctx context.Context, dir string) error {
	return m.do(Op{MkdirAll, dir}, func() error {
		if err := check(ctx, dir); err != nil {
			return err
		}
		if _, ok := m.mu.visible[dir]; ok {
			return fmt.Errorf("%s is a file and not a directory", dir)
		}
		if err := m.conflict(dir); err != nil && !errors.Is(err, storage.ErrExists) {
			return err
		}
		return nil
	})
}

// Remove is the method of storage.Storage.
func (m *Mem) Remove(ctx context.Context, name string) error {
	return m.do(Op{Remove, name}, func() error {
		if err := check(ctx, name); err != nil {
			return err
		}
		if err := m.conflict(name); errors.Is(err, storage.ErrExists) {
			return errors.New("it is a directory")
		}
		delete(m.mu.visible, name)
		return nil
	})
}

// RemoveAll is the method of storage.Storage.
func (m *Mem) RemoveAll(ctx context.Context, dir string) error {
	return m.do(Op{RemoveAll, dir}, func() error {
		if err := check(ctx, dir); err != nil {
			return err
		}
		maps.DeleteFunc(m.mu.visible, func(name string, _ memFile) bool { return name == dir || strings.HasPrefix(name, dir+"/") })
		return nil
	})
}

type memWriter struct {
	m       *Mem
	name    string
	crashes int
	data    []byte
	err     error
	done    bool
}

var errDone = errors.New("the file was committed or aborted before")

// Write appends to the file.
func (w *memWriter) Write(p []byte) (int, error) {
	if w.done {
		return 0, fmt.Errorf("write %s: %w", w.name, errDone)
	}
	err := w.m.do(Op{Write, w.name}, func() error {
		w.data = append(w.data, p...)
		return nil
	})
	if err != nil {
		w.err = err
		return 0, err
	}
	return len(p), nil
}

// Commit publishes the file.
func (w *memWriter) Commit() error {
	if w.done {
		return fmt.Errorf("commit %s: %w", w.name, errDone)
	}
	w.done = true
	if w.err != nil {
		return w.err
	}
	return w.m.do(Op{Commit, w.name}, func() error {
		if w.crashes != w.m.mu.crashes {
			return errCrashed
		}
		return w.m.put(w.name, w.data)
	})
}

// Abort forgets the file.
func (w *memWriter) Abort() { w.done = true }

type memOpen struct {
	m    *Mem
	name string
	data []byte
}

// ReadAt reads from the content that the file had when it was opened.
func (f *memOpen) ReadAt(p []byte, off int64) (n int, err error) {
	end := io.EOF
	err = f.m.do(Op{ReadAt, f.name}, func() error {
		n, end = bytes.NewReader(f.data).ReadAt(p, off)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, end
}

// Close does nothing.
func (f *memOpen) Close() error { return nil }

// Size is the length of the file.
func (f *memOpen) Size() int64 { return int64(len(f.data)) }
