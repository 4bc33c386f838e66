package task

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream"
)

// maxUploads is how many files a snapshot uploads at a time.
const maxUploads = 4

// SharedFiles is where the files of state backends are; see checkpoint.SharedFile. Its methods may be called by several goroutines.
type SharedFiles interface {
	// Upload copies a local file to path, which is that of a SharedFile of the checkpoint in dir, and gives its length and checksum. When it returns without an
	// error the file is durable.
	Upload(ctx context.Context, dir, path, local string) (size int64, crc uint32, err error)
	// Refer says that the checkpoint in dir refers to such a file, which was uploaded before, and that local has the same content.
	Refer(dir, path, local string)
	// Remove deletes such a file. It is not an error if there is none.
	Remove(ctx context.Context, dir, path string) error
	// Fetch gives files of the checkpoint in dir on the local disk, whole and verified. They are gone after release.
	Fetch(ctx context.Context, dir string, files []checkpoint.SharedFile) (local []stream.SnapshotFile, release func(), err error)
}

// sharing is what a task knows of shared files; snapshots that run beside it use it.
type sharing struct {
	files  SharedFiles
	number atomic.Int64 // of the latest upload
	mu     struct {
		sync.Mutex
		record SharedRecord
	}
}

func (s *sharing) find(base checkpoint.ID, operator string, f stream.SnapshotFile) (checkpoint.SharedFile, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.record.Based(base)
	return s.mu.record.Find(base, operator, f.Name, f.Size)
}

func (s *sharing) refers(id checkpoint.ID, operator string, files []checkpoint.SharedFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.record.Refers(id, operator, files)
}

func (s *sharing) restored(r *Restore) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.record.Restored(r.Checkpoint, r.State.Operators)
}

func (s *sharing) over(id checkpoint.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.record.Over(id)
}

// uploads are the files that one snapshot has begun to upload, whatever has become of that.
type uploads struct {
	mu struct {
		sync.Mutex
		paths []string
	}
}

func (u *uploads) begin(path string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.mu.paths = append(u.mu.paths, path)
}

// isNative reports whether a snapshot is taken in the form of its backend: for every checkpoint, and for a savepoint if that was asked for.
func (s *snapshotted) isNative(p operatorPart) (stream.FileSnapshot, bool) {
	files, ok := p.keyed.(stream.FileSnapshot)
	return files, ok && s.checkpoint.Format != job.FormatCanonical && s.task.sharing.files != nil
}

