package checkpoint

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/job"
)

// pipelineOf is a checkpoint of "read -> write" (chained or not), in which some subtasks have ended. A read item is what a split has left to read,
// and a write item is output that is still to be committed; of a subtask that has finished there is nothing.
func pipelineOf(rng *rand.Rand, parallelism int, chained bool) (*Metadata, []string) {
	read := VertexState{Vertex: "read", Parallelism: parallelism, MaxParallelism: 64, Operators: operators("read")}
	write := VertexState{Vertex: "write", Parallelism: parallelism, MaxParallelism: 64, Operators: operators("write")}
	var all []string
	items := func(operator string, subtask, n int, text string) OperatorState {
		out := OperatorState{Operator: operator, Items: &Items{Offsets: []int64{0}}}
		var data []byte
		for k := range n {
			item := fmt.Sprintf("%s/%d/%d", text, subtask, k)
			data = append(data, item...)
			out.Items.Offsets = append(out.Items.Offsets, int64(len(data)))
			all = append(all, item)
		}
		out.Items.Handle = InlineHandle(data)
		return out
	}
	for i := range parallelism {
		ended := rng.IntN(2) == 0 // a pipeline: both ends, or the source only
		r, w := SubtaskState{Subtask: i, Ended: ended}, SubtaskState{Subtask: i, Ended: ended && (chained || rng.IntN(3) > 0)}
		if finished := w.Ended && rng.IntN(2) == 0; !finished {
			left := rng.IntN(4)
			if ended {
				left = 0
			}
			r.Operators = []OperatorState{items("read", i, left, "unread")}
			w.Operators = []OperatorState{items("write", i, rng.IntN(3), "uncommitted")}
		}
		if chained {
			r.Operators = append(r.Operators, w.Operators...)
		} else {
			write.Subtasks = append(write.Subtasks, w)
		}
		read.Subtasks = append(read.Subtasks, r)
	}
	if chained {
		read.Operators = operators("read", "write")
		return metadataOf(read), all
	}
	return metadataOf(read, write), all
}

// TestAssign_PartlyEndedPipelines_LoseNothingAndGiveNothingTwice runs what a restore gives, in the dumbest way: every source that has not ended emits
// what its splits have left, to every subtask that its edge may send it to; every sink commits what it was given.
func TestAssign_PartlyEndedPipelines_LoseNothingAndGiveNothingTwice(t *testing.T) {
	revived := 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 9))
		md, want := pipelineOf(rng, 1+rng.IntN(6), rng.IntN(2) == 0)
		readers, writers, edge := 1+rng.IntN(6), 1+rng.IntN(6), job.Rebalance
		g := graphOf(readers, 64, []string{"read"}, []string{"write"})
		g.Vertices[1].Parallelism = writers
		if readers == writers {
			edge = job.Forward
		}
		g.Edges = []job.Edge{{ID: "e", From: "read", To: "write", Partitioning: edge}}
		if rng.IntN(3) == 0 {
			g = graphOf(readers, 64, []string{"read", "write"})
		}
		got, err := Assign(md, g)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		var out []string
		for _, task := range g.Tasks() {
			r := got[task]
			for _, op := range r.Operators {
				for _, it := range op.Items {
					for n := range it.Len() {
						item := string(it.Item(it.Handle.Inline, n))
						if op.Operator == "read" {
							if r.Ended {
								t.Fatalf("seed %d: %s has ended and has %s", seed, task, item)
							}
							for _, e := range g.Outputs(task.Vertex) {
								for to := range writers {
									if end := (job.TaskID{Vertex: e.To, Subtask: to}); (e.Partitioning != job.Forward || to == task.Subtask) && got[end].Ended {
										t.Fatalf("seed %d: %s sends %s to %s, which has ended", seed, task, item, end)
									}
								}
							}
						}
						out = append(out, item)
					}
				}
			}
		}
		slices.Sort(out)
		slices.Sort(want)
		if !slices.Equal(out, want) {
			t.Fatalf("seed %d: given out\n%s\nwant\n%s", seed, strings.Join(out, " "), strings.Join(want, " "))
		}
		ended := func(s SubtaskState) bool { return s.Ended }
		if v := md.Vertices[0]; slices.ContainsFunc(v.Subtasks, ended) && v.Parallelism != readers {
			revived++
			all := !slices.ContainsFunc(v.Subtasks, func(s SubtaskState) bool { return !s.Ended })
			for i := range readers {
				if r := got[job.TaskID{Vertex: "read", Subtask: i}]; len(g.Vertices) == 2 && r.Ended != all {
					t.Fatalf("seed %d: read[%d] ended = %t, all old ones had: %t", seed, i, r.Ended, all)
				}
			}
		}
	}
	if revived < 500 {
		t.Errorf("only %d of the seeds change the parallelism of something that has ended", revived)
	}
}

