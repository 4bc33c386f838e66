package file_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/weirstream/weir/connector/file"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream"
)

// unopened is a source for a definition whose sink is tested.
type unopened struct{ stream.Source[string] }

func (unopened) Splits(context.Context, int) ([][]byte, error) { return nil, nil }

// sinkOf builds the subtasks of a job's sink.
func sinkOf(t *testing.T, dir string, parallelism, attempt int) (ops []stream.Operator) {
	t.Helper()
	j := stream.NewJob("job", nil)
	stream.To(stream.From(j, "source", unopened{}), "out", file.ExactlyOnceLines(dir))
	must(t, j.Err())
	for i := range parallelism {
		link, err := j.Nodes()[1].Build(&stream.Env{
			Job: "job", JobID: "3f2a", Operator: "out", Subtask: i, Parallelism: parallelism, MaxParallelism: 128,
			Attempt: attempt, Restored: attempt > 0, Running: new(int),
		}, nil)
		must(t, err)
		ops = append(ops, link.Operator)
	}
	return ops
}

// assigned gives the items of a checkpoint to the subtasks of another parallelism, as a restore does.
func assigned(t *testing.T, written [][][]byte, parallelism int) [][][]byte {
	t.Helper()
	v := checkpoint.VertexState{Vertex: "out", Parallelism: len(written), MaxParallelism: 128, Operators: []job.Operator{{ID: "out", Stateful: true}}}
	for i, items := range written {
		it := &checkpoint.Items{Offsets: []int64{0}}
		var data []byte
		for _, item := range items {
			data = append(data, item...)
			it.Offsets = append(it.Offsets, int64(len(data)))
		}
		it.Handle = checkpoint.InlineHandle(data)
		v.Subtasks = append(v.Subtasks, checkpoint.SubtaskState{Subtask: i, Operators: []checkpoint.OperatorState{{Operator: "out", Items: it}}})
	}
	g := &job.Graph{Vertices: []job.Vertex{{ID: "out", Parallelism: parallelism, MaxParallelism: 128, Operators: v.Operators}}}
	given, err := checkpoint.Assign(&checkpoint.Metadata{Job: "3f2a", ID: 3, Kind: checkpoint.Checkpoint, Vertices: []checkpoint.VertexState{v}}, g)
	must(t, err)
	out := make([][][]byte, parallelism)
	for i := range out {
		for _, op := range given[job.TaskID{Vertex: "out", Subtask: i}].Operators {
			for _, it := range op.Items {
				for n := range it.Len() {
					out[i] = append(out[i], it.Item(it.Handle.Inline, n))
				}
			}
		}
	}
	return out
}

// Everything that was prepared for checkpoints of which nobody was told is committed once after a restore, whoever gets it and whatever its number is.
func TestFault_B96_PreparedOutputOfAnotherParallelism_IsCommittedOnce(t *testing.T) {
	for _, c := range []struct{ from, to int }{{2, 4}, {4, 2}, {3, 1}, {1, 3}, {2, 2}} {
		dir := t.TempDir()
		ops := sinkOf(t, dir, c.from, 0)
		items := make([][][]byte, c.from)
		var want []string
		for i, op := range ops {
			must(t, op.Open())
			for id := int64(1); id <= 3; id++ { // three checkpoints that were prepared, persisted, and not notified
				for n := range i + 1 {
					line := fmt.Sprintf("subtask %d checkpoint %d line %d", i, id, n)
					must(t, op.(stream.Collector[string]).Collect(stream.NoTimestamp, line))
					want = append(want, line)
				}
				snap, err := op.(stream.ItemsStateful).SnapshotItems(id)
				must(t, err)
				must(t, snap.Persist())
				items[i] = snap.Items
			}
		}
		crashed := names(t, dir)
		for attempt, parallelism := range []int{c.to, c.from} { // and once more, from the same checkpoint
			for i, op := range sinkOf(t, dir, parallelism, attempt+1) {
				must(t, op.(stream.ItemsStateful).RestoreItems(assigned(t, items, parallelism)[i]))
				must(t, op.Open())
				must(t, op.Close())
			}
			got := mustReadAll(t, file.Lines(dir), 1)
			slices.Sort(got)
			slices.Sort(want)
			equal(t, fmt.Sprintf("lines after %d -> %d", c.from, parallelism), got, want)
		}
		if left := slices.DeleteFunc(names(t, dir), func(n string) bool { return n[len(n)-4:] == ".txt" }); len(left) > 0 {
			t.Errorf("%d -> %d: left over: %v of %v", c.from, c.to, left, crashed)
		}
	}
}
