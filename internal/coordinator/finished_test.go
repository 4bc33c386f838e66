package coordinator_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirstream/weir/internal/checkpoint"
	. "github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/job"
)

// randomGraph has edges from lower vertices to higher ones, forward ones among them.
func randomGraph(rng *rand.Rand) *job.Graph {
	g := &job.Graph{}
	for i := range 2 + rng.IntN(5) {
		v := job.Vertex{ID: job.VertexID(fmt.Sprintf("v%d", i)), Parallelism: 1 + rng.IntN(3), MaxParallelism: 8}
		g.Vertices = append(g.Vertices, v)
		for from := range i {
			if rng.IntN(2) == 0 {
				continue
			}
			p := []job.Partitioning{job.Hash, job.Rebalance, job.Broadcast}[rng.IntN(3)]
			if g.Vertices[from].Parallelism == v.Parallelism && rng.IntN(2) == 0 {
				p = job.Forward
			}
			g.Edges = append(g.Edges, job.Edge{ID: fmt.Sprint(from, i), From: g.Vertices[from].ID, To: v.ID, Partitioning: p})
		}
	}
	return g
}

// headsOf is the rule X2 as it is written: running tasks with no running task in front of them.
func headsOf(g *job.Graph, finished map[job.TaskID]bool) []job.TaskID {
	var out []job.TaskID
	for _, t := range g.Tasks() {
		head := !finished[t]
		for _, e := range g.Inputs(t.Vertex) {
			for i := range g.Vertex(e.From).Parallelism {
				if (e.Partitioning != job.Forward || i == t.Subtask) && !finished[job.TaskID{Vertex: e.From, Subtask: i}] {
					head = false
				}
			}
		}
		if head {
			out = append(out, t)
		}
	}
	return out
}

// finishing plays tasks that finish in an order that can happen: none before the tasks in front of it.
type finishing struct {
	g        *job.Graph
	c        *Core
	finished map[job.TaskID]bool
	told     map[job.TaskID]bool // of the pending checkpoint
	written  bool
}

func (f *finishing) step(ev Event) {
	for _, eff := range f.c.Step(epoch0, ev) {
		switch eff := eff.(type) {
		case SendTrigger:
			for _, a := range eff.Attempts {
				f.told[a.Task] = true
			}
		case WriteMetadata:
			f.written = true
		}
	}
}

func (f *finishing) finish(rng *rand.Rand) {
	heads := headsOf(f.g, f.finished)
	t := heads[rng.IntN(len(heads))]
	f.finished[t] = true
	f.step(TaskFinished{Attempt: job.AttemptID{Job: testJob, Task: t, Attempt: 1}})
}

// TestTriggerSet_AgainstTheRule: whatever has finished, before or while a checkpoint is pending, every task that no barrier can come to is told;
// and the checkpoint completes when the others have acknowledged, and not before.
func TestTriggerSet_AgainstTheRule(t *testing.T) {
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		g := randomGraph(rng)
		f := &finishing{g: g, c: manual(t, g, nil), finished: map[job.TaskID]bool{}, told: map[job.TaskID]bool{}}
		n := len(g.Tasks())
		before := rng.IntN(n)
		for range before {
			f.finish(rng)
		}
		f.step(TriggerRequested{Request: 1, Kind: checkpoint.Checkpoint})
		f.step(LocationReady{ID: 1, Dir: "/cp"})
		if want := headsOf(g, f.finished); len(f.told) != len(want) {
			t.Fatalf("seed %d: %v were triggered, want %v", seed, f.told, want)
		}
		for range rng.IntN(n - before) {
			f.finish(rng)
			for _, head := range headsOf(g, f.finished) {
				if !f.told[head] {
					t.Fatalf("seed %d: with %v finished, nobody told %s", seed, f.finished, head)
				}
			}
		}
		for _, task := range g.Tasks() {
			if f.finished[task] {
				continue
			}
			if f.written {
				t.Fatalf("seed %d: the metadata is written without the ack of %s", seed, task)
			}
			f.step(Ack{Epoch: 1, Attempt: job.AttemptID{Job: testJob, Task: task, Attempt: 1}, ID: 1})
		}
		if !f.written {
			t.Fatalf("seed %d: all that run have acknowledged, and the checkpoint does not complete", seed)
		}
		out := f.c.Step(epoch0, MetadataWritten{ID: 1})
		at := slices.IndexFunc(out, func(e Effect) bool { _, ok := e.(SendNotifyComplete); return ok })
		if at < 0 || len(out[at].(SendNotifyComplete).Attempts) != n-len(f.finished) {
			t.Fatalf("seed %d: %v, want that the %d running tasks are told", seed, out, n-len(f.finished))
		}
	}
}