// A subtask that had finished has left no state: the operator's declaration says that it had some.
func TestAssign_KeyedVertexThatHasFinished_TakesNoRecordsAgain(t *testing.T) {
	ops := []job.Operator{{ID: "count", Stateful: true, States: []string{"n"}}}
	md := metadataOf(VertexState{Vertex: "count", Parallelism: 2, MaxParallelism: 8, Operators: ops, Subtasks: []SubtaskState{{Ended: true}, {Subtask: 1, Ended: true}}})
	g := graphOf(3, 8, []string{"new"}, []string{"count"})
	if got, err := Assign(md, g); err != nil || !got[job.TaskID{Vertex: "count", Subtask: 2}].Ended {
		t.Errorf("alone it stays at its end: %v, %+v", err, got)
	}
	g.Edges = []job.Edge{{ID: "e", From: "new", To: "count", Partitioning: job.Hash}}
	_, err := Assign(md, g)
	if !errors.Is(err, ErrIncompatible) || !strings.Contains(err.Error(), "count[0] had reached the end of its input, and new[0] in front of it has not") {
		t.Errorf("with a new source in front: %v", err)
	}
}

// B81: each operator is held against the number of key groups that it was written with, wherever it is chained now.
func TestFault_B81_OperatorsOfDifferentMaxParallelism_AreRefusedByName(t *testing.T) {
	one := func() int { return 1 }
	md := metadataOf(vertexOf(2, 8, one, "a"), vertexOf(2, 16, one, "b"))
	for _, c := range []struct {
		max  int
		want string
	}{
		{8, "operator b was at max parallelism 16 and is now at 8; keyed state cannot move between numbers of key groups: choose max parallelism 16"},
		{16, "operator a was at max parallelism 8 and is now at 16; keyed state cannot move between numbers of key groups: choose max parallelism 8"},
	} {
		for _, chains := range [][][]string{{{"a", "b"}}, {{"a"}, {"b"}}} {
			if _, err := Assign(md, graphOf(2, c.max, chains...)); !errors.Is(err, ErrIncompatible) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("max %d, %v: %v, want %q", c.max, chains, err, c.want)
			}
		}
	}
	if n := md.MaxParallelism(); n != 0 {
		t.Errorf("a job takes over %d key groups of operators that differ", n)
	}
}

func TestAdopt_TheCheckpointsMaxParallelismWinsUnlessOneIsChosen(t *testing.T) {
	md := metadataOf(vertexOf(2, 40, func() int { return 0 }, "a"))
	stateless := VertexState{Vertex: "s", Parallelism: 1, MaxParallelism: 7, Operators: operators("s"), Subtasks: []SubtaskState{{}}}
	md.Vertices = append(md.Vertices, stateless)
	for chosen, want := range map[int]int{0: 40, 40: 40, 128: 128} {
		if got := md.Adopt(job.Options{MaxParallelism: chosen}).MaxParallelism; got != want {
			t.Errorf("chosen %d: %d, want %d", chosen, got, want)
		}
	}
	if got := metadataOf(stateless).Adopt(job.Options{}).MaxParallelism; got != 0 {
		t.Errorf("without keyed state: %d", got)
	}
}

// B87: every operator of a chain gets its key groups, whether it is its head or not.
func TestFault_B87_KeyedOperatorsOfOneChain_EachGetTheirGroups(t *testing.T) {
	md := metadataOf(vertexOf(3, 16, func() int { return 0 }, "first", "second", "third"))
	for p := 1; p <= 16; p++ {
		got, err := Assign(md, graphOf(p, 16, []string{"first", "second", "third"}))
		if err != nil {
			t.Fatal(err)
		}
		for i := range p {
			want := map[string]string{}
			for _, id := range []string{"first", "second", "third"} {
				r := job.KeyGroups(i, p, 16)
				for n := r.Start; n < r.End; n++ {
					want[id] += fmt.Sprintf("%s:%d;", id, n)
				}
			}
			if r := read(t, got[job.TaskID{Vertex: "first", Subtask: i}]); !maps.Equal(r, want) {
				t.Errorf("p %d, subtask %d: %v", p, i, r)
			}
		}
	}
}
