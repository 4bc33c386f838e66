package lsm

import (
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// scratchFS is a file system whose files need not survive the process: nothing is synced. An error while Pebble writes down what it consists of, after
// which Pebble would end the process, is kept instead: what Pebble has in memory is right, and the store refuses to go on.
type scratchFS struct {
	vfs.FS

	mu struct {
		sync.Mutex
		failed error
	}
}

func (f *scratchFS) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.failed
}

// keep remembers the first error.
func (f *scratchFS) keep(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.failed == nil {
		f.mu.failed = err
	}
}

func (f *scratchFS) wrap(name string, file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &scratchFile{File: file, fs: f, manifest: strings.HasPrefix(f.PathBase(name), manifestPrefix)}, nil
}

func (f *scratchFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	return f.wrap(name, file, err)
}

func (f *scratchFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.OpenReadWrite(name, c, opts...)
	return f.wrap(name, file, err)
}

func (f *scratchFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(from, to, c)
	return f.wrap(to, file, err)
}

func (f *scratchFS) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	return f.wrap(name, file, err)
}

func (f *scratchFS) Unwrap() vfs.FS { return f.FS }

const manifestPrefix = "MANIFEST-"

// scratchFile is a file, or a directory, that is not synced.
type scratchFile struct {
	vfs.File
	fs       *scratchFS
	manifest bool
}

func (f *scratchFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	if err != nil && f.manifest {
		f.fs.keep(err)
		return len(p), nil
	}
	return n, err
}

func (f *scratchFile) Sync() error                { return nil }
func (f *scratchFile) SyncData() error            { return nil }
func (f *scratchFile) SyncTo(int64) (bool, error) { return false, nil }
