package jobmaster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// memory is a storage. before runs ahead of each operation, after behind one that was done; both without the lock, and their errors are the
// caller's.
type memory struct {
	before func(op, name string) error
	after  func(op, name string) error
	dead   atomic.Bool // nothing has an effect any more
	mu     sync.Mutex
	files  map[string][]byte
	dirs   map[string]bool
}

var errDead = errors.New("the process is dead")

func newMemory() *memory { return &memory{files: map[string][]byte{}, dirs: map[string]bool{}} }

func (s *memory) do(ctx context.Context, op, name string, f func() error) error {
	if s.dead.Load() {
		return errDead
	}
	if s.before != nil {
		if err := s.before(op, name); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	err := f()
	s.mu.Unlock()
	if err == nil && s.after != nil {
		err = s.after(op, name)
	}
	return err
}

func (s *memory) hasDir(dir string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.files {
		if strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	for name := range s.dirs {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}

func (s *memory) MkdirAll(ctx context.Context, dir string) error {
	return s.do(ctx, "mkdir", dir, func() error { s.dirs[dir] = true; return nil })
}

func (s *memory) ReadFile(ctx context.Context, name string, limit int64) (data []byte, err error) {
	err = s.do(ctx, "read", name, func() error {
		var ok bool
		if data, ok = s.files[name]; !ok {
			return fmt.Errorf("%s: no such file", name)
		}
		if int64(len(data)) > limit {
			return errors.New("too large")
		}
		return nil
	})
	return data, err
}

func (s *memory) CreateFile(ctx context.Context, name string, data []byte) error {
	return s.do(ctx, "create", name, func() error {
		if old, ok := s.files[name]; ok && !bytes.Equal(old, data) {
			return fmt.Errorf("%s: exists", name)
		}
		s.files[name] = slices.Clone(data)
		return nil
	})
}

func (s *memory) Files(ctx context.Context, dir string) (out []string, err error) {
	err = s.do(ctx, "files", dir, func() error {
		for name := range s.files {
			if strings.HasPrefix(name, dir+"/") || dir == "" {
				out = append(out, name)
			}
		}
		slices.Sort(out)
		return nil
	})
	return out, err
}

func (s *memory) DiscardCheckpoint(ctx context.Context, dir string) error {
	return s.do(ctx, "discard", dir, func() error { s.removeAll(dir); return nil })
}

func (s *memory) Remove(ctx context.Context, name string) error {
	return s.do(ctx, "remove file", name, func() error { delete(s.files, name); return nil })
}

func (s *memory) RemoveAll(ctx context.Context, dir string) error {
	return s.do(ctx, "remove", dir, func() error { s.removeAll(dir); return nil })
}

func (s *memory) removeAll(dir string) {
	for name := range s.files {
		if strings.HasPrefix(name, dir+"/") {
			delete(s.files, name)
		}
	}
	for name := range s.dirs {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			delete(s.dirs, name)
		}
	}
}

// content lists files and directories.
func (s *memory) content() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for name := range s.files {
		out = append(out, name)
	}
	for name := range s.dirs {
		out = append(out, name+"/")
	}
	slices.Sort(out)
	return out
}

// below is the part of a memory below a path.
type below struct {
	*memory
	root string
}

func (b below) MkdirAll(ctx context.Context, dir string) error {
	return b.memory.MkdirAll(ctx, b.root+"/"+dir)
}

func (b below) ReadFile(ctx context.Context, name string, limit int64) ([]byte, error) {
	return b.memory.ReadFile(ctx, b.root+"/"+name, limit)
}

func (b below) Files(ctx context.Context, dir string) ([]string, error) {
	names, err := b.memory.Files(ctx, strings.TrimSuffix(b.root+"/"+dir, "/"))
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], b.root+"/")
	}
	return names, err
}

func (b below) CreateFile(ctx context.Context, name string, data []byte) error {
	return b.memory.CreateFile(ctx, b.root+"/"+name, data)
}

func (b below) Remove(ctx context.Context, name string) error {
	return b.memory.Remove(ctx, b.root+"/"+name)
}

func (b below) DiscardCheckpoint(ctx context.Context, dir string) error {
	return b.memory.DiscardCheckpoint(ctx, b.root+"/"+dir)
}
