package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// localWriter writes to a temporary file beside the final one.
type localWriter struct {
	dirs *dirSyncs
	name string
	path string
	temp *os.File
	err  error // of the first write that failed
	done bool
}

var errDone = errors.New("the file was committed or aborted before")

// Write appends to the file.
func (w *localWriter) Write(p []byte) (int, error) {
	if w.done {
		return 0, describe("write", w.name, errDone)
	}
	n, err := w.temp.Write(p)
	if err != nil {
		w.err = describe("write", w.name, cause(err))
		return n, w.err
	}
	return n, nil
}

// Commit publishes the file.
func (w *localWriter) Commit() error { return w.commit(Replace) }

func (w *localWriter) commit(mode Mode) error {
	if w.done {
		return describe("commit", w.name, errDone)
	}
	defer w.Abort()
	if w.err != nil {
		return w.err
	}
	// A file system may report a failed write only once, here; so nothing is tried a second time.
	if err := errors.Join(w.temp.Sync(), w.temp.Close()); err != nil {
		return describe("commit", w.name, cause(err))
	}
	if err := w.publish(mode); err != nil {
		return describe("commit", w.name, err)
	}
	return describe("commit", w.name, w.dirs.sync(filepath.Dir(w.path)))
}

// publish gives the file its name in one step.
func (w *localWriter) publish(mode Mode) error {
	if mode == Replace {
		if err := os.Rename(w.temp.Name(), w.path); err != nil {
			return cause(err)
		}
		w.done = true
		return nil
	}
	// Unlike a rename, a link never takes the place of another file.
	err := os.Link(w.temp.Name(), w.path)
	switch {
	case errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist):
		return err
	case err != nil:
		return fmt.Errorf("create if absent needs a file system with hard links: %w", cause(err))
	}
	w.Abort() // only the second name is left to remove
	return nil
}

// Abort removes the temporary file.
func (w *localWriter) Abort() {
	if w.done {
		return
	}
	w.done = true
	// Both errors mean only that the file stays until its directory is removed, or that it is gone already.
	_ = w.temp.Close()
	_ = os.Remove(w.temp.Name())
}

// cause leaves out the temporary name, which says nothing to a reader of the message.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		return l.Err
	}
	return err
}
