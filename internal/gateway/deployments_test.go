package gateway

import (
	"slices"
	"testing"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

func placedOn(subtasks int) (out []job.Placement) {
	for i := range subtasks {
		a := job.AttemptID{Job: "j", Task: job.TaskID{Vertex: "a", Subtask: i}, Attempt: 3}
		out = append(out, job.Placement{Attempt: a, Executor: []job.ExecutorID{"x", "y"}[i%2]})
	}
	return out
}

func TestDeployments_OfAFreshStart_SpreadTheSplits(t *testing.T) {
	g := &job.Graph{Vertices: []job.Vertex{{ID: "a", Parallelism: 3, MaxParallelism: 8, Splits: make([][]byte, 5)}}}
	got, err := Deployments(g, placedOn(3), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[job.ExecutorID][][]int{"x": {{0, 3}, {2}}, "y": {{1, 4}}}
	for executor, splits := range want {
		if len(got[executor]) != len(splits) {
			t.Fatalf("%s gets %d tasks, want %d", executor, len(got[executor]), len(splits))
		}
		for i, d := range got[executor] {
			if !slices.Equal(d.Splits, splits[i]) || d.Restore != nil {
				t.Errorf("%s: %s gets splits %v and restores %v, want %v", executor, d.Attempt, d.Splits, d.Restore, splits[i])
			}
		}
	}
}

func TestDeployments_FromACheckpoint_HaveItsStateAndNoSplits(t *testing.T) {
	op := []job.Operator{{ID: "a", Stateful: true}}
	g := &job.Graph{Vertices: []job.Vertex{{ID: "a", Parallelism: 2, MaxParallelism: 8, Splits: make([][]byte, 5), Operators: op}}}
	md := &checkpoint.Metadata{Job: "j", ID: 7, Kind: checkpoint.Checkpoint, Vertices: []checkpoint.VertexState{{
		Vertex: "a", Parallelism: 2, MaxParallelism: 8, Operators: op, Subtasks: []checkpoint.SubtaskState{{Subtask: 0}, {Subtask: 1, Ended: true}},
	}}}
	got, err := Deployments(g, placedOn(2)[1:], &checkpoint.Completed{Dir: "d", Metadata: md}) // of one subtask only
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || len(got["y"]) != 1 {
		t.Fatalf("deployments %v, want one task on y", got)
	}
	if r := got["y"][0].Restore; r == nil || r.Checkpoint != 7 || r.Dir != "d" || !r.State.Ended || got["y"][0].Splits != nil {
		t.Errorf("it restores %+v and has splits %v", r, got["y"][0].Splits)
	}
}

func TestDeployments_OfACheckpointThatDoesNotFit_AreAnError(t *testing.T) {
	if _, err := Deployments(&job.Graph{}, placedOn(1), &checkpoint.Completed{Metadata: &checkpoint.Metadata{}}); err == nil {
		t.Error("metadata without a job was taken")
	}
}
