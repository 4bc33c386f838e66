package jobmaster

import (
	"context"
	"fmt"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// Stop implements gateway.Jobs. The savepoint is the caller's from the moment it has completed: whatever happens to the job after that, the
// answer names it. As with Watch, the job's deletions are done when it returns.
func (m *JobMaster) Stop(ctx context.Context, r gateway.StopJob) (gateway.StopResult, error) {
	dir, err := m.savepointDir(r.Job, r.Directory)
	if err != nil {
		return gateway.StopResult{}, err
	}
	want := job.Finished
	switch r.Mode {
	case job.StopSuspend, job.StopDrain:
	case job.StopCancel:
		want = job.Canceled
	default:
		return gateway.StopResult{}, &gateway.Error{
			Code: gateway.InvalidArgument, Reason: gateway.ReasonBadParameter, Job: r.Job,
			Message: fmt.Sprintf("a job cannot be stopped in mode %s", r.Mode), Remedy: "the modes are suspend, drain and cancel",
		}
	}
	var out gateway.StopResult
	if out.Savepoint, err = m.trigger(ctx, r.Job, r.Epoch, triggerRequest{kind: checkpoint.Savepoint, directory: dir, stop: r.Mode, format: r.Format}); err != nil {
		return out, err
	}
	var detail string
	err = m.Watch(ctx, r.Job, func(s gateway.JobStatus, _ []gateway.JobEvent) error {
		out.State, detail = s.State, s.Detail
		return nil
	})
	switch {
	case err != nil:
		return out, &gateway.Error{
			Code: gateway.CodeOf(err), Reason: gateway.ReasonOf(err), Job: r.Job, Checkpoint: out.Savepoint.ID,
			Message: fmt.Sprintf("savepoint %s has completed, but the end of job %s was not seen: %v", out.Savepoint.Path, r.Job, err),
			Remedy:  "GetJob shows the state of the job; it ends by itself",
		}
	case out.State != want:
		return out, &gateway.Error{
			Code: gateway.Aborted, Reason: gateway.ReasonJobTerminal, Job: r.Job, Checkpoint: out.Savepoint.ID,
			Message: fmt.Sprintf("savepoint %s has completed, but job %s is %s: %s", out.Savepoint.Path, r.Job, out.State, detail),
			Remedy:  "start the job from the savepoint: that commits what this one has left",
		}
	}
	return out, nil
}
