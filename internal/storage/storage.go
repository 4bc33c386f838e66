package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"
)

// What callers decide on.
var (
	ErrNotFound = errors.New("no such file")
	ErrExists   = errors.New("file exists already")
	ErrTooLarge = errors.New("file is too large")
	// ErrUncertain: nobody can say whether a file is there.
	ErrUncertain = errors.New("it is not known whether the file was written")
	// ErrUnreachable: the server that keeps the files does not answer, or cannot do its work. It may be able to later.
	ErrUnreachable = errors.New("the storage cannot be reached")
)

// Mode says what WriteFile does when the file exists.
type Mode int

// The modes.
const (
	Replace    Mode = iota + 1
	CreateOnly      // give ErrExists and leave the file alone; of several at once exactly one succeeds
)

// Info describes a file.
type Info struct {
	Path    string
	Size    int64
	ModTime time.Time
}

// Storage is a tree of files. Names are slash-separated and relative to the root; see CheckPath. Directories come into being with the
// files in them, durably too. Only files have a size, can be opened and are listed: a directory counts as ErrNotFound there. No name may be used for
// a file and a directory: a file system refuses the second, an object store need not. A writer or a file ends with the context that it was made with.
type Storage interface {
	// Create begins a file, which nobody sees before Commit.
	Create(ctx context.Context, name string) (Writer, error)
	// WriteFile publishes a whole file in one step. When ErrUncertain is in the error of a CreateOnly, the file may be there, or appear yet.
	WriteFile(ctx context.Context, name string, data []byte, mode Mode) error
	// Open opens a file for reading, or gives ErrNotFound.
	Open(ctx context.Context, name string) (File, error)
	// ReadFile returns the content of a file of at most limit bytes; it gives ErrTooLarge for a longer one.
	ReadFile(ctx context.Context, name string, limit int64) ([]byte, error)
	// Stat describes a file, or gives ErrNotFound.
	Stat(ctx context.Context, name string) (Info, error)
	// List describes all files below the directory dir, at any depth, sorted by path; "" is the root. A directory that does not exist is empty.
	List(ctx context.Context, dir string) ([]Info, error)
	// MkdirAll makes a directory with its parents.
	MkdirAll(ctx context.Context, dir string) error
	// Remove removes a file; it is not an error if there is none. After a nil there is none, durably, whoever has removed it.
	Remove(ctx context.Context, name string) error
	// RemoveAll removes a directory with all that is in it, unfinished files too; it is not an error if there is none.
	// After a nil there is none, durably, whoever has removed it.
	RemoveAll(ctx context.Context, dir string) error
}

// Writer is a file that is not there yet. It is for one goroutine.
type Writer interface {
	io.Writer
	// Commit makes the file visible and durable, in the place of an older one. It fails if a Write has failed.
	Commit() error
	// Abort forgets the file. It does nothing after Commit, so that it can be deferred.
	Abort()
}

// File is an open file. When it is replaced or removed meanwhile, it still gives what was there, or an error, but never a mixture.
type File interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// maxPathBytes and maxNameBytes are what common file systems allow; longer names are refused before anything is touched.
const (
	maxPathBytes = 2048
	maxNameBytes = 255
)

// TempPrefix is in front of names of what is not finished; no file may have such a name.
const TempPrefix = ".tmp~"

// CheckPath reports why name cannot be the path of a file: it must be relative, without empty, "." and ".." elements, valid UTF-8,
// without zero bytes and backslashes, and no longer than file systems allow.
func CheckPath(name string) error {
	if name == "." || !fs.ValidPath(name) || strings.ContainsAny(name, "\\\x00") {
		return fmt.Errorf("storage path %q is not a clean relative path", name)
	}
	if len(name) > maxPathBytes {
		return fmt.Errorf("storage path of %d bytes, at most %d are possible", len(name), maxPathBytes)
	}
	for element := range strings.SplitSeq(name, "/") {
		if len(element) > maxNameBytes {
			return fmt.Errorf("storage path has a name of %d bytes, at most %d are possible: %q", len(element), maxNameBytes, element)
		}
		if strings.HasPrefix(element, TempPrefix) {
			return fmt.Errorf("storage path %q has a name that is kept for unfinished files", name)
		}
	}
	return nil
}

// metadataFile is the file without which a directory is no checkpoint; package checkpoint gives it its name.
const metadataFile = "_metadata"

// DiscardCheckpoint deletes the checkpoint in dir. The metadata goes first and durably, so that at no time there is a checkpoint that
// refers to files that are gone. It can be called again after an error, and for a checkpoint that was never completed.
func DiscardCheckpoint(ctx context.Context, s Storage, dir string) error {
	if err := s.Remove(ctx, path.Join(dir, metadataFile)); err != nil {
		return fmt.Errorf("discard checkpoint %s: %w", dir, err)
	}
	if err := s.RemoveAll(ctx, dir); err != nil {
		return fmt.Errorf("discard checkpoint %s: %w", dir, err)
	}
	return nil
}
