package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weirstream/weir/stream"
)

// writeSize is how many bytes of rows are held back before they are written to the file.
const writeSize = 64 << 10

// writer is the exactly-once writer of one subtask.
type writer[T any] struct {
	sink        *sink[T]
	names       partNames
	parallelism int
	cleaned     bool // leftovers of earlier attempts are gone

	number int64    // of the current file, or the last one
	file   *os.File // in progress; nil: no records since the last Prepare
	final  string   // its final path
	size   int64    // bytes written to it
	buf    []byte
	record T
}

// Write implements stream.Writer.
func (w *writer[T]) Write(_ stream.Timestamp, v T) error {
	if w.file == nil {
		if err := w.begin(); err != nil {
			return err
		}
	}
	w.record = v
	buf, err := w.sink.encode(w.buf, &w.record)
	if err != nil {
		return err
	}
	if w.buf = buf; len(w.buf) >= writeSize {
		return w.Flush()
	}
	return nil
}

// begin starts a file under a name that nobody has used: a final file must never be replaced.
func (w *writer[T]) begin() error {
	for {
		w.number++
		w.final = w.names.final(w.number)
		taken := false
		for _, path := range []string{w.final, w.final + pendingMark} {
			found, err := exists(path)
			if err != nil {
				return fmt.Errorf("output: %w", err)
			}
			taken = taken || found
		}
		if taken {
			continue
		}
		f, err := os.OpenFile(w.final+inProgressMark, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("output: %w", err)
		}
		w.file, w.size, w.buf = f, 0, append(w.buf[:0], w.sink.header...)
		return nil
	}
}

// Flush implements stream.Writer.
func (w *writer[T]) Flush() error {
	if w.file == nil || len(w.buf) == 0 {
		return nil
	}
	n, err := w.file.Write(w.buf)
	w.size += int64(n)
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	w.buf = w.buf[:0]
	return nil
}

// Prepare implements stream.Committer: the file becomes pending.
func (w *writer[T]) Prepare(int64) (stream.Prepared, error) {
	if err := w.clean(); err != nil {
		return stream.Prepared{}, err
	}
	if w.file == nil {
		return stream.Prepared{}, nil
	}
	if err := w.Flush(); err != nil {
		return stream.Prepared{}, err
	}
	f := w.file
	w.file = nil
	if err := f.Close(); err != nil {
		return stream.Prepared{}, fmt.Errorf("output: %w", err)
	}
	if err := os.Rename(w.final+inProgressMark, w.final+pendingMark); err != nil {
		return stream.Prepared{}, fmt.Errorf("output: %w", err)
	}
	return stream.Prepared{Transaction: encodeTransaction(w.final, w.size), Persist: persist(w.final)}, nil
}

// persist returns what makes a pending file and its name durable. Once it has failed it fails for good: after a failed sync the system may
// have dropped what it could not write, and a second sync would not tell.
func persist(final string) func() error {
	var failed error
	return func() error {
		if failed != nil {
			return failed
		}
		if err := errors.Join(syncFile(final+pendingMark), syncDir(filepath.Dir(final))); err != nil {
			failed = fmt.Errorf("sync output: %w", err)
		}
		return failed
	}
}

// Commit implements stream.Committer: the pending file gets its final name.
func (w *writer[T]) Commit(transaction []byte) error {
	final, size, err := decodeTransaction(transaction)
	if err != nil {
		return stream.Permanent(err)
	}
	pending := final + pendingMark
	info, err := os.Lstat(pending)
	if errors.Is(err, os.ErrNotExist) {
		return w.committed(final, size)
	}
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	if info.Size() != size {
		return stream.Permanent(fmt.Errorf("output %s has %d bytes, the checkpoint prepared %d: it was changed, or its disk has lost data", pending, info.Size(), size))
	}
	if found, err := exists(final); err != nil || found {
		return stream.Permanent(errors.Join(fmt.Errorf("output %s is prepared, but %s is there already: move one of them away", pending, final), err))
	}
	if err := os.Rename(pending, final); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return w.syncNames(final)
}

// committed checks that an earlier commit has done its work.
func (w *writer[T]) committed(final string, size int64) error {
	info, err := os.Lstat(final)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return stream.Permanent(fmt.Errorf("output is lost: neither %s nor its %s file is there, but a checkpoint has committed it: "+
			"put the file back, or start the job from an older checkpoint with another output directory", final, pendingMark))
	case err != nil:
		return fmt.Errorf("output: %w", err)
	case info.Size() != size:
		return stream.Permanent(fmt.Errorf("output %s has %d bytes, the checkpoint committed %d: it was changed after the commit", final, info.Size(), size))
	}
	return w.syncNames(final) // the earlier one may have died before its sync
}

func (w *writer[T]) syncNames(final string) error {
	if err := syncDir(filepath.Dir(final)); err != nil {
		return fmt.Errorf("sync output directory: %w", err)
	}
	return nil
}

// Recover implements stream.Committer: files that earlier attempts of this subtask had in progress are removed. Pending ones stay for now, see clean.
func (w *writer[T]) Recover() error {
	return w.remove(func(l leftover) bool {
		return !l.pending && l.subtask == w.names.subtask && l.attempt < w.names.attempt
	})
}

// clean removes what earlier attempts have left, once, at the first barrier. A pending file of this subtask may be in the restored checkpoint
// and now be another subtask's to commit, after a change of parallelism; only a barrier says that all subtasks are open and so have
// committed. Subtasks that no longer exist are cleaned up after by those that do.
func (w *writer[T]) clean() error {
	if w.cleaned {
		return nil
	}
	err := w.remove(func(l leftover) bool {
		own := l.subtask == w.names.subtask && l.attempt < w.names.attempt
		orphan := l.subtask >= w.parallelism && l.subtask%w.parallelism == w.names.subtask
		return own || orphan
	})
	w.cleaned = err == nil
	return err
}

func (w *writer[T]) remove(choose func(leftover) bool) error {
	found, err := w.names.leftovers()
	if err != nil {
		return err
	}
	for _, l := range found {
		if !choose(l) {
			continue
		}
		if err := os.Remove(l.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove unfinished output: %w", err)
		}
	}
	return nil
}

// Close implements stream.Writer. An unfinished file goes: the records in it belong to no checkpoint.
func (w *writer[T]) Close() error {
	if w.file == nil {
		return nil
	}
	f := w.file
	w.file = nil
	err := f.Close()
	if gone := os.Remove(w.final + inProgressMark); !errors.Is(gone, os.ErrNotExist) { // a newer attempt may have been faster
		err = errors.Join(err, gone)
	}
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return nil
}
