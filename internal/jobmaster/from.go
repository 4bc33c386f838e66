package jobmaster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/location"
	"github.com/weirstream/weir/internal/stateschema"
)

// origin is the checkpoint that a job starts from.
type origin struct {
	completed *checkpoint.Completed // nil: an empty start
	remarks   []remark              // that the timeline of the job begins with
}

// remark is a line of a job's timeline about the checkpoint that it starts from.
type remark string

func (r remark) String() string { return string(r) }

// chooseOrigin reads the checkpoint that a job is to start from; nil: none. A path below the checkpoint directory is kept relative to it, so that it
// means the same in every process.
func (m *JobMaster) chooseOrigin(ctx context.Context, r gateway.Submission) (*checkpoint.Choice, error) {
	if r.RestorePath == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	choice, err := checkpoint.Choose(m.cfg.Archive.Name(r.RestorePath), r.Fallback,
		func(dir string) ([]string, error) { return m.cfg.Archive.Files(ctx, dir) },
		func(dir string) (*checkpoint.Metadata, error) { return m.cfg.Archive.Read(ctx, dir) },
	)
	if err != nil {
		return nil, badOrigin(r.RestorePath, err)
	}
	return &choice, nil
}

// adopt gives a job that does not choose a number of key groups that of the checkpoint.
func adopt(r gateway.Submission, from *checkpoint.Choice) (job.Options, error) {
	if from == nil {
		return r.Options, nil
	}
	o := from.Metadata.Adopt(r.Options)
	if limit := o.MaxParallelism; r.Options.MaxParallelism == 0 && limit > 0 && o.Parallelism > limit {
		return o, &gateway.Error{
			Code: gateway.InvalidArgument, Reason: gateway.ReasonBadParameter,
			Message: fmt.Sprintf("--parallelism is %d, and the keyed state in %s has %d key groups", o.Parallelism, r.RestorePath, limit),
			Remedy:  fmt.Sprintf("choose --parallelism %d or less", limit),
		}
	}
	return o, nil
}

// fitOrigin sees whether the job can take over the state of the checkpoint.
func (m *JobMaster) fitOrigin(r gateway.Submission, choice *checkpoint.Choice, g *job.Graph) (origin, error) {
	if choice == nil {
		return origin{}, nil
	}
	md, dropped, err := checkpoint.Fit(choice.Metadata, g, r.AllowNonRestored)
	if err == nil {
		err = stateschema.Check(md, g)
	}
	if err != nil {
		return origin{}, badOrigin(r.RestorePath, err)
	}
	if user, used := m.userOf(choice.Dir); used && r.Claim {
		return origin{}, badOrigin(r.RestorePath, fmt.Errorf("job %s uses it: cancel that job, or start without --claim", user))
	}
	out := origin{completed: &checkpoint.Completed{Dir: choice.Dir, Metadata: md, Claimed: r.Claim}}
	for _, skipped := range choice.Skipped {
		out.remarks = append(out.remarks, remark("WARNING: "+skipped.Error()))
	}
	if len(choice.Skipped) > 0 {
		out.remarks = append(out.remarks, remark(fmt.Sprintf("WARNING: starts from the older %s %d in %s instead, as --fallback allows", md.Kind, md.ID, choice.Dir)))
	}
	for _, operator := range dropped {
		out.remarks = append(out.remarks, remark(fmt.Sprintf("WARNING: the state of operator %s is dropped, as --allow-non-restored-state allows", operator)))
	}
	for _, hook := range choice.Metadata.UnmatchedHooks(g) {
		out.remarks = append(out.remarks, remark(fmt.Sprintf("WARNING: the state of master hook %s is dropped, as --allow-non-restored-state allows", hook)))
	}
	return out, nil
}

func badOrigin(given string, err error) error {
	code := gateway.InvalidArgument
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		code = gateway.Unavailable
	}
	text := strings.ReplaceAll(fmt.Sprintf("cannot start from %s: %v", given, err), "\n", "; ")
	return &gateway.Error{
		Code: code, Reason: gateway.ReasonBadCheckpoint, Message: text,
		Remedy: "weir checkpoint list shows the paths of checkpoints; start from another one, or from none",
	}
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
