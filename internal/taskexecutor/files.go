package taskexecutor

import (
	"context"
	"errors"
	"path"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/localstate"
	"github.com/weirstream/weir/internal/location"
	"github.com/weirstream/weir/internal/segment"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/task"
)

// Storage is what an executor needs of a checkpoint storage; see package storage.
type Storage interface {
	Create(ctx context.Context, name string) (storage.Writer, error)
	Open(ctx context.Context, name string) (storage.File, error)
	Remove(ctx context.Context, name string) error
}

// stateFiles is the state of one task: in the checkpoint storage, or anywhere else when a directory is absolute, as a savepoint's may be.
type stateFiles struct {
	root     Storage
	open     func(ctx context.Context, location string, readOnly bool) (Storage, error)
	segments *segment.Set
	local    *localstate.Store // nil: no copies are kept
	restored *restoreCounts
	attempt  job.AttemptID
	log      *zap.Logger
}

func (e *Executor) openFiles(t *runningTask) (*stateFiles, error) {
	root, err := e.cfg.OpenStorage(t.ctx, t.session.checkpointDir, false)
	if err != nil {
		return nil, err
	}
	return &stateFiles{
		root: root, open: e.cfg.OpenStorage, segments: e.segments, local: e.cfg.Local, restored: &e.restored, attempt: t.attempt, log: t.log,
	}, nil
}

// at returns the storage of a directory and the directory's name in it.
func (f *stateFiles) at(ctx context.Context, dir string, readOnly bool) (Storage, string, error) {
	if !location.Is(dir) {
		return f.root, dir, nil
	}
	s, err := f.open(ctx, dir, readOnly)
	return s, "", err
}

// Create implements segment.Files.
func (f *stateFiles) Create(ctx context.Context, dir, name string) (segment.Writer, error) {
	s, in, err := f.at(ctx, dir, false)
	if err != nil {
		return nil, err
	}
	w, err := s.Create(ctx, path.Join(in, name))
	if err != nil {
		return nil, err
	}
	return f.withCopy(w, s, dir, name), nil
}

// Remove implements segment.Files.
func (f *stateFiles) Remove(ctx context.Context, dir, name string) error {
	s, in, err := f.at(ctx, dir, false)
	if err != nil {
		return err
	}
	if j, id, ok := f.copied(dir); ok {
		f.local.Remove(j, id, name)
	}
	return s.Remove(ctx, path.Join(in, name))
}

// Begin implements task.StateFiles.
func (f *stateFiles) Begin(dir string, id checkpoint.ID) task.SnapshotFiles {
	return &snapshotFiles{files: f, dir: dir, id: id, Part: f.segments.Begin(f, dir, f.attempt, id)}
}

// snapshotFiles are the files of one snapshot: a part of the segments that the tasks of the executor share, and a file of the task's own.
type snapshotFiles struct {
	*segment.Part
	files *stateFiles
	dir   string
	id    checkpoint.ID
	own   string // name of the task's own file; empty: there is none
}

// Create implements task.SnapshotFiles.
func (s *snapshotFiles) Create(ctx context.Context) (task.StateFile, error) {
	name := checkpoint.StateFile(s.files.attempt, s.id)
	w, err := s.files.Create(ctx, s.dir, name)
	if err != nil {
		return nil, err
	}
	s.own = name
	return &stateFile{w, name}, nil
}

type stateFile struct {
	segment.Writer
	name string
}

func (f *stateFile) Name() string { return f.name }

// Append implements task.SnapshotFiles.
func (s *snapshotFiles) Append(ctx context.Context, data []byte) (string, int64, bool, error) {
	at, err := s.Part.Append(ctx, data)
	if errors.Is(err, segment.ErrFull) {
		return "", 0, false, nil
	}
	return at.Path, at.Offset, err == nil, err
}

// Settle implements task.SnapshotFiles.
func (s *snapshotFiles) Settle(ctx context.Context, keep bool) error {
	s.Part.Settle(ctx, keep)
	if keep || s.own == "" {
		return nil
	}
	return s.files.Remove(ctx, s.dir, s.own)
}
