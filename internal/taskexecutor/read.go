package taskexecutor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/task"
	"github.com/weirstream/weir/stream"
)

// verifyBuffer is how many bytes are read at a time of a file that is only verified.
const verifyBuffer = 1 << 20

// Open implements task.StateFiles. State that is missing or damaged is missing or damaged after a restart too.
func (f *stateFiles) Open(ctx context.Context, dir string, h checkpoint.Handle) (task.StateReader, error) {
	if h.IsInline() {
		if err := h.Verify(h.Inline); err != nil {
			return nil, stream.Permanent(err)
		}
		return inlineReader{h.Inline}, nil
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
	if h.Offset+h.Length > file.Size() {
		_ = file.Close() // it was only read
		return nil, stream.Permanent(fmt.Errorf("state file %s is truncated: it has %d bytes, the checkpoint refers to byte %d; start from another one", name, file.Size(), h.Offset+h.Length))
	}
	return &stateReader{name: name, handle: h, file: file}, nil
}

// inlineReader reads state that is in its handle, and was verified.
type inlineReader struct{ data []byte }

func (r inlineReader) Read(_ context.Context, data []byte, offset int64, check func() error) error {
	copy(data, r.data[offset:])
	return check()
}

func (inlineReader) Verify(context.Context) error { return nil }
func (inlineReader) Close()                       {}

// stateReader reads state from a file.
type stateReader struct {
	name   string
	handle checkpoint.Handle
	file   storage.File
}

// Read implements task.StateReader.
func (r *stateReader) Read(ctx context.Context, data []byte, offset int64, check func() error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, err := r.file.ReadAt(data, r.handle.Offset+offset); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read state file %s: %w", r.name, err)
	}
	return r.damaged(check())
}

// Verify implements task.StateReader.
func (r *stateReader) Verify(ctx context.Context) error {
	sum, err := checksum(ctx, r.file, r.handle)
	if err != nil {
		return fmt.Errorf("read state file %s: %w", r.name, err)
	}
	if sum != r.handle.CRC32C {
		err = fmt.Errorf("%s: %w: it is %08x, recorded was %08x", r.handle, checkpoint.ErrChecksum, sum, r.handle.CRC32C)
	}
	return r.damaged(err)
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

// Close implements task.StateReader.
func (r *stateReader) Close() { _ = r.file.Close() } // it was only read
