package archive

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/retention"
)

// RemoveLeft deletes the shared files that none of a job's checkpoints refers to, by the files in its directory; see retention.SharedLeft.
func (a *Archive) RemoveLeft(ctx context.Context, id job.ID, files []string, kept []*checkpoint.Metadata, upTo checkpoint.ID) error {
	names, settle := retention.SharedLeft(id, files, kept, upTo)
	for _, n := range settle {
		if err := a.Discard(ctx, checkpoint.Dir(id, n)); err != nil {
			return err
		}
	}
	return a.RemoveShared(ctx, checkpoint.JobDir(id), names)
}

// CleanUp deletes what a job leaves behind that has ended: checkpoints that nobody has completed, the others too if none is to be kept, and the shared
// files that no checkpoint refers to that stays. Its directory goes when nothing is left in it.
func (a *Archive) CleanUp(ctx context.Context, id job.ID, keep bool) error {
	dir := checkpoint.JobDir(id)
	files, err := a.Root.Files(ctx, dir)
	if err != nil {
		return err
	}
	for _, n := range retention.Leftovers(id, files, keep) {
		if err := a.Discard(ctx, checkpoint.Dir(id, n)); err != nil {
			return err
		}
	}
	return a.CleanUpShared(ctx, id)
}

// CleanUpShared is the part of CleanUp that needs no knowledge of which checkpoints are to be kept: it is for a job whose coordinator has deleted
// the others.
func (a *Archive) CleanUpShared(ctx context.Context, id job.ID) error {
	dir := checkpoint.JobDir(id)
	files, err := a.Root.Files(ctx, dir)
	if err != nil {
		return err
	}
	if names, _ := retention.SharedLeft(id, files, nil, math.MaxInt64); len(names) > 0 {
		inside := slices.Clone(files)
		for i := range inside {
			inside[i] = strings.TrimPrefix(inside[i], dir+"/")
		}
		kept, err := a.metadataIn(ctx, dir, inside)
		if err != nil {
			return err
		}
		if err := a.RemoveLeft(ctx, id, files, kept, math.MaxInt64); err != nil {
			return err
		}
		if files, err = a.Root.Files(ctx, dir); err != nil {
			return err
		}
	}
	if len(files) == 0 {
		return a.Root.RemoveAll(ctx, dir)
	}
	shared := checkpoint.SharedDir(id)
	if !slices.ContainsFunc(files, func(f string) bool { return strings.HasPrefix(f, shared+"/") }) {
		return a.Root.RemoveAll(ctx, shared)
	}
	return nil
}
