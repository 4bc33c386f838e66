package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Local is a Storage in a directory of a file system, which may be shared by several machines if it has atomic rename and link.
type Local struct {
	root string
	dirs *dirSyncs
}

// NewLocal makes the directory root, checks that it can be written to, and returns the storage in it.
func NewLocal(root string) (*Local, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("checkpoint directory %s: %w", root, err)
	}
	l := &Local{root: abs, dirs: newDirSyncs(syncDir)}
	if err := l.openRoot(); err != nil {
		return nil, fmt.Errorf("checkpoint directory %s is not writable: %w; choose another directory, or let this user write there", root, rootCause(err))
	}
	return l, nil
}

// OpenLocal returns the storage in a directory that is there, without a look into it, so that one who may only read can look.
func OpenLocal(root string) (*Local, error) {
	abs, err := filepath.Abs(root)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return nil, fmt.Errorf("directory %s: %w", root, err)
	}
	return &Local{root: abs, dirs: newDirSyncs(syncDir)}, nil
}

// openRoot makes the root, then writes and removes a file there.
func (l *Local) openRoot() error {
	if err := l.dirs.mkdirAll("/", l.root); err != nil {
		return err
	}
	// Another process may have made the root a moment ago. A parent that may not be read has not been made by one of ours.
	if err := l.dirs.sync(filepath.Dir(l.root)); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	var err error
	if l.root, err = filepath.EvalSymlinks(l.root); err != nil {
		return err
	}
	temp, err := createTemp(l.root)
	if err != nil {
		return err
	}
	_, err = temp.Write([]byte("probe"))
	err = errors.Join(err, temp.Sync(), temp.Close())
	return errors.Join(err, os.Remove(temp.Name()))
}

// rootCause leaves out the name of the file that was tried, which the caller did not choose.
func rootCause(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// FilePath is where a file is in the file system, if it is there.
func (l *Local) FilePath(name string) string { return filepath.Join(l.root, filepath.FromSlash(name)) }

// Create begins a file.
func (l *Local) Create(ctx context.Context, name string) (Writer, error) {
	w, err := l.create(ctx, name)
	if err != nil {
		return nil, describe("create", name, err)
	}
	return w, nil
}

func (l *Local) create(ctx context.Context, name string) (*localWriter, error) {
	file, err := l.resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := l.dirs.mkdirAll(l.root, filepath.Dir(file)); err != nil {
		return nil, err
	}
	temp, err := createTemp(filepath.Dir(file))
	if err != nil && errors.Is(err, fs.ErrNotExist) {
		// The directory was removed by another process since this one made it.
		l.dirs.forget(l.root)
		if err = l.dirs.mkdirAll(l.root, filepath.Dir(file)); err == nil {
			temp, err = createTemp(filepath.Dir(file))
		}
	}
	if err != nil {
		return nil, err
	}
	return &localWriter{dirs: l.dirs, name: name, path: file, temp: temp}, nil
}

// WriteFile publishes data as a file.
func (l *Local) WriteFile(ctx context.Context, name string, data []byte, mode Mode) error {
	w, err := l.create(ctx, name)
	if err != nil {
		return describe("write", name, err)
	}
	defer w.Abort()
	if _, err := w.Write(data); err != nil {
		return err
	}
	// A writer that was stopped while it waited for the disk must not publish any more.
	if err := context.Cause(ctx); err != nil {
		return describe("write", name, err)
	}
	return w.commit(mode)
}

// Open opens a file.
func (l *Local) Open(ctx context.Context, name string) (File, error) {
	f, err := l.open(ctx, name)
	if err != nil {
		return nil, describe("open", name, err)
	}
	return f, nil
}

func (l *Local) open(ctx context.Context, name string) (*localFile, error) {
	file, err := l.resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, belowFile(err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = ErrNotFound
	}
	if err != nil {
		_ = f.Close() // was only read
		return nil, err
	}
	return &localFile{f, info.Size()}, nil
}

// ReadFile reads a file.
func (l *Local) ReadFile(ctx context.Context, name string, limit int64) ([]byte, error) {
	f, err := l.open(ctx, name)
	if err != nil {
		return nil, describe("read", name, err)
	}
	defer func() { _ = f.Close() }() // is only read
	if f.size > limit {
		return nil, describe("read", name, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooLarge, f.size, limit))
	}
	data := make([]byte, f.size)
	if _, err := io.ReadFull(f.File, data); err != nil {
		return nil, describe("read", name, err)
	}
	return data, nil
}

