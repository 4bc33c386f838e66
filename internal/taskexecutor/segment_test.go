package taskexecutor

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/storage/storagetest"
	"github.com/weirstream/weir/stream"
)

// handles are those of an ack that are not inline.
func handles(a gateway.Ack) (out []checkpoint.Handle) {
	for _, op := range a.State.Operators {
		if op.Items != nil {
			out = append(out, op.Items.Handle)
		}
		for _, l := range op.Lists {
			out = append(out, l.Items.Handle)
		}
	}
	return slices.DeleteFunc(out, checkpoint.Handle.IsInline)
}

// Two tasks of a job write one file, which is there before either of them acknowledges; when both acks come too late it is deleted.
func TestCheckpoint_TasksOfAnExecutor_ShareOneFile(t *testing.T) {
	for _, verdict := range []checkpoint.Verdict{checkpoint.Kept, checkpoint.TooLate} {
		bubble(t, func(t *testing.T, r *rig) {
			mem := storagetest.NewMem()
			r.open = func(string) (Storage, error) { return mem, nil }
			r.src.emit = 50
			r.m.verdict = verdict
			r.cfg.Jobs = []stream.Definition{stream.Define("idle", "", func(j *stream.Job) error {
				list := stream.NewListState[int]("all")
				src := stream.From(j, "src", stream.Source[int](r.src)).Rebalance()
				out := stream.ProcessStream(src, "out", stream.ProcessFunction[int, int]{
					Process: func(c *stream.OperatorContext, v int, emit func(int) error) error {
						list.Append(c, v)
						return emit(v)
					},
				}, list)
				stream.To(out, "end", stream.Sink[int](nothing{}))
				return nil
			})}
			r.registered()
			d := r.deployment(1)
			d.Options.Checkpoint.InlineLimit = 1
			r.deploy(d)
			r.m.take()
			trigger := gateway.TriggerCheckpoint{Epoch: 7, ID: 3, Dir: "j1/chk-3", Timestamp: time.Now(), Attempts: []job.AttemptID{attempt("src", 1)}}
			if _, err := r.e.TriggerCheckpoint(t.Context(), trigger); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if len(r.m.acks) != 2 || len(handles(r.m.acks[0])) == 0 || len(handles(r.m.acks[1])) == 0 {
				t.Fatalf("acks %+v, want two with state in files", r.m.acks)
			}
			one, two := handles(r.m.acks[0])[0], handles(r.m.acks[1])[0]
			if one.Path != two.Path || !checkpoint.IsSegmentFile(one.Path) {
				t.Errorf("state is in %s and in %s, want one file", one.Path, two.Path)
			}
			var want []string
			if verdict == checkpoint.Kept {
				want = []string{"j1/chk-3/" + one.Path}
			}
			if got := there(t, mem); !slices.Equal(got, want) {
				t.Errorf("files %v, want %v", got, want)
			}
		})
	}
}
