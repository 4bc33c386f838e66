package jobmaster

import (
	"context"
	"fmt"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/location"
	"github.com/weirstream/weir/internal/recovery"
)

// chooseOrigin reads the checkpoint that a job is to start from; nil: none.
func (m *JobMaster) chooseOrigin(ctx context.Context, r gateway.Submission) (*checkpoint.Choice, error) {
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	return recovery.Choose(ctx, &m.cfg.Archive, r)
}

// fitOrigin sees whether the job can take over the state of the checkpoint, and may own it if it is to.
func (m *JobMaster) fitOrigin(r gateway.Submission, choice *checkpoint.Choice, g *job.Graph) (recovery.Origin, error) {
	from, err := recovery.Fit(r, choice, g)
	if err == nil && choice != nil && r.Claim {
		if user, used := m.userOf(choice.Dir); used {
			err = recovery.BadOrigin(r.RestorePath, fmt.Errorf("job %s uses it: cancel that job, or start without --claim", user))
		}
	}
	return from, err
}

// userOf finds the job that would miss the checkpoint in dir: it may have to restore from it.
func (m *JobMaster) userOf(dir string) (job.ID, bool) {
	for _, l := range m.loops() {
		v := l.board.Read()
		if v.Status.State.Terminal() {
			continue
		}
		if l.restored != nil && location.Same(l.restored.Dir, dir) && (l.restored.Claimed || v.Status.Last == nil) {
			return l.id, true
		}
		for _, s := range v.Checkpoints {
			ofUser := s.Kind == checkpoint.Savepoint && s.State == coordinator.StateCompleted
			if location.Same(s.Dir, dir) && s.State != coordinator.StateAborted && !s.Discarded && !ofUser {
				return l.id, true
			}
		}
	}
	return "", false
}
