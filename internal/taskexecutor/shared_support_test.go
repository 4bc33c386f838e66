package taskexecutor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/segment"
	"github.com/weirstream/weir/internal/storage/storagetest"
	"github.com/weirstream/weir/internal/task"
	"github.com/weirstream/weir/stream"
)

// fileOp is an operator of a backend with files: what it holds is the content of its files, by the backend's names.
type fileOp struct {
	t      *testing.T
	dir    string
	holds  map[string]string
	groups [][2]int // of the restored parts, and whether each was whole
	whole  []bool
}

func newFileOp(t *testing.T) *fileOp {
	return &fileOp{t: t, dir: t.TempDir(), holds: map[string]string{}}
}

func (o *fileOp) Open() error                   { return nil }
func (o *fileOp) Close() error                  { return nil }
func (o *fileOp) Backend() string               { return "fake" }
func (o *fileOp) Schemas() []stream.StateSchema { return []stream.StateSchema{{Name: "s"}} }
func (o *fileOp) RestoreGroup(int, []stream.StateSchema, []byte) error {
	return errors.New("not canonical")
}

func (o *fileOp) SnapshotKeyed() (stream.KeyedSnapshot, error) {
	s := &fileSnapshot{op: o}
	for name, content := range o.holds {
		local := filepath.Join(o.dir, name)
		if err := os.WriteFile(local, []byte(content), 0o600); err != nil {
			return nil, err
		}
		s.files = append(s.files, stream.SnapshotFile{Name: name, Path: local, Size: int64(len(content))})
	}
	slices.SortFunc(s.files, func(a, b stream.SnapshotFile) int { return strings.Compare(a.Name, b.Name) })
	return s, nil
}

func (o *fileOp) RestoreFiles(_ context.Context, parts []stream.RestoredFiles) error {
	for _, p := range parts {
		o.groups = append(o.groups, [2]int{p.Groups.Start, p.Groups.End})
		o.whole = append(o.whole, p.Whole)
		for _, f := range p.Files {
			data, err := os.ReadFile(f.Path)
			if err != nil {
				return err
			}
			o.holds[f.Name] = string(data)
		}
	}
	return nil
}

type fileSnapshot struct {
	op    *fileOp
	files []stream.SnapshotFile
}

func (s *fileSnapshot) AppendGroup(dst []byte, group int) ([]byte, error) {
	return fmt.Appendf(dst, "group %d", group), nil
}
func (s *fileSnapshot) ReleaseGroup(int)                                     {}
func (s *fileSnapshot) Release()                                             {}
func (s *fileSnapshot) Files(context.Context) ([]stream.SnapshotFile, error) { return s.files, nil }

// sharedRig is an attempt with such an operator, over a storage that loses what was not synced.
type sharedRig struct {
	t      *testing.T
	mem    *storagetest.Mem
	op     *fileOp
	files  *stateFiles
	mail   task.Mailbox
	cfg    task.Config
	cancel context.CancelFunc
	ended  chan error

	mu       sync.Mutex
	acked    map[checkpoint.ID]checkpoint.SubtaskState
	declined map[checkpoint.ID]string
	verdict  checkpoint.Verdict
}

const sharedJob = "j"

// newSharedRig starts an attempt, from a checkpoint if from is not nil.
func newSharedRig(t *testing.T, mem *storagetest.Mem, attempt int, restore *task.Restore) *sharedRig {
	r := &sharedRig{
		t: t, mem: mem, op: newFileOp(t), mail: task.NewMailbox(), ended: make(chan error, 1), verdict: checkpoint.Kept,
		acked: map[checkpoint.ID]checkpoint.SubtaskState{}, declined: map[checkpoint.ID]string{},
	}
	attemptID := job.AttemptID{Job: sharedJob, Task: job.TaskID{Vertex: "v"}, Attempt: attempt}
	files := &stateFiles{root: mem, segments: segment.New(segment.Config{Log: zap.NewNop()}), attempt: attemptID, restored: &restoreCounts{}, log: zap.NewNop()}
	r.files = files
	local := t.TempDir()
	r.cfg = task.Config{
		Attempt: attemptID, Log: zap.NewNop(), KeyGroups: job.KeyGroupRange{Start: 0, End: 8},
		Chain: &task.Chain{Operators: []task.Operator{{ID: "op", Operator: r.op}}, Source: waiting{}, Running: new(int)},
		Files: files, Shared: &sharedFiles{files: files, taskDir: func() (string, error) { return local, nil }}, JobMaster: r, Restore: restore,
	}
	return r
}

