package lsm

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/cached"
)

// Files are cut where shards end, so that merging those of one shard leaves the others alone. A shard is 1<<bits neighbouring key groups; bits is such
// that a shard has about shardBytes.
const (
	shardBytes = 32 << 20
	maxShards  = 64
)

// shardsFor is the number of shards for that many bytes.
func shardsFor(bytes int64) int {
	n := 1
	for n < maxShards && bytes/int64(n) > shardBytes {
		n *= 2
	}
	return n
}

// writer takes entries in ascending order of their keys.
type writer struct {
	store *Store
	bits  int // key groups of one shard: 1<<bits

	file  *sstable.Writer
	shard int
	first int // key group of the first entry, and of the latest one
	group int
	paths []string
	bytes int64 // of the files that are done
}

// Write implements cached.Store. Of two Writes the later one counts.
func (s *Store) Write(ctx context.Context, fill func(cached.Writer) error) (bytes int64, err error) {
	if err := s.usable(); err != nil {
		return 0, err
	}
	defer s.recover(&err)
	bits, err := s.shardBits()
	if err != nil {
		return 0, err
	}
	w := &writer{store: s, bits: bits}
	err = fill(w)
	if e := w.finish(); err == nil {
		err = e
	}
	if err == nil && len(w.paths) > 0 {
		err = s.fault(s.db.Ingest(ctx, w.paths))
	}
	if err != nil {
		for _, p := range w.paths {
			_ = s.fs.Remove(p) // it may be the database's own already, which then does not miss this name
		}
		return 0, err
	}
	s.credit += w.bytes * creditPercent / 100
	return w.bytes, nil
}

// Set gives key a value.
func (w *writer) Set(key, value []byte) error {
	if err := w.roll(key); err != nil {
		return err
	}
	return w.store.fault(w.file.Set(key, value))
}

// Delete takes key away.
func (w *writer) Delete(key []byte) error {
	if err := w.roll(key); err != nil {
		return err
	}
	return w.store.fault(w.file.Delete(key))
}

// groupBytes is how many bytes of a key are its key group.
const groupBytes = 2

// roll begins a file if there is none, or if key belongs into another one.
func (w *writer) roll(key []byte) error {
	group := groupOf(key)
	if w.file != nil && !w.ends(group) {
		w.group = group
		return nil
	}
	if err := w.finish(); err != nil {
		return err
	}
	s := w.store
	path := s.fs.PathJoin(s.dir, fmt.Sprintf("staged-%d", s.staged))
	s.staged++
	f, err := s.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return s.fault(err)
	}
	if len(w.paths) == 0 {
		w.first = group
	}
	w.paths = append(w.paths, path)
	w.group, w.shard = group, group>>w.bits
	w.file = sstable.NewWriter(objstorageprovider.NewFileWritable(f), s.options.MakeWriterOptions(0, s.db.TableFormat()))
	return nil
}

// ends reports whether the file must end before an entry of a key group: at the end of a shard, and when much is written at once, where the shards
// will end that there are then.
func (w *writer) ends(group int) bool {
	if group == w.group {
		return w.file.Raw().EstimatedSize() >= 2*shardBytes // a key group that is as large as several shards
	}
	if group>>w.bits != w.shard {
		return true
	}
	density := (w.bytes + int64(w.file.Raw().EstimatedSize())) / int64(group-w.first)
	bits := w.bits
	for bits > 0 && density<<bits > shardBytes {
		bits--
	}
	return group>>bits != w.group>>bits
}

func (w *writer) finish() error {
	if w.file == nil {
		return nil
	}
	file := w.file
	w.file = nil
	if err := file.Close(); err != nil {
		return w.store.fault(err)
	}
	meta, err := file.Metadata()
	if err != nil {
		return w.store.fault(err)
	}
	w.bytes += int64(meta.Size)
	return nil
}

func (s *Store) usable() error {
	if s.broken.Load() {
		return s.fault(fatalError{"the database has been given up after an earlier error"})
	}
	return s.fault(nil)
}
