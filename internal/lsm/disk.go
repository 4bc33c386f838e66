package lsm

import (
	"context"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/cached"
)

// Disk makes stores that share a cache of blocks. It implements cached.Disk.
type Disk struct {
	Cache *Cache
	FS    vfs.FS // nil: that of the operating system
}

// Open implements cached.Disk.
func (d Disk) Open(dir string) (cached.Store, error) {
	s, err := Open(Config{Dir: dir, Cache: d.Cache, FS: d.FS})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Restore implements cached.Disk.
func (d Disk) Restore(ctx context.Context, dir string, parts []cached.Part) (cached.Store, error) {
	s, err := Restore(ctx, Config{Dir: dir, Cache: d.Cache, FS: d.FS}, parts)
	if err != nil {
		return nil, err
	}
	return s, nil
}
