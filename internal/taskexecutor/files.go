package taskexecutor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/location"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/task"
	"github.com/weirstream/weir/stream"
)

// Storage is what an executor needs of a checkpoint storage; see package storage.
type Storage interface {
	Create(ctx context.Context, name string) (storage.Writer, error)
	Open(ctx context.Context, name string) (storage.File, error)
	Remove(ctx context.Context, name string) error
}

// stateFiles finds state files in the checkpoint storage, or anywhere else when a directory is absolute, as a savepoint's may be.
type stateFiles struct {
	root Storage
	open func(ctx context.Context, location string, readOnly bool) (Storage, error)
}

func (e *Executor) openFiles(ctx context.Context, dir string) (*stateFiles, error) {
	root, err := e.cfg.OpenStorage(ctx, dir, false)
	if err != nil {
		return nil, err
	}
	return &stateFiles{root: root, open: e.cfg.OpenStorage}, nil
}

// at returns the storage of a directory and the directory's name in it.
func (f *stateFiles) at(ctx context.Context, dir string, readOnly bool) (Storage, string, error) {
	if !location.Is(dir) {
		return f.root, dir, nil
	}
	s, err := f.open(ctx, dir, readOnly)
	return s, "", err
}

// Create implements task.StateFiles.
func (f *stateFiles) Create(ctx context.Context, dir string, attempt job.AttemptID, id checkpoint.ID) (task.StateFile, error) {
	s, in, err := f.at(ctx, dir, false)
	if err != nil {
		return nil, err
	}
	name := checkpoint.StateFile(attempt, id)
	w, err := s.Create(ctx, path.Join(in, name))
	if err != nil {
		return nil, err
	}
	return &stateFile{w, name}, nil
}

type stateFile struct {
	storage.Writer
	name string
}

func (f *stateFile) Name() string { return f.name }

// Remove implements task.StateFiles.
func (f *stateFiles) Remove(ctx context.Context, dir string, attempt job.AttemptID, id checkpoint.ID) error {
	s, in, err := f.at(ctx, dir, false)
	if err != nil {
		return err
	}
	return s.Remove(ctx, path.Join(in, checkpoint.StateFile(attempt, id)))
}

// Read implements task.StateFiles. State that is missing or damaged is missing or damaged after a restart too.
func (f *stateFiles) Read(ctx context.Context, dir string, h checkpoint.Handle) ([]byte, error) {
	if h.IsInline() {
		if err := h.Verify(h.Inline); err != nil {
			return nil, stream.Permanent(err)
		}
		return h.Inline, nil
	}
	s, in, err := f.at(ctx, dir, true)
	if err != nil {
		return nil, err
	}
	name := path.Join(in, h.Path)
	file, err := s.Open(ctx, name)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, stream.Permanent(fmt.Errorf("state file %s is missing; the checkpoint is not complete: start from another one", name))
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	if h.Offset+h.Length > file.Size() {
		return nil, stream.Permanent(fmt.Errorf("state file %s is truncated: it has %d bytes, the checkpoint refers to byte %d; start from another one", name, file.Size(), h.Offset+h.Length))
	}
	data := make([]byte, h.Length)
	if _, err := file.ReadAt(data, h.Offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read state file %s: %w", name, err)
	}
	if err := h.Verify(data); err != nil {
		return nil, stream.Permanent(fmt.Errorf("state file %s is damaged: %w; start from another checkpoint", name, err))
	}
	return data, nil
}
