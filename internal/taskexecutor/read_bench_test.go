package taskexecutor

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/compression"
	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/segment"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/task"
	"github.com/weirstream/weir/stream"
)

// swallows is an operator that takes key groups and does nothing with them.
type swallows struct {
	fileOp
	data []byte // of each key group when it is snapshotted
}

func (*swallows) RestoreGroup(int, []stream.StateSchema, []byte) error { return nil }
func (o *swallows) SnapshotKeyed() (stream.KeyedSnapshot, error)       { return swallowed{o.data}, nil }

type swallowed struct{ data []byte }

func (s swallowed) AppendGroup(dst []byte, _ int) ([]byte, error) { return append(dst, s.data...), nil }
func (swallowed) ReleaseGroup(int)                                {}
func (swallowed) Release()                                        {}

// BenchmarkState is what it costs to write the keyed state of a task into a directory, and to read and verify half of it again, as a task does whose job was
// given twice the parallelism; without encoding and decoding.
func BenchmarkState(b *testing.B) {
	const groups = 128
	for name, kind := range map[string]checkpoint.Compression{"plain": checkpoint.Uncompressed, "zstd": checkpoint.Zstd} {
		r := rand.New(rand.NewPCG(1, 1))
		data := make([]byte, 2<<20)
		for i := range data {
			data[i] = byte(r.IntN(16)) // four bits in eight
		}
		local, err := storage.NewLocal(filepath.Join(b.TempDir(), name))
		if err != nil {
			b.Fatal(err)
		}
		attempt := job.AttemptID{Job: sharedJob, Task: job.TaskID{Vertex: "v"}, Attempt: 1}
		files := &stateFiles{
			root: local, segments: segment.New(segment.Config{Log: zap.NewNop()}), attempt: attempt, restored: &restoreCounts{}, log: zap.NewNop(),
		}
		rig := &sharedRig{acked: map[checkpoint.ID]checkpoint.SubtaskState{}, declined: map[checkpoint.ID]string{}}
		op := &swallows{data: data}
		rig.cfg = task.Config{
			Attempt: attempt, Log: zap.NewNop(), KeyGroups: job.KeyGroupRange{Start: 0, End: groups}, Files: files, JobMaster: rig,
			Chain:   &task.Chain{Operators: []task.Operator{{ID: "op", Operator: op}}, Source: waiting{}, Running: new(int)},
			Encoder: compression.NewEncoder(), Decoder: compression.NewDecoder(), Compression: kind,
		}
		b.Run(name+"/write", func(b *testing.B) {
			b.SetBytes(groups * int64(len(data)))
			for b.Loop() {
				rig.benchTask(b, nil)
			}
		})
		state := rig.acked[1]
		if len(state.Operators) == 0 {
			b.Fatalf("nothing was acknowledged: %v", rig.declined)
		}
		k := *state.Operators[0].Keyed
		k.Range.End, k.Offsets, k.GroupCRC = groups/2, k.Offsets[:groups/2+1], k.GroupCRC[:groups/2]
		b.Run(name+"/read half", func(b *testing.B) {
			b.SetBytes(groups / 2 * int64(len(data)))
			for b.Loop() {
				rig.benchTask(b, &task.Restore{Checkpoint: 1, Dir: "j/chk-1", State: checkpoint.Restore{
					Operators: []checkpoint.OperatorRestore{{Operator: "op", Keyed: []checkpoint.Keyed{k}}},
				}})
			}
		})
	}
}

var errMeasured = errors.New("measured")

// benchMaster ends a task when it runs, or when it has taken a checkpoint.
type benchMaster struct {
	*sharedRig
	mail task.Mailbox
	take bool
	end  func()
}

func (m *benchMaster) Running() {
	if !m.take {
		m.end()
		return
	}
	if err := m.mail.Post(task.Trigger{Checkpoint: element.Checkpoint{ID: 1, Dir: checkpoint.Dir(sharedJob, 1)}}); err != nil {
		m.end()
	}
}

func (m *benchMaster) Acknowledge(ctx context.Context, id checkpoint.ID, s checkpoint.SubtaskState, x checkpoint.Metrics) (checkpoint.Verdict, error) {
	defer m.end()
	return m.sharedRig.Acknowledge(ctx, id, s, x)
}

// benchTask runs a task that takes one checkpoint, or restores.
func (r *sharedRig) benchTask(b *testing.B, restore *task.Restore) {
	b.Helper()
	ctx, cancel := context.WithCancelCause(b.Context())
	defer cancel(nil)
	mail, cfg := task.NewMailbox(), r.cfg
	cfg.Restore = restore
	cfg.JobMaster = &benchMaster{sharedRig: r, mail: mail, take: restore == nil, end: func() { cancel(errMeasured) }}
	if err := task.New(cfg, mail).Run(ctx); !errors.Is(err, errMeasured) {
		b.Fatal(err)
	}
}
