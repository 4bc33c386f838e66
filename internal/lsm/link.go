package lsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/cached"
)

// linked is the files of a store at one moment.
type linked struct {
	store *Store
	dir   string
	files []cached.File
}

const (
	tableSuffix  = ".sst"
	bundleSuffix = ".bundle"
	// bundleMagic begins the file with all that is not a table; the digit is the version of its form.
	bundleMagic = "weir lsm bundle 1\n"
)

// Link implements cached.Store.
func (s *Store) Link() (_ cached.Linked, err error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	defer s.recover(&err)
	s.links++
	l := &linked{store: s, dir: s.fs.PathJoin(s.dir, fmt.Sprintf("linked-%d", s.links))}
	if err := s.db.Checkpoint(l.dir); err != nil {
		return nil, s.fault(err)
	}
	if err := l.collect(); err != nil {
		return nil, errors.Join(s.fault(err), l.Remove())
	}
	return l, s.fault(nil) // what Pebble has written down since may be incomplete
}

// Files implements cached.Linked.
func (l *linked) Files() []cached.File { return l.files }

// Remove implements cached.Linked.
func (l *linked) Remove() error { return l.store.fault(l.store.fs.RemoveAll(l.dir)) }

// collect names the tables, and puts everything else, which is small and different each time, into one file.
func (l *linked) collect() error {
	fs := l.store.fs
	names, err := fs.List(l.dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	bundle := []byte(bundleMagic)
	for _, name := range names {
		path := fs.PathJoin(l.dir, name)
		if !strings.HasSuffix(name, tableSuffix) {
			if bundle, err = appendFile(bundle, fs, name, path); err != nil {
				return err
			}
			continue
		}
		info, err := fs.Stat(path)
		if err != nil {
			return err
		}
		l.files = append(l.files, cached.File{Name: l.store.nameOf(name), Path: path, Size: info.Size()})
	}
	name := fmt.Sprintf("%s-%d%s", l.store.lineage, l.store.links, bundleSuffix)
	path := fs.PathJoin(l.dir, name)
	if err := writeFile(fs, path, bundle); err != nil {
		return err
	}
	l.files = append(l.files, cached.File{Name: name, Path: path, Size: int64(len(bundle))})
	return nil
}

// nameOf is what a table is called outside: by the store that made it and its number there.
func (s *Store) nameOf(table string) string {
	if name, ok := s.given[table]; ok {
		return name
	}
	return s.lineage + "-" + table
}

// tableOf is the inverse of nameOf, whichever store it was.
func tableOf(name string) (string, bool) {
	_, table, ok := strings.Cut(name, "-")
	return table, ok && strings.HasSuffix(table, tableSuffix)
}

// appendFile appends name and content of a file, each behind its length.
func appendFile(dst []byte, fs vfs.FS, name, path string) ([]byte, error) {
	content, err := readFile(fs, path)
	if err != nil {
		return dst, err
	}
	for _, part := range [][]byte{[]byte(name), content} {
		dst = append(binary.AppendUvarint(dst, uint64(len(part))), part...)
	}
	return dst, nil
}

var errBundle = errors.New("the bundle of a snapshot is damaged")

// unbundle calls f for each file in a bundle.
func unbundle(data []byte, f func(name string, content []byte) error) error {
	data, ok := bytes.CutPrefix(data, []byte(bundleMagic))
	if !ok {
		return fmt.Errorf("%w, or of another version of Weir: it begins with %.20q", errBundle, data)
	}
	next := func() ([]byte, bool) {
		n, size := binary.Uvarint(data)
		if size <= 0 || n > uint64(len(data)-size) {
			return nil, false
		}
		part := data[size : size+int(n)]
		data = data[size+int(n):]
		return part, true
	}
	for len(data) > 0 {
		first, ok1 := next()
		content, ok2 := next()
		name := string(first)
		if !ok1 || !ok2 || name == "" || strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, "..") {
			return errBundle
		}
		if err := f(name, content); err != nil {
			return err
		}
	}
	return nil
}

func readFile(fs vfs.FS, path string) (data []byte, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return io.ReadAll(f)
}

func writeFile(fs vfs.FS, path string, data []byte) error {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
