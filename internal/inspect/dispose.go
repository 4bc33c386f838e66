package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/location"
	"github.com/weirstream/weir/internal/retention"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/storage/schemes"
)

// Dispose deletes the checkpoint or savepoint at a location, its metadata first, and the shared files that only it refers to. Whether a job still uses it is for the caller to know.
func Dispose(ctx context.Context, at string) error {
	parent, name := location.Split(Directory(at))
	names, err := filesIn(ctx, Directory(at))
	if err != nil {
		return err
	}
	files, err := schemes.OpenExisting(ctx, cmp.Or(parent, "."))
	if err != nil {
		return err
	}
	metadata, err := files.ReadFile(ctx, path.Join(name, checkpoint.MetadataFile), checkpoint.MaxMetadataBytes)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	if err := retention.CheckDisposable(name, names, metadata); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	shared, err := unshared(ctx, files, name, metadata)
	if err != nil {
		return err
	}
	if err := storage.DiscardCheckpoint(ctx, files, name); err != nil {
		return err
	}
	for _, f := range shared {
		err = errors.Join(err, files.Remove(ctx, checkpoint.SharedPath(f)))
	}
	return err
}
