package taskexecutor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/location"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/stream"
)

const (
	// maxFetches is how many files a restore copies at a time.
	maxFetches = 4
	// copyChunk is how much of a file is copied between two looks at the context, in bytes.
	copyChunk = 1 << 20
)

// sharedFiles copies files of state backends between the local disk and the storage; see task.SharedFiles.
type sharedFiles struct {
	files *stateFiles
	// taskDir makes the directory of the attempt on the local disk.
	taskDir func() (string, error)
}

// at gives the storage that a file of the checkpoint in dir is in, and its name there.
func (f *sharedFiles) at(ctx context.Context, dir, name string, readOnly bool) (Storage, string, error) {
	whole := checkpoint.SharedFile{Path: name}.In(dir)
	parent, base := location.Split(whole)
	s, in, err := f.files.at(ctx, parent, readOnly)
	return s, path.Join(in, base), err
}

// Upload implements task.SharedFiles.
func (f *sharedFiles) Upload(ctx context.Context, dir, name, local string) (size int64, crc uint32, err error) {
	s, in, err := f.at(ctx, dir, name, false)
	if err != nil {
		return 0, 0, err
	}
	from, err := os.Open(local)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = from.Close() }() // it was only read
	to, err := s.Create(ctx, in)
	if err != nil {
		return 0, 0, err
	}
	defer to.Abort()
	size, crc, err = copyAll(ctx, to, from)
	if err != nil {
		return 0, 0, err
	}
	if err := to.Commit(); err != nil {
		return 0, 0, err
	}
	f.Refer(dir, name, local)
	return size, crc, nil
}

// Refer implements task.SharedFiles. The backend's own file becomes the copy that a restart starts from; it is linked, not copied.
func (f *sharedFiles) Refer(dir, name, local string) {
	if j, id, ok := f.files.copied(dir); ok {
		f.files.local.Keep(j, id, name, local)
	}
}

// Remove implements task.SharedFiles.
func (f *sharedFiles) Remove(ctx context.Context, dir, name string) error {
	s, in, err := f.at(ctx, dir, name, false)
	if err != nil {
		return err
	}
	if j, id, ok := f.files.copied(dir); ok {
		f.files.local.Remove(j, id, name)
	}
	return s.Remove(ctx, in)
}

// Fetch implements task.SharedFiles. The copies have the backend's names, in a directory of their own.
func (f *sharedFiles) Fetch(ctx context.Context, dir string, files []checkpoint.SharedFile) ([]stream.SnapshotFile, func(), error) {
	task, err := f.taskDir()
	if err != nil {
		return nil, nil, err
	}
	to, err := os.MkdirTemp(task, "restore-")
	if err != nil {
		return nil, nil, err
	}
	release := func() { _ = os.RemoveAll(to) } // what is left goes with the directory of the attempt
	local := make([]stream.SnapshotFile, len(files))
	work, copying := errgroup.WithContext(ctx)
	work.SetLimit(maxFetches)
	for i, file := range files {
		local[i] = stream.SnapshotFile{Name: file.Name, Path: filepath.Join(to, file.Name), Size: file.Size}
		work.Go(func() error { return f.fetch(copying, dir, file, local[i].Path) })
	}
	if err := work.Wait(); err != nil {
		release()
		return nil, nil, err
	}
	return local, release, nil
}

// fetch gives the file another name, if there is a copy of it on a disk of the executor that is whole, or copies it from the storage.
func (f *sharedFiles) fetch(ctx context.Context, dir string, file checkpoint.SharedFile, local string) error {
	j, id, ok := f.files.copied(dir)
	if !ok {
		return f.fetchStored(ctx, dir, file, local)
	}
	kept, ok := f.files.local.Path(j, id, file.Path)
	if !ok {
		return f.fetchStored(ctx, dir, file, local)
	}
	if err := os.Link(kept, local); err != nil {
		return f.fetchStored(ctx, dir, file, local) // it was deleted since, or this file system has no links
	}
	err := verifyFile(ctx, local, file)
	if err == nil {
		f.files.restored.local.Add(file.Size)
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f.files.damagedCopy(j, id, file.Path, kept, err)
	if err := os.Remove(local); err != nil {
		return err
	}
	return f.fetchStored(ctx, dir, file, local)
}

// verifyFile compares a file on the local disk with what is recorded of it.
func verifyFile(ctx context.Context, name string, want checkpoint.SharedFile) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	size, crc, err := copyAll(ctx, io.Discard, file)
	switch {
	case err != nil:
		return err
	case size != want.Size:
		return fmt.Errorf("it has %d bytes, recorded were %d", size, want.Size)
	case crc != want.CRC32C:
		return fmt.Errorf("%w: it is %08x, recorded was %08x", checkpoint.ErrChecksum, crc, want.CRC32C)
	}
	return nil
}

// fetchStored copies a file from the storage and verifies it. One that is missing or damaged is missing or damaged after a restart too.
func (f *sharedFiles) fetchStored(ctx context.Context, dir string, file checkpoint.SharedFile, local string) error {
	s, in, err := f.at(ctx, dir, file.Path, true)
	if err != nil {
		return err
	}
	from, err := s.Open(ctx, in)
	if errors.Is(err, storage.ErrNotFound) {
		return stream.Permanent(fmt.Errorf("file %s is missing; the checkpoint is not complete: start from another one", in))
	}
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // it was only read
	to, err := os.OpenFile(local, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	size, crc, err := copyAll(ctx, to, io.NewSectionReader(from, 0, from.Size()))
	if err = errors.Join(err, to.Close()); err != nil {
		return fmt.Errorf("copy file %s: %w", in, err)
	}
	f.files.restored.storage.Add(size)
	switch {
	case size != file.Size:
		return stream.Permanent(fmt.Errorf("file %s has %d bytes, recorded were %d; start from another checkpoint", in, size, file.Size))
	case crc != file.CRC32C:
		return stream.Permanent(fmt.Errorf("file %s is damaged: %w: it is %08x, recorded was %08x; start from another checkpoint", in, checkpoint.ErrChecksum, crc, file.CRC32C))
	}
	return nil
}

// copyAll copies until the end and gives the length and the checksum.
func copyAll(ctx context.Context, to io.Writer, from io.Reader) (size int64, crc uint32, err error) {
	sum := checkpoint.NewChecksum()
	both := io.MultiWriter(to, sum)
	for {
		if ctx.Err() != nil {
			return size, 0, context.Cause(ctx)
		}
		n, err := io.CopyN(both, from, copyChunk)
		size += n
		if errors.Is(err, io.EOF) {
			return size, sum.Sum32(), nil
		}
		if err != nil {
			return size, 0, err
		}
	}
}
