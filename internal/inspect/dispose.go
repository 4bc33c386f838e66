package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/storage"
)

// Dispose deletes the checkpoint or savepoint at location, its metadata first. Whether a job still uses it is for the caller to know.
func Dispose(ctx context.Context, location string) error {
	parent, name := path.Split(path.Clean(Directory(location)))
	names, err := filesIn(ctx, Directory(location))
	if err != nil {
		return err
	}
	files, err := storage.OpenExisting(cmp.Or(parent, "."))
	if err != nil {
		return err
	}
	metadata, err := files.ReadFile(ctx, path.Join(name, checkpoint.MetadataFile), checkpoint.MaxMetadataBytes)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	if err := checkpoint.CheckDisposable(name, names, metadata); err != nil {
		return fmt.Errorf("%s: %w", location, err)
	}
	return storage.DiscardCheckpoint(ctx, files, name)
}
