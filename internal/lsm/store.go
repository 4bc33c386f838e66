package lsm

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// blockSize is that of the blocks that are read and unpacked for one key, in bytes.
	blockSize = 4 << 10
	// bitsPerKey of the filters, which say for most keys that a file does not have them.
	bitsPerKey = 10
	// memtableSize is the least that Pebble gets by with: nothing is written to a memtable.
	memtableSize = 64 << 10
	// maxManifest bounds the file of Pebble that each snapshot has a copy of.
	maxManifest = 128 << 10
	// maxOpenFiles bounds the files that one store has open.
	maxOpenFiles = 512
)

// Cache is the blocks in memory of all stores of a process. It must be closed.
type Cache struct{ blocks *pebble.Cache }

// NewCache returns a cache of about so many bytes.
func NewCache(bytes int64) *Cache { return &Cache{pebble.NewCache(bytes)} }

// Close lets go of the memory when all stores are closed.
func (c *Cache) Close() { c.blocks.Unref() }

// Config is what a store is made of.
type Config struct {
	Dir   string // that does not exist or is empty
	Cache *Cache
	FS    vfs.FS // nil: that of the operating system
}

// Store is an open database. Its zero value is not usable; see Open.
type Store struct {
	dir     string
	fs      *scratchFS
	options *pebble.Options
	db      *pebble.DB
	lineage string            // a name that no other store has
	given   map[string]string // names of files that are older than this store, by their names in dir
	staged  int               // files that were written and have no number yet
	links   int               // directories that were linked
	credit  int64             // bytes that may be rewritten; see Tidy
	broken  atomic.Bool       // Pebble has given up: it must not be called any more
}

// Open makes a store that is empty.
func Open(cfg Config) (*Store, error) {
	s, err := prepare(cfg)
	if err != nil {
		return nil, err
	}
	return s, s.open()
}

// prepare is Open without the database.
func prepare(cfg Config) (*Store, error) {
	if cfg.FS == nil {
		cfg.FS = vfs.Default
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails, says its documentation
	s := &Store{dir: cfg.Dir, fs: &scratchFS{FS: cfg.FS}, lineage: hex.EncodeToString(random[:])}
	s.options = s.pebbleOptions(cfg.Cache)
	if err := s.fs.MkdirAll(s.dir, 0o755); err != nil {
		return nil, s.fault(err)
	}
	return s, nil
}

func (s *Store) open() (err error) {
	defer s.recover(&err)
	if s.db, err = pebble.Open(s.dir, s.options); err != nil {
		return s.fault(err)
	}
	return nil
}

func (s *Store) pebbleOptions(cache *Cache) *pebble.Options {
	o := &pebble.Options{
		FS: s.fs, Cache: cache.blocks, Logger: logger{s}, FormatMajorVersion: pebble.FormatNewest,
		DisableWAL: true, MemTableSize: memtableSize, MaxOpenFiles: maxOpenFiles, MaxManifestFileSize: maxManifest, NumPrevManifest: 1,
		DisableAutomaticCompactions: true, DisableTableStats: true, L0StopWritesThreshold: 1 << 20, NoSyncOnClose: true,
	}
	// Damage is an error of who reads it, and no more.
	o.EventListener = &pebble.EventListener{DataCorruption: func(pebble.DataCorruptionInfo) {}}
	// Files are as large as those who write them want.
	for i := range o.TargetFileSizes {
		o.TargetFileSizes[i] = 2 * shardBytes
	}
	for i := range o.Levels {
		l := &o.Levels[i]
		l.BlockSize, l.FilterPolicy, l.FilterType = blockSize, bloom.FilterPolicy(bitsPerKey), pebble.TableFilter
		l.Compression = func() *sstable.CompressionProfile { return sstable.SnappyCompression }
	}
	return o
}

// Get returns the value of key, which is good until done is closed; done is nil if there is none.
func (s *Store) Get(key []byte) (value []byte, done io.Closer, err error) {
	value, done, err = s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil, nil
	}
	return value, done, s.fault(err)
}

// Close ends the store. Views must be closed before. The files stay.
func (s *Store) Close() (err error) {
	if s.db == nil || s.broken.Load() {
		return nil
	}
	defer s.recover(&err)
	return s.fault(s.db.Close())
}

// fault says where it happened and what to do.
func (s *Store) fault(err error) error {
	if err == nil {
		err = s.fs.failure()
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("state in %s: %w; make room on that disk, or choose another one with --data-dir", s.dir, err)
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return fmt.Errorf("state in %s: %w; the attempt cannot go on, a restart begins from the checkpoint with a new directory; if it comes again, check the disk, or choose another one with --data-dir",
		s.dir, err)
}

// fatalError is what Pebble cannot go on after.
type fatalError struct{ text string }

func (e fatalError) Error() string { return e.text }

// recover makes an error of what Pebble has given up for. The database may hold locks for ever: it is left alone from now on.
func (s *Store) recover(err *error) {
	switch r := recover().(type) {
	case nil:
	case fatalError:
		s.broken.Store(true)
		*err = s.fault(r)
	default:
		panic(r)
	}
}

// logger is silent but where Pebble wants the process to end.
type logger struct{ s *Store }

func (logger) Infof(string, ...any)  {}
func (logger) Errorf(string, ...any) {}
func (l logger) Fatalf(format string, args ...any) {
	panic(fatalError{fmt.Sprintf(format, args...)})
}
