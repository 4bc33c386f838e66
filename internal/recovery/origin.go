package recovery

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weirstream/weir/internal/archive"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/location"
	"github.com/weirstream/weir/internal/stateschema"
)

// Origin is the checkpoint that a job starts from when it is submitted.
type Origin struct {
	Completed *checkpoint.Completed // nil: an empty start
	Remarks   []Remark              // that the timeline of the job begins with
}

// Remark is a line of a job's timeline about the checkpoint that it starts from.
type Remark string

// String is the line.
func (r Remark) String() string { return string(r) }

// Choose reads the checkpoint that a job is to start from; nil: none. A path below the checkpoint directory is kept relative to it, so that it
// means the same in every process.
func Choose(ctx context.Context, a *archive.Archive, r gateway.Submission) (*checkpoint.Choice, error) {
	if r.RestorePath == "" {
		return nil, nil
	}
	choice, err := checkpoint.Choose(a.Name(r.RestorePath), r.Fallback,
		func(dir string) ([]string, error) { return a.Files(ctx, dir) },
		func(dir string) (*checkpoint.Metadata, error) { return a.Read(ctx, dir) },
	)
	if err != nil {
		return nil, BadOrigin(r.RestorePath, err)
	}
	return &choice, nil
}

// Adopt gives a job that does not choose a number of key groups that of the checkpoint.
func Adopt(r gateway.Submission, from *checkpoint.Choice) (job.Options, error) {
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

// Fit sees whether the job can take over the state of the checkpoint.
func Fit(r gateway.Submission, choice *checkpoint.Choice, g *job.Graph) (Origin, error) {
	if choice == nil {
		return Origin{}, nil
	}
	md, dropped, err := checkpoint.Fit(choice.Metadata, g, r.AllowNonRestored)
	if err == nil {
		err = stateschema.Check(md, g)
	}
	if err != nil {
		return Origin{}, BadOrigin(r.RestorePath, err)
	}
	out := Origin{Completed: &checkpoint.Completed{Dir: choice.Dir, Metadata: md, Claimed: r.Claim}}
	for _, skipped := range choice.Skipped {
		out.Remarks = append(out.Remarks, Remark("WARNING: "+skipped.Error()))
	}
	if len(choice.Skipped) > 0 {
		out.Remarks = append(out.Remarks, Remark(fmt.Sprintf("WARNING: starts from the older %s %d in %s instead, as --fallback allows", md.Kind, md.ID, choice.Dir)))
	}
	for _, operator := range dropped {
		out.Remarks = append(out.Remarks, Remark(fmt.Sprintf("WARNING: the state of operator %s is dropped, as --allow-non-restored-state allows", operator)))
	}
	for _, hook := range choice.Metadata.UnmatchedHooks(g) {
		out.Remarks = append(out.Remarks, Remark(fmt.Sprintf("WARNING: the state of master hook %s is dropped, as --allow-non-restored-state allows", hook)))
	}
	return out, nil
}

// BadOrigin is the answer to a submission that cannot start from what it names.
func BadOrigin(given string, err error) error {
	code := gateway.InvalidArgument
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		code = gateway.Unavailable
	}
	text := strings.ReplaceAll(fmt.Sprintf("cannot start from %s: %v", location.Redacted(given), err), "\n", "; ")
	return &gateway.Error{
		Code: code, Reason: gateway.ReasonBadCheckpoint, Message: text,
		Remedy: "weir checkpoint list shows the paths of checkpoints; start from another one, or from none",
	}
}
