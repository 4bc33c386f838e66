package sim

import (
	"context"
	"errors"
	"math"
	"path"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/retention"
	"github.com/weirstream/weir/internal/storage"
)

// What the job master does with the files that checkpoints share, as packages archive and jobmaster have it.

func (s *Sim) removeShared(ctx context.Context, j job.ID, names []string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, s.store.Remove(ctx, checkpoint.SharedDir(j)+"/"+name))
	}
	return errors.Join(errs...)
}

// discardClaimed deletes a checkpoint of another job with the shared files that go with it.
func (s *Sim) discardClaimed(ctx context.Context, dir string) error {
	var names []string
	owner, _, chk := checkpoint.ParseDir(dir)
	if md, err := s.readMetadata(dir); err == nil && chk {
		files, err := s.filesOf(ctx, path.Dir(dir))
		if err != nil {
			return err
		}
		names = retention.Unshared(md, s.metadataOf(files, dir))
	}
	if err := storage.DiscardCheckpoint(ctx, s.store, dir); err != nil {
		return err
	}
	return s.removeShared(ctx, owner, names)
}

// metadataOf reads the metadata among files, but that in one directory.
func (s *Sim) metadataOf(files []string, but string) []*checkpoint.Metadata {
	var out []*checkpoint.Metadata
	for _, f := range files {
		if dir, name := path.Split(f); name == checkpoint.MetadataFile && path.Clean(dir) != but {
			md, err := s.readMetadata(path.Clean(dir))
			if err != nil {
				md = nil
			}
			out = append(out, md)
		}
	}
	return out
}

// readOlder reads the checkpoints that newer ones take the place of, oldest first.
func (m *master) readOlder(ctx context.Context, got retention.Recovery) (older []*checkpoint.Completed, files []string, err error) {
	if o := m.records.job; got.Latest > 0 && o.Claimed {
		older = append(older, &checkpoint.Completed{Dir: o.Restore, Claimed: true}) // it counts as the oldest
	}
	for _, id := range got.Older {
		c := &checkpoint.Completed{Dir: checkpoint.Dir(m.s.job, id)}
		if md, err := m.s.readMetadata(c.Dir); err == nil && m.s.missing(c.Dir, md) == "" {
			c.Metadata = md
		}
		older = append(older, c)
	}
	files, err = m.s.filesOf(ctx, checkpoint.JobDir(m.s.job))
	return older, files, err
}

// missing names a file that a checkpoint refers to and that is not there.
func (s *Sim) missing(dir string, md *checkpoint.Metadata) string {
	there := map[string]bool{}
	for _, f := range s.list() {
		there[f] = true
	}
	for _, f := range md.Files() {
		if !there[path.Join(dir, f)] {
			return f
		}
	}
	for _, f := range md.SharedFiles() {
		if !there[path.Join(path.Dir(dir), checkpoint.SharedPath(f))] {
			return f
		}
	}
	return ""
}

// removeUnfinished deletes what nobody will complete, and then the shared files that nothing else refers to.
func (m *master) removeUnfinished(got retention.Recovery, latest *checkpoint.Completed, older []*checkpoint.Completed, files []string) {
	var kept []*checkpoint.Metadata
	for _, c := range append(older, latest) {
		if c != nil && !c.Claimed && (c.Metadata == nil || c.Metadata.Job == m.s.job) {
			kept = append(kept, c.Metadata)
		}
	}
	if latest != nil && latest.Stopped {
		files = nil
	}
	m.storage("remove what is unfinished", 0, func(ctx context.Context) coordinator.Event {
		for _, id := range got.Unfinished {
			if err := storage.DiscardCheckpoint(ctx, m.s.store, checkpoint.Dir(m.s.job, id)); err != nil {
				m.s.note("unfinished checkpoint %d stays: %v", id, err)
			}
		}
		if err := m.s.removeLeft(ctx, files, kept, got.LastID); err != nil {
			m.s.note("shared files stay: %v", err)
		}
		return nil
	})
}

func (s *Sim) removeLeft(ctx context.Context, files []string, kept []*checkpoint.Metadata, upTo checkpoint.ID) error {
	names, settle := retention.SharedLeft(s.job, files, kept, upTo)
	for _, id := range settle {
		if err := storage.DiscardCheckpoint(ctx, s.store, checkpoint.Dir(s.job, id)); err != nil {
			return err
		}
	}
	if len(names) > 0 {
		s.faults["shared files left behind are deleted"]++
	}
	return s.removeShared(ctx, s.job, names)
}

// removeSharedLeft deletes the shared files that nothing refers to that stays after the job.
func (s *Sim) removeSharedLeft(ctx context.Context) error {
	files, err := s.filesOf(ctx, checkpoint.JobDir(s.job))
	if err != nil {
		return err
	}
	return s.removeLeft(ctx, files, s.metadataOf(files, ""), math.MaxInt64)
}
