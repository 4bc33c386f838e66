package scheduler

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/job"
)

// slotNames makes slots on executors from "e1 e1 e2"; the address tells the slots of one executor apart.
func slotNames(names string) []job.Slot {
	var out []job.Slot
	for i, n := range strings.Fields(names) {
		out = append(out, job.Slot{Executor: job.ExecutorID(n), Address: fmt.Sprintf("slot-%d", i)})
	}
	return out
}

func TestPlace_Examples(t *testing.T) {
	for _, c := range []struct{ name, vertices, slots, want string }{
		{"slots are used in order, spare ones are not", "a=2 b=2", "e1 e2 e3", "a0@0 a1@1 b0@0 b1@1"},
		{"a smaller vertex is spread over the executors", "a=4 b=2", "e1 e1 e2 e2", "a0@0 a1@1 a2@2 a3@3 b0@0 b1@2"},
		{"small vertices do not heap up", "a=1 b=4 c=1 d=1", "e1 e1 e2 e2", "a0@0 b0@0 b1@1 b2@2 b3@3 c0@2 d0@1"},
		{"neither where the distances are uneven", "a=3 b=2 c=2", "e1 e2 e3", "a0@0 a1@1 a2@2 b0@0 b1@1 c0@1 c1@2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &job.Graph{}
			for _, v := range strings.Fields(c.vertices) {
				name, p, _ := strings.Cut(v, "=")
				g.Vertices = append(g.Vertices, job.Vertex{ID: job.VertexID(name), Parallelism: atoi(t, p)})
			}
			placed, err := place(g, slotNames(c.slots))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i, id := range g.Tasks() {
				got = append(got, fmt.Sprintf("%s%d@%s", id.Vertex, id.Subtask, strings.TrimPrefix(placed[i].Address, "slot-")))
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("got %s, want %s", s, c.want)
			}
		})
	}
}

func TestPlace_TooFewSlots(t *testing.T) {
	g := &job.Graph{Name: "flights", Vertices: []job.Vertex{{ID: "a", Parallelism: 3}}}
	if _, err := place(g, slotNames("e1 e2")); err == nil || !strings.Contains(err.Error(), "job flights needs 3 slots and was given 2") {
		t.Errorf("got %v", err)
	}
}

func TestPlace_Properties(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 2))
		g := randomGraph(rng)
		n := g.MaxVertexParallelism()
		var names []string
		for range n + rng.IntN(3) {
			names = append(names, fmt.Sprintf("e%d", rng.IntN(4)))
		}
		slots := slotNames(strings.Join(names, " "))
		placed, err := place(g, slots)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		tasks := g.Tasks()
		if len(placed) != len(tasks) {
			t.Fatalf("seed %d: %d tasks are placed %d times", seed, len(tasks), len(placed))
		}
		where := map[job.TaskID]job.Slot{}
		holds := map[string]bool{} // slot and vertex
		for i, id := range tasks {
			s := placed[i]
			where[id] = s
			key := s.Address + " " + string(id.Vertex)
			if holds[key] {
				t.Fatalf("seed %d: %s holds two subtasks of %s", seed, s.Address, id.Vertex)
			}
			holds[key] = true
			if p := g.Vertex(id.Vertex).Parallelism; p == n && s != slots[id.Subtask] {
				t.Fatalf("seed %d: %s of full parallelism lies in %s", seed, id, s.Address)
			}
		}
		checkColocation(t, seed, g, where)
	}
}

func checkColocation(t *testing.T, seed uint64, g *job.Graph, where map[job.TaskID]job.Slot) {
	for _, e := range g.Edges {
		p := g.Vertex(e.From).Parallelism
		if e.Partitioning != job.Forward || p != g.Vertex(e.To).Parallelism {
			continue
		}
		for i := range p {
			from, to := job.TaskID{Vertex: e.From, Subtask: i}, job.TaskID{Vertex: e.To, Subtask: i}
			if where[from] != where[to] {
				t.Fatalf("seed %d: %s -> %s is forward, but they lie in %s and %s", seed, from, to, where[from].Address, where[to].Address)
			}
		}
	}
}

func randomGraph(rng *rand.Rand) *job.Graph {
	g := &job.Graph{Name: "random"}
	for i := range 1 + rng.IntN(6) {
		v := job.Vertex{ID: job.VertexID(fmt.Sprintf("v%d", i)), Parallelism: 1 + rng.IntN(5)}
		for _, from := range g.Vertices {
			if rng.IntN(2) == 0 {
				p := job.Partitioning(1 + rng.IntN(4))
				g.Edges = append(g.Edges, job.Edge{ID: fmt.Sprintf("%s->%s", from.ID, v.ID), From: from.ID, To: v.ID, Partitioning: p})
			}
		}
		g.Vertices = append(g.Vertices, v)
	}
	return g
}
