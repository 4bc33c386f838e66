package jobmaster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// origin is the checkpoint that a job starts from.
type origin struct {
	completed *checkpoint.Completed // nil: an empty start
	remarks   []remark              // that the timeline of the job begins with
}

// remark is a line of a job's timeline about the checkpoint that it starts from.
type remark string

func (r remark) String() string { return string(r) }

// readOrigin reads the checkpoint that a job is to start from, and sees whether the job can take over its state. A path below the
// checkpoint directory is kept relative to it, so that it means the same in every process.
func (m *JobMaster) readOrigin(ctx context.Context, r gateway.Submission, g *job.Graph) (origin, error) {
	if r.RestorePath == "" {
		return origin{}, nil
	}
	dir := strings.TrimSuffix(strings.TrimRight(r.RestorePath, "/"), "/"+checkpoint.MetadataFile)
	if inside, ok := relativeTo(m.cfg.CheckpointDir, dir); ok {
		dir = inside
	}
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	choice, err := checkpoint.Choose(dir, r.Fallback,
		func(dir string) ([]string, error) { return m.filesIn(ctx, dir) },
		func(dir string) (*checkpoint.Metadata, error) { return m.readCheckpoint(ctx, dir) },
	)
	if err != nil {
		return origin{}, badOrigin(r.RestorePath, err)
	}
	md, dropped, err := checkpoint.Fit(choice.Metadata, g, r.AllowNonRestored)
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

// readCheckpoint reads the metadata of the checkpoint in dir, and sees that its state files are there.
func (m *JobMaster) readCheckpoint(ctx context.Context, dir string) (*checkpoint.Metadata, error) {
	s, in, err := m.storageOf(dir)
	if err != nil {
		return nil, err
	}
	data, err := s.ReadFile(ctx, in+checkpoint.MetadataFile, checkpoint.MaxMetadataBytes)
	if err != nil {
		return nil, err
	}
	md, err := checkpoint.DecodeMetadata(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", checkpoint.MetadataFile, err)
	}
	names, err := m.filesIn(ctx, dir)
	if err != nil {
		return nil, err
	}
	return md, md.CheckFiles(names)
}

// filesIn lists the files below dir, with names relative to it.
func (m *JobMaster) filesIn(ctx context.Context, dir string) ([]string, error) {
	s, in, err := m.storageOf(dir)
	if err != nil {
		return nil, err
	}
	names, err := s.Files(ctx, strings.TrimSuffix(in, "/"))
	names = slices.Clone(names)
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], in)
	}
	return names, err
}

// storageOf gives the storage of a directory, and what is in front of the names of its files there.
func (m *JobMaster) storageOf(dir string) (s Storage, in string, err error) {
	if !isLocation(dir) {
		return m.cfg.Storage, dir + "/", nil
	}
	s, err = m.cfg.OpenStorage(dir, true)
	return s, "", err
}

// userOf finds the job that would miss the checkpoint in dir: it may have to restore from it.
func (m *JobMaster) userOf(dir string) (job.ID, bool) {
	for _, l := range m.loops() {
		v := l.board.read()
		if v.status.State.Terminal() {
			continue
		}
		if l.restored != nil && plainPath(l.restored.Dir) == plainPath(dir) && (l.restored.Claimed || v.status.Last == nil) {
			return l.id, true
		}
		for _, s := range v.checkpoints {
			ofUser := s.Kind == checkpoint.Savepoint && s.State == coordinator.StateCompleted
			if plainPath(s.Dir) == plainPath(dir) && s.State != coordinator.StateAborted && !s.Discarded && !ofUser {
				return l.id, true
			}
		}
	}
	return "", false
}
