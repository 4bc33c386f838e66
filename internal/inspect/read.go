package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/location"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/storage/schemes"
)

// ErrNotCheckpoint: the directory holds no completed checkpoint or savepoint.
var ErrNotCheckpoint = errors.New("no completed checkpoint or savepoint is there")

// Stored is a completed checkpoint or savepoint in its directory.
type Stored struct {
	Location string // of the directory, as it was given
	Metadata *checkpoint.Metadata

	files storage.Storage
	dir   string // in files; "" is the root
}

// Read reads the metadata of the checkpoint at a location, which is its directory or the _metadata file in it, as a path or a URL.
// It gives storage.ErrNotFound when there is no such directory, and ErrNotCheckpoint when there is no metadata in it.
func Read(ctx context.Context, at string) (*Stored, error) {
	at = Directory(at)
	files, err := schemes.OpenExisting(ctx, at)
	if err != nil {
		return nil, err
	}
	return read(ctx, files, "", at)
}

// Directory is the directory that is meant by the path of a checkpoint, where people may name its _metadata file too.
func Directory(at string) string {
	if parent, name := location.Split(at); name == checkpoint.MetadataFile {
		return cmp.Or(parent, ".")
	}
	return at
}

// ReadFrom reads the metadata of the checkpoint in a directory of a storage.
func ReadFrom(ctx context.Context, files storage.Storage, dir string) (*Stored, error) {
	return read(ctx, files, dir, dir)
}

func read(ctx context.Context, files storage.Storage, dir, location string) (*Stored, error) {
	data, err := files.ReadFile(ctx, path.Join(dir, checkpoint.MetadataFile), checkpoint.MaxMetadataBytes)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, fmt.Errorf("%s: %w: it has no %s", location, ErrNotCheckpoint, checkpoint.MetadataFile)
	}
	if err != nil {
		return nil, err
	}
	md, err := checkpoint.DecodeMetadata(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", location, checkpoint.MetadataFile, err)
	}
	return &Stored{Location: location, Metadata: md, files: files, dir: dir}, nil
}

// Choose reads the checkpoint that is meant by a location, as a submission with the same path and the same fallback would. skipped says which
// newer ones cannot be read.
func Choose(ctx context.Context, at string, fallback bool) (s *Stored, skipped []error, err error) {
	stored := map[string]*Stored{}
	choice, err := checkpoint.Choose(Directory(at), fallback,
		func(dir string) ([]string, error) { return filesIn(ctx, dir) },
		func(dir string) (*checkpoint.Metadata, error) {
			s, err := Read(ctx, dir)
			if err != nil {
				return nil, err
			}
			names, err := filesIn(ctx, dir)
			if err != nil {
				return nil, err
			}
			stored[dir] = s
			if err := s.Metadata.CheckFiles(names); err != nil {
				return s.Metadata, err
			}
			return s.Metadata, s.checkShared(ctx)
		})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", at, err)
	}
	return stored[choice.Dir], choice.Skipped, nil
}

func filesIn(ctx context.Context, dir string) ([]string, error) {
	files, err := schemes.OpenExisting(ctx, cmp.Or(dir, "."))
	if err != nil {
		return nil, err
	}
	infos, err := files.List(ctx, "")
	names := make([]string, len(infos))
	for i, info := range infos {
		names[i] = info.Path
	}
	return names, err
}
