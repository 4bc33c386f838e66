package jobmaster

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/board"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/retention"
)

// Sweeping is how the checkpoint directory is swept beside the jobs.
type Sweeping struct {
	Interval time.Duration // 0: never
	// Sweep deletes the files that no checkpoint refers to and says which those were, also with an error. live gives the running jobs.
	Sweep func(ctx context.Context, live func() map[job.ID]retention.Activity) ([]string, error)
}

// sweep sweeps at the interval until ctx ends. A failure is logged; the next sweep tries again.
func (m *JobMaster) sweep(ctx context.Context) {
	s := m.cfg.Sweeping
	timer := time.NewTimer(s.Interval)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		removed, err := s.Sweep(ctx, m.liveCheckpoints)
		if err != nil && ctx.Err() == nil {
			m.cfg.Log.Warn("sweep the checkpoint directory", zap.Error(err))
		}
		if len(removed) > 0 {
			m.cfg.Log.Info("swept the checkpoint directory", zap.Int("removed", len(removed)), zap.Strings("paths", removed[:min(len(removed), maxSweptPaths)]))
		}
		timer.Reset(s.Interval)
	}
}

// maxSweptPaths is how many of the paths that a sweep has removed are logged.
const maxSweptPaths = 100

// liveCheckpoints gives the jobs that may still write checkpoints. Of one whose checkpoints are not known (yet) all stays.
func (m *JobMaster) liveCheckpoints() map[job.ID]retention.Activity {
	out := map[job.ID]retention.Activity{}
	for _, l := range m.loops() {
		if !l.hasEnded() {
			out[l.id] = board.Activity(l.board.Read().Checkpoints)
		}
	}
	return out
}
