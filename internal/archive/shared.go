package archive

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/location"
	"github.com/weirstream/weir/internal/retention"
)

// maxRemovals is how many shared files are deleted at a time.
const maxRemovals = 4

// checkShared sees that the shared files are there that the checkpoint in dir refers to. It lists once.
func (a *Archive) checkShared(ctx context.Context, dir string, md *checkpoint.Metadata) error {
	if len(md.SharedFiles()) == 0 {
		return nil
	}
	parent, _ := location.Split(dir)
	names, err := a.Files(ctx, location.Join(parent, checkpoint.SharedDirName))
	if err != nil {
		return fmt.Errorf("files that checkpoints share: %w", err)
	}
	return md.CheckShared(names)
}

// RemoveShared deletes shared files that nothing refers to, by their names; jobDir is the directory of the job's checkpoints. It deletes what it can.
func (a *Archive) RemoveShared(ctx context.Context, jobDir string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	s, in, err := a.inside(ctx, jobDir)
	if err != nil {
		return err
	}
	errs := make([]error, len(names))
	var work sync.WaitGroup
	for part := range maxRemovals {
		work.Go(func() {
			for i := part; i < len(names); i += maxRemovals {
				errs[i] = s.Remove(ctx, in+checkpoint.SharedPath(names[i]))
			}
		})
	}
	work.Wait()
	return errors.Join(errs...)
}

// DiscardClaimed deletes a checkpoint of another job that was claimed: with the shared files that no checkpoint beside it refers to.
func (a *Archive) DiscardClaimed(ctx context.Context, dir string) error {
	parent, name := location.Split(dir)
	names, err := a.unshared(ctx, parent, name)
	if err != nil {
		return fmt.Errorf("files that checkpoints in %s share: %w", parent, err)
	}
	if err := a.Discard(ctx, dir); err != nil {
		return err
	}
	return a.RemoveShared(ctx, parent, names)
}

// unshared are the shared files of the checkpoint called name in parent that go with it; see retention.Unshared. One that cannot be read has none: what
// is left is found by a sweep.
func (a *Archive) unshared(ctx context.Context, parent, name string) ([]string, error) {
	data, err := a.metadata(ctx, location.Join(parent, name))
	if err != nil {
		return nil, nil //nolint:nilerr // it is deleted all the same, and its files are for a sweep
	}
	md, err := checkpoint.DecodeMetadata(data)
	if err != nil || len(md.SharedFiles()) == 0 {
		return nil, nil //nolint:nilerr // likewise
	}
	files, err := a.Files(ctx, parent)
	if err != nil {
		return nil, err
	}
	others, err := a.metadataIn(ctx, parent, files, name)
	return retention.Unshared(md, others), err
}

// metadataIn reads the metadata of the checkpoints in a directory, by the files in it, but those in some; nil: there is some that cannot be read.
func (a *Archive) metadataIn(ctx context.Context, dir string, files []string, but ...string) ([]*checkpoint.Metadata, error) {
	var out []*checkpoint.Metadata
	for _, file := range files {
		sub, name := path.Split(file)
		sub = path.Clean(sub)
		if name != checkpoint.MetadataFile || slices.Contains(but, sub) {
			continue
		}
		data, err := a.metadata(ctx, location.Join(dir, sub))
		if err != nil {
			return nil, err
		}
		md, err := checkpoint.DecodeMetadata(data)
		if err != nil {
			md = nil // nothing is known
		}
		out = append(out, md)
	}
	return out, nil
}
