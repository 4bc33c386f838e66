package jobmaster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/location"
	"github.com/weirstream/weir/internal/retention"
)

// DisposeSavepoint implements gateway.Jobs. The metadata goes first, so that nobody finds a half of it.
func (m *JobMaster) DisposeSavepoint(ctx context.Context, given string) error {
	dir := m.cfg.Archive.Name(given)
	refuse := func(code gateway.Code, err error, remedy string) error {
		return &gateway.Error{Code: code, Reason: gateway.ReasonBadCheckpoint, Message: fmt.Sprintf("cannot delete %s: %v", location.Redacted(given), err), Remedy: remedy}
	}
	if !location.Is(dir) && !strings.Contains(dir, "/") { // all checkpoints of a job, or of all jobs
		return refuse(gateway.InvalidArgument, retention.ErrNotOurs, "name a directory chk-<n> or savepoint-<job>-<name>, by its absolute path")
	}
	if user, used := m.userOf(dir); used {
		return refuse(gateway.FailedPrecondition, fmt.Errorf("job %s uses it", user), "cancel the job first, or take the path of another one")
	}
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	if err := m.cfg.Archive.Dispose(ctx, dir, !m.runsIn(dir)); errors.Is(err, retention.ErrNotOurs) {
		return refuse(gateway.InvalidArgument, err, "weir savepoint list shows what is in a directory")
	} else if err != nil {
		return refuse(gateway.Aborted, err, "see to the cause, then try again")
	}
	m.cfg.Log.Info("checkpoint or savepoint deleted, as it was asked for", zap.String("dir", dir))
	return nil
}

// runsIn reports whether dir is a checkpoint's of a job that has not ended, whose tasks may refer to the shared files beside it.
func (m *JobMaster) runsIn(dir string) bool {
	j, _, ok := checkpoint.ParseDir(dir)
	_, live := m.liveCheckpoints()[j]
	return ok && live
}
