package cached

import (
	"context"
	"io"
)

// Store is sorted keys and values on disk; see package lsm. Get and views are for any goroutine, beside one that uses the rest.
type Store interface {
	// Get returns the value of key, which is good until done is closed; done is nil if there is none.
	Get(key []byte) (value []byte, done io.Closer, err error)
	// Write adds what fill gives, all of it or nothing, and returns how many bytes that are on disk.
	Write(ctx context.Context, fill func(Writer) error) (bytes int64, err error)
	// View is the content now.
	View() View
	// Link is the content now, as files.
	Link() (Linked, error)
	// Tidy puts a piece of what was written in order, as far as that is worth it, and reports whether there is more.
	Tidy(ctx context.Context) (more bool, err error)
	Close() error
}

// Writer takes entries in ascending order of their keys.
type Writer interface {
	Set(key, value []byte) error
	Delete(key []byte) error
}

// View is a store as it was at one moment. It must be closed.
type View interface {
	Get(key []byte) (value []byte, done io.Closer, err error)
	// Range calls f for the entries from lower up to but without upper, in order, until f returns an error, which it returns. Key and value are good until
	// f returns.
	Range(lower, upper []byte, f func(key, value []byte) error) error
	Close() error
}

// Linked is the files of a store at one moment. They stay until Remove.
type Linked interface {
	Files() []File
	Remove() error
}

// File is an immutable file.
type File struct {
	Name string // two files of one name have the same content
	Path string
	Size int64
}

// Part is the files of a store of which the key groups from First up to but without End are wanted.
type Part struct {
	Files      []File // may be anywhere; they are linked or copied
	First, End int
	Whole      bool // the files hold no other key groups
}

// Disk makes stores in directories that are empty.
type Disk interface {
	Open(dir string) (Store, error)
	// Restore makes a store of parts of others, whose key groups do not overlap.
	Restore(ctx context.Context, dir string, parts []Part) (Store, error)
}
