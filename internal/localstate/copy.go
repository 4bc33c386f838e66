package localstate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// Copy is a copy in the making. It is for one goroutine. A nil Copy takes everything and keeps nothing.
type Copy struct {
	store *Store
	job   job.ID
	id    checkpoint.ID
	name  string
	temp  *os.File // nil after an error, or at the end
}

// Create begins a copy of a file of a checkpoint. It returns nil when it is not wanted or cannot be made.
func (s *Store) Create(j job.ID, id checkpoint.ID, name string) *Copy {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.job(j)
	if err == nil && !c.wants(id) {
		return nil
	}
	var temp *os.File
	if err == nil {
		s.mu.temp++
		temp, err = os.OpenFile(filepath.Join(s.mu.root, fmt.Sprintf("%s%d", tempPrefix, s.mu.temp)), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	}
	if err != nil {
		s.failed("cannot be made", err)
		return nil
	}
	return &Copy{store: s, job: j, id: id, name: name, temp: temp}
}

// Write appends to the copy.
func (c *Copy) Write(data []byte) {
	if c == nil || c.temp == nil {
		return
	}
	if _, err := c.temp.Write(data); err != nil {
		c.store.failed("cannot be written", err)
		c.Abort()
	}
}

// Commit keeps the copy, unless its checkpoint is over meanwhile. Nothing is synced: who reads it verifies it.
func (c *Copy) Commit() {
	if c == nil || c.temp == nil {
		return
	}
	defer c.Abort()
	if err := c.temp.Close(); err != nil {
		c.store.failed("cannot be written", err)
		return
	}
	if err := c.store.publish(c.job, c.id, c.name, func(file string) error { return os.Rename(c.temp.Name(), file) }); err != nil {
		c.store.failed("cannot be kept", err)
	}
}

// Abort forgets the copy. It does nothing after Commit.
func (c *Copy) Abort() {
	if c == nil || c.temp == nil {
		return
	}
	// Errors mean that it is gone already, or stays until the next process sweeps.
	_ = c.temp.Close()
	_ = os.Remove(c.temp.Name())
	c.temp = nil
}

// publish gives a file its name among the copies of a checkpoint, if they are still wanted.
func (s *Store) publish(j job.ID, id checkpoint.ID, name string, put func(file string) error) error {
	s.mu.Lock()
	c, err := s.job(j)
	var gone []checkpoint.ID
	if err == nil && c.wants(id) {
		gone = c.add(id)
		file := filePath(s.mu.root, j, id, name)
		if err = os.MkdirAll(filepath.Dir(file), 0o755); err == nil {
			err = put(file)
		}
	}
	root := s.mu.root
	s.mu.Unlock()
	s.remove(root, j, gone)
	return err
}

// Links reports whether files of the storage can be linked, as far as is known: then Keep costs nothing.
func (s *Store) Links() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.mu.far
}

// Keep makes the file at path the copy of a file of a checkpoint: it is linked, so that the bytes are there once, or else copied. The file must not
// change any more.
func (s *Store) Keep(j job.ID, id checkpoint.ID, name, path string) {
	err := s.publish(j, id, name, func(file string) error { return os.Link(path, file) })
	if err == nil || errors.Is(err, fs.ErrExist) {
		return
	}
	in, openErr := os.Open(path)
	if openErr != nil {
		s.failed("cannot be made", openErr)
		return
	}
	defer func() { _ = in.Close() }() // is only read
	s.mu.Lock()
	s.mu.far = true
	s.mu.Unlock()
	c := s.Create(j, id, name)
	if c == nil {
		return
	}
	defer c.Abort()
	if _, err := io.Copy(c.temp, in); err != nil {
		s.failed("cannot be made", err)
		return
	}
	c.Commit()
}