func (r *sharedRig) start() *sharedRig {
	ctx, cancel := context.WithCancel(r.t.Context())
	r.cancel = cancel
	go func() { r.ended <- task.New(r.cfg, r.mail).Run(ctx) }()
	synctest.Wait()
	return r
}

func (r *sharedRig) stop() error {
	r.cancel()
	return <-r.ended
}

// trigger takes a checkpoint and waits until nothing moves any more.
func (r *sharedRig) trigger(id, base checkpoint.ID, format job.SavepointFormat) {
	dir := checkpoint.Dir(sharedJob, id)
	if format != job.FormatNone {
		dir = checkpoint.SavepointDir(sharedJob, fmt.Sprint(id))
	}
	r.post(task.Trigger{Checkpoint: element.Checkpoint{ID: int64(id), Dir: dir, Base: int64(base), Format: format}})
}

func (r *sharedRig) post(ev task.Event) {
	if err := r.mail.Post(ev); err != nil {
		r.t.Error(err)
	}
	synctest.Wait()
}

func (r *sharedRig) Acknowledge(_ context.Context, id checkpoint.ID, state checkpoint.SubtaskState, _ checkpoint.Metrics) (checkpoint.Verdict, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acked[id] = state
	return r.verdict, nil
}

func (r *sharedRig) Decline(_ context.Context, id checkpoint.ID, _ checkpoint.Reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.declined[id] = message
}

func (r *sharedRig) Running()     {}
func (r *sharedRig) EndOfData()   {}
func (r *sharedRig) Backlog(bool) {}

// waiting is a source that never has anything.
type waiting struct{}

func (waiting) Poll(int) (stream.Next, error) { return stream.WaitForWake, nil }
func (waiting) Emitted() int64                { return 0 }
func (waiting) ProcessingBacklog() bool       { return false }

// keyed is the acknowledged state of the operator.
func (r *sharedRig) keyed(id checkpoint.ID) checkpoint.Keyed {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	state, ok := r.acked[id]
	if !ok || len(state.Operators) != 1 || state.Operators[0].Keyed == nil {
		r.t.Fatalf("checkpoint %d: acknowledged %t with %+v, declined with %q", id, ok, state, r.declined[id])
	}
	return *state.Operators[0].Keyed
}

// restoreOf is how the next attempt starts from an acknowledged checkpoint.
func (r *sharedRig) restoreOf(id checkpoint.ID) *task.Restore {
	return &task.Restore{Checkpoint: id, Dir: checkpoint.Dir(sharedJob, id), State: checkpoint.Restore{
		Operators: []checkpoint.OperatorRestore{{Operator: "op", Keyed: []checkpoint.Keyed{r.keyed(id)}}},
	}}
}

// there are the files in the storage.
func there(t *testing.T, mem *storagetest.Mem) []string {
	t.Helper()
	infos, err := mem.List(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, i := range infos {
		out = append(out, i.Path)
	}
	return out
}

// referred are the files that states of checkpoints refer to.
func (r *sharedRig) referred(ids ...checkpoint.ID) []string {
	out := []string{}
	for _, id := range ids {
		for _, f := range r.keyed(id).Files {
			out = append(out, f.In(checkpoint.Dir(sharedJob, id)))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (r *sharedRig) hold(n int) {
	for i := range n {
		r.op.holds[fmt.Sprintf("%06d.sst", i)] = strings.Repeat(fmt.Sprint(i), 100)
	}
}
