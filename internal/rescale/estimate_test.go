package rescale

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// counted is a checkpoint of a keyed vertex with so many bytes in each key group.
func counted(parallelism int, perGroup int64) *checkpoint.Metadata {
	op := []job.Operator{{ID: "count", Stateful: true}}
	v := checkpoint.VertexState{Vertex: "count", Parallelism: parallelism, MaxParallelism: 12, Operators: op}
	for i := range parallelism {
		r := job.KeyGroups(i, parallelism, 12)
		k := &checkpoint.Keyed{Handle: checkpoint.InlineHandle(make([]byte, perGroup*int64(r.Len()))), Range: r, Offsets: []int64{0}}
		for n := range r.Len() {
			k.Offsets = append(k.Offsets, perGroup*int64(n+1))
		}
		v.Subtasks = append(v.Subtasks, checkpoint.SubtaskState{Subtask: i, Operators: []checkpoint.OperatorState{{Operator: "count", Keyed: k}}})
	}
	return &checkpoint.Metadata{Job: "j", ID: 7, Kind: checkpoint.Checkpoint, Vertices: []checkpoint.VertexState{v}}
}

func countGraph(parallelism int) *job.Graph {
	return &job.Graph{Vertices: []job.Vertex{{ID: "count", Parallelism: parallelism, MaxParallelism: 12, Operators: []job.Operator{{ID: "count", Stateful: true}}}}}
}

func at(executors ...job.ExecutorID) map[job.TaskID]job.ExecutorID {
	out := map[job.TaskID]job.ExecutorID{}
	for i, x := range executors {
		out[job.TaskID{Vertex: "count", Subtask: i}] = x
	}
	return out
}