// native puts the files of a backend where they stay. What the base has already is referred to; the rest is uploaded, some at a time. After an error all
// that was begun has ended.
func (s *snapshotted) native(ctx context.Context, p operatorPart, snapshot stream.FileSnapshot) (*checkpoint.Keyed, error) {
	backend, ok := p.operator.Operator.(stream.FileStateful)
	if !ok {
		return nil, fmt.Errorf("it gives files of a backend that it does not name")
	}
	local, err := snapshot.Files(ctx)
	if err != nil {
		return nil, err
	}
	k := &checkpoint.Keyed{Range: s.task.cfg.KeyGroups, Backend: backend.Backend(), Files: make([]checkpoint.SharedFile, len(local))}
	for _, schema := range p.schemas {
		k.States = append(k.States, checkpoint.StateSchema(schema))
	}
	work, uploading := errgroup.WithContext(ctx)
	work.SetLimit(maxUploads)
	for i, f := range local {
		if known, ok := s.inBase(p.operator.ID, f); ok {
			k.Files[i] = known
			s.task.sharing.files.Refer(s.checkpoint.Dir, known.Path, f.Path)
			continue
		}
		work.Go(func() (err error) {
			k.Files[i], err = s.upload(uploading, f)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	if s.checkpoint.Format == job.FormatNone {
		s.task.sharing.refers(checkpoint.ID(s.checkpoint.ID), p.operator.ID, k.Files)
	}
	return k, nil
}

// inBase finds a file that the base of the checkpoint refers to. A savepoint has everything itself.
func (s *snapshotted) inBase(operator string, f stream.SnapshotFile) (checkpoint.SharedFile, bool) {
	if s.checkpoint.Base == 0 || s.checkpoint.Format != job.FormatNone {
		return checkpoint.SharedFile{}, false
	}
	return s.task.sharing.find(checkpoint.ID(s.checkpoint.Base), operator, f)
}

func (s *snapshotted) upload(ctx context.Context, f stream.SnapshotFile) (checkpoint.SharedFile, error) {
	if ctx.Err() != nil {
		return checkpoint.SharedFile{}, context.Cause(ctx)
	}
	sharing := &s.task.sharing
	path := checkpoint.SharedFileName(s.task.cfg.Attempt, checkpoint.ID(s.checkpoint.ID), sharing.number.Add(1))
	if s.checkpoint.Format == job.FormatNone {
		path = checkpoint.SharedPath(path)
	}
	s.uploads.begin(path) // before it can be there
	size, crc, err := sharing.files.Upload(ctx, s.checkpoint.Dir, path, f.Path)
	if err != nil {
		return checkpoint.SharedFile{}, fmt.Errorf("upload %s: %w", f.Name, err)
	}
	if size != f.Size {
		return checkpoint.SharedFile{}, fmt.Errorf("file %s has %d bytes, its snapshot said %d", f.Name, size, f.Size)
	}
	return checkpoint.SharedFile{Name: f.Name, Path: path, Size: size, CRC32C: crc}, nil
}

// removeUploads deletes what a snapshot has uploaded that belongs to no checkpoint, and nothing else: what it found in its base is not its own.
func (s *snapshotted) removeUploads(ctx context.Context) {
	s.task.sharing.over(checkpoint.ID(s.checkpoint.ID))
	s.uploads.mu.Lock()
	paths := s.uploads.mu.paths
	s.uploads.mu.Unlock()
	var errs []error
	for _, path := range paths {
		errs = append(errs, s.task.sharing.files.Remove(ctx, s.checkpoint.Dir, path))
	}
	if err := errors.Join(errs...); err != nil {
		s.task.cfg.Log.Warn("files of the state backend left behind", zap.Int64("checkpoint", s.checkpoint.ID), zap.Error(err))
	}
}

// restoreFiles gives an operator its state in the form of its backend; false: it has it in the other form.
func (t *Task) restoreFiles(ctx context.Context, op Operator, parts []checkpoint.Keyed) (bool, error) {
	native := 0
	for _, k := range parts {
		if k.IsNative() {
			native++
		}
	}
	if native == 0 {
		return false, nil
	}
	backend := parts[0].Backend
	s, ok := op.Operator.(stream.FileStateful)
	switch {
	case native < len(parts):
		return true, stream.Permanent(fmt.Errorf("operator %s has state in files of its backend and state in the canonical form", op.ID))
	case !ok || s.Backend() != backend || t.sharing.files == nil:
		return true, stream.Permanent(fmt.Errorf("operator %s has its state in files of backend %q and is now run with another one; run it with --state-backend %s, or start from a "+
			"canonical savepoint", op.ID, backend, backend))
	}
	restored := make([]stream.RestoredFiles, len(parts))
	for i, k := range parts {
		if k.Backend != backend {
			return true, stream.Permanent(fmt.Errorf("operator %s has state in files of backends %q and %q", op.ID, backend, k.Backend))
		}
		local, release, err := t.sharing.files.Fetch(ctx, t.cfg.Restore.Dir, k.Files)
		if err != nil {
			return true, err
		}
		defer release()
		restored[i] = stream.RestoredFiles{Groups: k.Range, Whole: !k.Clipped, Files: local}
		for _, schema := range k.States {
			restored[i].Written = append(restored[i].Written, stream.StateSchema(schema))
		}
	}
	return true, s.RestoreFiles(ctx, restored)
}
