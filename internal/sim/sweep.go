package sim

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/weirstream/weir/internal/board"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/retention"
)

// sweepFacts looks at the storage as a sweep does.
func (s *Sim) sweepFacts(ctx context.Context, safeAge time.Duration) (retention.SweepFacts, error) {
	facts := retention.SweepFacts{SafeAge: safeAge, Metadata: map[string]*checkpoint.Metadata{}}
	infos, err := s.store.List(ctx, "")
	if err != nil {
		return facts, err
	}
	for _, info := range infos {
		facts.Items = append(facts.Items, retention.StoredItem{Path: info.Path, Kind: retention.StoredFile, Age: s.now.Sub(info.ModTime)})
	}
	for _, info := range infos {
		dir, name := path.Split(info.Path)
		if name != checkpoint.MetadataFile {
			continue
		}
		data, err := s.store.ReadFile(ctx, info.Path, checkpoint.MaxMetadataBytes)
		if err != nil {
			return facts, err
		}
		md, err := checkpoint.DecodeMetadata(data)
		if err != nil {
			return facts, err
		}
		facts.Metadata[strings.TrimSuffix(dir, "/")] = md
	}
	return facts, nil
}

// sweep deletes what no checkpoint refers to while the job runs, in steps between which anything may happen. It is far less patient than a real one.
func (m *master) sweep() {
	if m.life.over {
		return
	}
	live := m.liveCheckpoints()
	var orphans []string
	var facts retention.SweepFacts
	m.beside("sweep", 0, func(ctx context.Context) {
		var err error
		if facts, err = m.s.sweepFacts(ctx, m.s.upTo(2*time.Second)); err == nil {
			facts.Live = live
			orphans = retention.Orphans(facts)
		}
	}, func() {
		for _, name := range orphans {
			m.beside("sweep "+name, 0, func(ctx context.Context) {
				if metadata := facts.MustBeGone(name); metadata != "" && m.s.store.Remove(ctx, metadata) != nil {
					return
				}
				if m.s.store.Remove(ctx, name) == nil {
					m.s.faults["orphan swept"]++
				}
			}, func() {})
		}
	})
}

func (m *master) liveCheckpoints() map[job.ID]retention.Activity {
	return map[job.ID]retention.Activity{m.s.job: board.Activity(m.coord.History())}
}

// checkLeft is I4: when a job is over and a sweep has been there, every file is referred to, and nothing is there that was to be deleted.
func (s *Sim) checkLeft() {
	s.quietly(func() {
		facts, err := s.sweepFacts(context.Background(), 0)
		if err != nil {
			s.violate("I4", "the job is over, and %v", err)
			return
		}
		orphans := retention.Orphans(facts)
		for _, item := range facts.Items {
			dir, name := path.Split(item.Path)
			dir = strings.TrimSuffix(dir, "/")
			md := facts.Metadata[dir]
			owner, _, own := checkpoint.ParseDir(dir)
			own = own && owner == s.job || s.origin != nil && s.origin.claimed && dir == s.origin.dir
			switch {
			case own && md != nil && s.watch.leaders.end.DeleteAll:
				s.violate("I4", "the job is over, its checkpoints were to be deleted, and %s is there", item.Path)
			case sharedBy(&facts, item.Path):
			case name != checkpoint.MetadataFile && !slices.Contains(orphans, item.Path) && (md == nil || !slices.Contains(md.Files(), name)):
				s.violate("I4", "the job is over, and nothing refers to %s", item.Path)
			}
		}
	})
}