func TestEstimate_SaysWhatEachTaskReadsAndWhatMoves(t *testing.T) {
	task := func(i int, bytes, moved int64) gateway.TaskRead {
		return gateway.TaskRead{Task: job.TaskID{Vertex: "count", Subtask: i}, Bytes: bytes, Moved: moved}
	}
	for _, c := range []struct {
		name          string
		from, to      int
		before, after map[job.TaskID]job.ExecutorID
		moved         int64
		tasks         []gateway.TaskRead
	}{
		// Key groups [0,6) and [6,12) become [0,4), [4,8) and [8,12).
		{"up, to a slot that is not known", 2, 3, at("x", "y"), at("x", "", "y"), 400, []gateway.TaskRead{task(0, 400, 0), task(1, 400, 400), task(2, 400, 0)}},
		{"up, on the executors that there are", 2, 3, at("x", "y"), at("x", "x", "y"), 200, []gateway.TaskRead{task(0, 400, 0), task(1, 400, 200), task(2, 400, 0)}},
		{"down", 3, 2, at("x", "y", "y"), at("x", "y"), 200, []gateway.TaskRead{task(0, 600, 200), task(1, 600, 0)}},
		{"on one executor", 2, 1, at("x", "x"), at("x"), 0, []gateway.TaskRead{task(0, 1200, 0)}},
	} {
		e, err := Estimate(Known{Old: countGraph(c.from), New: countGraph(c.to), Latest: counted(c.from, 100), Before: c.before, After: c.after, Held: c.from, Free: 9})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.tasks, e.Tasks); diff != "" || e.MovedBytes != c.moved || e.StateBytes != 1200 || e.Checkpoint != 7 {
			t.Errorf("%s: moved %d of %d from checkpoint %d, want %d (-want +got)\n%s", c.name, e.MovedBytes, e.StateBytes, e.Checkpoint, c.moved, diff)
		}
		if e.SlotsNeeded != c.to || e.SlotsHeld != c.from || e.SlotsFree != 9 || e.Pause != 0 {
			t.Errorf("%s: %+v", c.name, e)
		}
		moved, stayed := Divide(must(Moves(counted(c.from, 100), countGraph(c.to))), c.before, c.after)
		if moved != c.moved || moved+stayed != 1200 {
			t.Errorf("%s: moved %d, stayed %d", c.name, moved, stayed)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestEstimate_WithoutACheckpoint_KnowsNothingOfTheState(t *testing.T) {
	e, err := Estimate(Known{Old: countGraph(1), New: countGraph(2)})
	if err != nil || e.Checkpoint != 0 || e.StateBytes != 0 || e.Tasks != nil {
		t.Errorf("%+v, %v", e, err)
	}
	want := []gateway.VertexRescale{{Vertex: "count", From: 1, To: 2}}
	if diff := cmp.Diff(want, e.Vertices); diff != "" {
		t.Error(diff)
	}
}

func TestEstimate_OfStateThatDoesNotFit_IsAnError(t *testing.T) {
	if _, err := Estimate(Known{Old: countGraph(1), New: countGraph(13), Latest: counted(1, 1)}); err == nil {
		t.Error("more subtasks than key groups were taken")
	}
}

func TestPause_IsAStartAndTheReadingOfTheLargestTask(t *testing.T) {
	var s Starts
	if got := (Measured{Starts: s, Checkpoint: time.Second, CheckpointBytes: 100}).pause(50); got != 0 {
		t.Errorf("nothing was measured, and the pause is %s", got)
	}
	s.Add(100*time.Millisecond, 0) // the first start
	if got := (Measured{Starts: s}).pause(50); got != 100*time.Millisecond {
		t.Errorf("no rate is known: %s", got)
	}
	if got := (Measured{Starts: s, Checkpoint: time.Second, CheckpointBytes: 100}).pause(50); got != 600*time.Millisecond {
		t.Errorf("at the rate of the checkpoint: %s", got)
	}
	s.Add(300*time.Millisecond, 100) // a restore: 200 ms for 100 bytes
	if got := (Measured{Starts: s, Checkpoint: time.Second, CheckpointBytes: 1}).pause(50); got != 200*time.Millisecond {
		t.Errorf("at the rate of the restore: %s", got)
	}
	s.Add(0, 5)
	if s.Fastest != 100*time.Millisecond {
		t.Errorf("a start that took no time counts: %+v", s)
	}
}

// What moves is what Assign gives, task by task, at any parallelism; and what a task had written itself stays with it at the same one.
func TestMoves_AreWhatAssignGives(t *testing.T) {
	for from := 1; from <= 12; from++ {
		for to := 1; to <= 12; to++ {
			md, g := counted(from, 3), countGraph(to)
			for i := range md.Vertices[0].Subtasks { // items of a source or sink in the same operator, i of them with 5 bytes each
				it := &checkpoint.Items{Handle: checkpoint.InlineHandle(make([]byte, 5*i)), Offsets: []int64{0}}
				for n := range i {
					it.Offsets = append(it.Offsets, int64(5*(n+1)))
				}
				md.Vertices[0].Subtasks[i].Operators[0].Items = it
			}
			assigned, err := checkpoint.Assign(md, g)
			if err != nil {
				t.Fatal(err)
			}
			moves := must(Moves(md, g))
			var total int64
			for task, r := range assigned {
				var want, got int64
				for _, op := range r.Operators {
					for _, k := range op.Keyed {
						want += k.Size()
					}
					for _, it := range op.Items {
						want += 5 * int64(it.Len())
					}
				}
				for _, m := range moves {
					if m.To == task {
						got += m.Bytes
					}
					if from == to && m.From != m.To {
						t.Errorf("%d bytes go from %s to %s at the same parallelism", m.Bytes, m.From, m.To)
					}
				}
				total += got
				if got != want {
					t.Errorf("%d -> %d: %s reads %d bytes, the moves say %d", from, to, task, want, got)
				}
			}
			if total != md.StateBytes() {
				t.Errorf("%d -> %d: %d bytes are read, %d are in the checkpoint", from, to, total, md.StateBytes())
			}
		}
	}
}

// Files of a backend cannot be cut: every task that needs some of their key groups reads all of them.
func TestMoves_OfFilesOfABackend_AreWholeFiles(t *testing.T) {
	md := counted(2, 0)
	for i := range md.Vertices[0].Subtasks {
		k := md.Vertices[0].Subtasks[i].Operators[0].Keyed
		*k = checkpoint.Keyed{Range: k.Range, Backend: "pebble", Files: []checkpoint.SharedFile{{Name: "a", Path: "a", Size: 60}, {Name: "b", Path: "b", Size: 40}}}
	}
	task := func(i int) job.TaskID { return job.TaskID{Vertex: "count", Subtask: i} }
	want := []Move{{task(0), task(0), 100}, {task(0), task(1), 100}, {task(1), task(1), 100}, {task(1), task(2), 100}}
	if diff := cmp.Diff(want, must(Moves(md, countGraph(3)))); diff != "" {
		t.Error(diff)
	}
}
