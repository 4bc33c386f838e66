package inspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/retention"
	"github.com/weirstream/weir/internal/storage"
)

// maxSweepCalls is how many storage calls of a sweep run at a time.
const maxSweepCalls = 4

// Sweeping is how a checkpoint directory is swept.
type Sweeping struct {
	SafeAge time.Duration
	Now     time.Time
	DryRun  bool // find only
	// Live gives the running jobs; nil: none is known. It is called before and after the files are looked at.
	Live func() map[job.ID]retention.Activity
}

// leftovers is a storage that knows what a crash has left behind; see storage.Local.
type leftovers interface {
	Leftovers(ctx context.Context) ([]storage.Leftover, error)
	RemoveLeftover(ctx context.Context, o storage.Leftover) error
}

// Sweep deletes what no checkpoint refers to and nobody is writing; see retention.Orphans. It returns what it has deleted, also with an
// error; whatever could not be deleted is found by the next sweep.
func Sweep(ctx context.Context, files storage.Storage, s Sweeping) (removed []string, err error) {
	before := s.live()
	facts := retention.SweepFacts{SafeAge: s.SafeAge}
	infos, err := files.List(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, info := range infos {
		facts.Items = append(facts.Items, retention.StoredItem{Path: info.Path, Kind: retention.StoredFile, Age: s.Now.Sub(info.ModTime)})
	}
	lost, err := s.addLeftovers(ctx, files, &facts)
	if err != nil {
		return nil, err
	}
	if facts.Metadata, err = allMetadata(ctx, files, infos); err != nil {
		return nil, err
	}
	facts.Live = merge(before, s.live())
	orphans, err := unmoved(ctx, files, &facts, retention.Orphans(facts))
	if err != nil {
		return nil, err
	}
	if s.DryRun {
		return orphans, nil
	}
	gone := sync.Map{} // of metadata: func() error
	return removeEach(ctx, orphans, func(ctx context.Context, name string) error {
		if o, ok := lost[name]; ok {
			return files.(leftovers).RemoveLeftover(ctx, o)
		}
		if metadata := facts.MustBeGone(name); metadata != "" {
			settle, _ := gone.LoadOrStore(metadata, sync.OnceValue(func() error { return settleGone(ctx, files, metadata) }))
			if err := settle.(func() error)(); err != nil {
				return err
			}
		}
		return files.Remove(ctx, name)
	})
}

// settleGone makes it durable that metadata is gone. One that has appeared since the sweep began stays, and so does what is beside it.
func settleGone(ctx context.Context, files storage.Storage, metadata string) error {
	_, err := files.Stat(ctx, metadata)
	switch {
	case err == nil:
		return fmt.Errorf("%s has appeared while the directory was swept", metadata)
	case !errors.Is(err, storage.ErrNotFound):
		return err
	}
	return files.Remove(ctx, metadata)
}

func (s *Sweeping) live() map[job.ID]retention.Activity {
	if s.Live == nil {
		return nil
	}
	return s.Live()
}

// merge keeps what was known before. Of a job that has begun in between nothing is known of what it has completed, so that all of it stays.
func merge(before, after map[job.ID]retention.Activity) map[job.ID]retention.Activity {
	out := maps.Clone(before)
	for j := range after {
		if _, known := before[j]; !known {
			if out == nil {
				out = map[job.ID]retention.Activity{}
			}
			out[j] = retention.Activity{}
		}
	}
	return out
}

func (s *Sweeping) addLeftovers(ctx context.Context, files storage.Storage, facts *retention.SweepFacts) (map[string]storage.Leftover, error) {
	local, ok := files.(leftovers)
	if !ok {
		return nil, nil
	}
	list, err := local.Leftovers(ctx)
	out := map[string]storage.Leftover{}
	for _, o := range list {
		out[o.Path] = o
		item := retention.StoredItem{Path: o.Path, Kind: retention.UnfinishedFile, Age: s.Now.Sub(o.ModTime)}
		if o.Dir {
			item.Kind = retention.EmptyDir
		}
		facts.Items = append(facts.Items, item)
	}
	return out, err
}

// allMetadata reads the metadata in each directory; nil: it cannot be understood. One that cannot be read for another reason ends the sweep.
func allMetadata(ctx context.Context, files storage.Storage, infos []storage.Info) (map[string]*checkpoint.Metadata, error) {
	out := map[string]*checkpoint.Metadata{}
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxSweepCalls)
	for _, info := range infos {
		dir, name := path.Split(info.Path)
		if name != checkpoint.MetadataFile {
			continue
		}
		dir = strings.TrimSuffix(dir, "/")
		g.Go(func() error {
			data, err := files.ReadFile(ctx, info.Path, checkpoint.MaxMetadataBytes)
			if errors.Is(err, storage.ErrNotFound) {
				return nil // it was deleted, and so are its files
			}
			if err != nil {
				return err
			}
			md, err := checkpoint.DecodeMetadata(data)
			if err != nil {
				md = nil // nothing is known, and nothing beside it is deleted
			}
			mu.Lock()
			defer mu.Unlock()
			out[dir] = md
			return nil
		})
	}
	return out, g.Wait()
}

// removeEach deletes what it can.
func removeEach(ctx context.Context, names []string, f func(ctx context.Context, name string) error) ([]string, error) {
	errs := make([]error, len(names))
	var g errgroup.Group
	g.SetLimit(maxSweepCalls)
	for i, name := range names {
		g.Go(func() error {
			errs[i] = f(ctx, name)
			return nil
		})
	}
	_ = g.Wait() // the errors are in errs
	var removed []string
	for i, name := range names {
		if errs[i] == nil {
			removed = append(removed, name)
		}
	}
	return removed, errors.Join(errs...)
}
