package taskexecutor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/task"
	"github.com/weirstream/weir/stream"
)

// verifyBuffer is how many bytes are read at a time of a file that is only verified.
const verifyBuffer = 1 << 20

// Open implements task.StateFiles. State that is missing or damaged is missing or damaged after a restart too, unless it was only so in a copy.
func (f *stateFiles) Open(ctx context.Context, dir string, h checkpoint.Handle) (task.StateReader, error) {
	if h.IsInline() {
		if err := h.Verify(h.Inline); err != nil {
			return nil, stream.Permanent(err)
		}
		return inlineReader{h.Inline}, nil
	}
	r := &stateReader{files: f, dir: dir, handle: h, local: f.openCopy(dir, h)}
	if r.local == nil {
		if err := r.open(ctx); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// openCopy opens the copy on a disk of the executor; nil: there is none.
func (f *stateFiles) openCopy(dir string, h checkpoint.Handle) *os.File {
	j, id, ok := f.copied(dir)
	if !ok {
		return nil
	}
	name, ok := f.local.Path(j, id, h.Path)
	if !ok {
		return nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil // it was deleted since
	}
	return file
}

// inlineReader reads state that is in its handle, and was verified.
type inlineReader struct{ data []byte }

func (r inlineReader) Read(_ context.Context, data []byte, offset int64, check func() error) error {
	copy(data, r.data[offset:])
	return check()
}

func (inlineReader) Verify(context.Context) error { return nil }
func (inlineReader) Close()                       {}

// stateReader reads state from the copy of a file while there is one that is whole, else from the file.
type stateReader struct {
	files  *stateFiles
	dir    string
	handle checkpoint.Handle
	local  *os.File     // nil: there is none, or it is damaged
	file   storage.File // nil until it is needed
	name   string       // of file
}

// open opens the file in the storage.
func (r *stateReader) open(ctx context.Context) error {
	if r.file != nil {
		return nil
	}
	s, in, err := r.files.at(ctx, r.dir, true)
	if err != nil {
		return err
	}
	r.name = path.Join(in, r.handle.Path)
	file, err := s.Open(ctx, r.name)
	if errors.Is(err, storage.ErrNotFound) {
		return stream.Permanent(fmt.Errorf("state file %s is missing; the checkpoint is not complete: start from another one", r.name))
	}
	if err != nil {
		return err
	}
	if end := r.handle.Offset + r.handle.Length; end > file.Size() {
		_ = file.Close() // it was only read
		return stream.Permanent(fmt.Errorf("state file %s is truncated: it has %d bytes, the checkpoint refers to byte %d; start from another one", r.name, file.Size(), end))
	}
	r.file = file
	return nil
}

// Read implements task.StateReader.
func (r *stateReader) Read(ctx context.Context, data []byte, offset int64, check func() error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if r.local != nil {
		_, err := r.local.ReadAt(data, r.handle.Offset+offset)
		if err == nil {
			err = check()
		}
		if err == nil {
			r.files.restored.local.Add(int64(len(data)))
			return nil
		}
		r.giveUp(err)
	}
	if err := r.open(ctx); err != nil {
		return err
	}
	if _, err := r.file.ReadAt(data, r.handle.Offset+offset); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read state file %s: %w", r.name, err)
	}
	r.files.restored.storage.Add(int64(len(data)))
	return r.damaged(check())
}

// giveUp goes on with the file in the storage, and deletes the copy.
func (r *stateReader) giveUp(err error) {
	name := r.local.Name()
	_ = r.local.Close() // it was only read
	r.local = nil
	if j, id, ok := r.files.copied(r.dir); ok {
		r.files.damagedCopy(j, id, r.handle.Path, name, err)
	}
}

// Verify implements task.StateReader.
func (r *stateReader) Verify(ctx context.Context) error {
	if r.local != nil {
		err := r.verify(ctx, r.local)
		if err == nil || ctx.Err() != nil {
			return err
		}
		r.giveUp(err)
	}
	if err := r.open(ctx); err != nil {
		return err
	}
	err := r.verify(ctx, r.file)
	if errors.Is(err, checkpoint.ErrChecksum) {
		return r.damaged(err)
	}
	if err != nil {
		return fmt.Errorf("read state file %s: %w", r.name, err)
	}
	return nil
}

func (r *stateReader) verify(ctx context.Context, file io.ReaderAt) error {
	sum, err := checksum(ctx, file, r.handle)
	if err == nil && sum != r.handle.CRC32C {
		err = fmt.Errorf("%s: %w: it is %08x, recorded was %08x", r.handle, checkpoint.ErrChecksum, sum, r.handle.CRC32C)
	}
	return err
}

func (r *stateReader) damaged(err error) error {
	if err == nil {
		return nil
	}
	return stream.Permanent(fmt.Errorf("state file %s is damaged: %w; start from another checkpoint", r.name, err))
}

// checksum reads all bytes of a handle.
func checksum(ctx context.Context, file io.ReaderAt, h checkpoint.Handle) (uint32, error) {
	sum := checkpoint.NewChecksum()
	in := io.NewSectionReader(file, h.Offset, h.Length)
	for buf := make([]byte, min(verifyBuffer, h.Length)); ; {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		n, err := in.Read(buf)
		_, _ = sum.Write(buf[:n]) // never fails, says its documentation
		if errors.Is(err, io.EOF) {
			return sum.Sum32(), nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// Close implements task.StateReader. The files were only read.
func (r *stateReader) Close() {
	if r.local != nil {
		_ = r.local.Close()
	}
	if r.file != nil {
		_ = r.file.Close()
	}
}