// Stat describes a file.
func (l *Local) Stat(ctx context.Context, name string) (Info, error) {
	file, err := l.resolve(ctx, name)
	if err != nil {
		return Info{}, describe("look at", name, err)
	}
	info, err := os.Stat(file)
	if err == nil && info.IsDir() {
		err = ErrNotFound
	}
	if err != nil {
		return Info{}, describe("look at", name, belowFile(err))
	}
	return Info{name, info.Size(), info.ModTime()}, nil
}

// List describes the files below dir.
func (l *Local) List(ctx context.Context, dir string) ([]Info, error) {
	start := l.root
	if dir != "" {
		var err error
		if start, err = l.resolve(ctx, dir); err != nil {
			return nil, describe("list", dir, err)
		}
	}
	var out []Info
	err := filepath.WalkDir(start, func(file string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), TempPrefix) || file == start {
			return ignoreMissing(err)
		}
		info, err := entry.Info()
		if err != nil {
			return ignoreMissing(err)
		}
		out = append(out, Info{filepath.ToSlash(file[len(l.root)+1:]), info.Size(), info.ModTime()})
		return nil
	})
	if err != nil {
		return nil, describe("list", dir, err)
	}
	slices.SortFunc(out, func(a, b Info) int { return cmp.Compare(a.Path, b.Path) })
	return out, nil
}

// MkdirAll makes a directory.
func (l *Local) MkdirAll(ctx context.Context, dir string) error {
	file, err := l.resolve(ctx, dir)
	if err == nil {
		l.dirs.forget(file)
		err = l.dirs.mkdirAll(l.root, file)
	}
	return describe("make directory", dir, err)
}

// Remove removes a file.
func (l *Local) Remove(ctx context.Context, name string) error {
	return describe("remove", name, l.remove(ctx, name))
}

func (l *Local) remove(ctx context.Context, name string) error {
	file, err := l.resolve(ctx, name)
	if err != nil {
		return err
	}
	info, err := os.Lstat(file)
	if err == nil && info.IsDir() {
		return errors.New("it is a directory")
	}
	if err == nil {
		err = os.Remove(file)
	}
	if err := ignoreMissing(err); err != nil {
		return err
	}
	return l.syncAbove(file)
}

// syncAbove makes durable that a file or directory is gone. It is asked for what was not there, too: an earlier call may have removed it and
// then failed to sync.
func (l *Local) syncAbove(file string) error {
	for file != l.root {
		file = filepath.Dir(file)
		if err := l.dirs.sync(file); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// RemoveAll removes a directory.
func (l *Local) RemoveAll(ctx context.Context, dir string) error {
	return describe("remove", dir, l.removeAll(ctx, dir))
}

func (l *Local) removeAll(ctx context.Context, dir string) error {
	file, err := l.resolve(ctx, dir)
	if err != nil {
		return err
	}
	l.dirs.forget(file)
	if err := os.RemoveAll(file); err != nil {
		return err
	}
	return l.syncAbove(file)
}

// resolve checks the name and gives the path in the file system.
func (l *Local) resolve(ctx context.Context, name string) (string, error) {
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	if err := CheckPath(name); err != nil {
		return "", err
	}
	return filepath.Join(l.root, filepath.FromSlash(path.Clean(name))), nil
}

// describe names the operation and the file, and turns the file system's errors into those of this package.
func describe(verb, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrNotFound):
		return fmt.Errorf("%s %s: %w", verb, name, ErrNotFound)
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s %s: %w", verb, name, ErrExists)
	}
	return fmt.Errorf("%s %s: %w", verb, name, err)
}

// belowFile: what would be below a file does not exist.
func belowFile(err error) error {
	if errors.Is(err, syscall.ENOTDIR) {
		return ErrNotFound
	}
	return err
}

// ignoreMissing is for work that somebody else has done first.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

// createTemp makes a file of a new name that readers do not see.
func createTemp(dir string) (*os.File, error) {
	name := fmt.Sprintf("%s%016x", TempPrefix, rand.Uint64())
	return os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

type localFile struct {
	*os.File
	size int64
}

// Size is the length that the file had when it was opened; a file never changes after it was published.
func (f *localFile) Size() int64 { return f.size }
