package scheduler

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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
		{"slots are used in order", "a=2 b=2", "e1 e2", "a0@0 a1@1 b0@0 b1@1"},
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
			placed := place(g, slotNames(c.slots))
			var got []string
			for _, id := range g.Tasks() {
				got = append(got, fmt.Sprintf("%s%d@%d", id.Vertex, id.Subtask, placed[id]))
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("got %s, want %s", s, c.want)
			}
		})
	}
}

func TestPlace_Properties(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 2))
		g := randomGraph(rng)
		n := g.MaxVertexParallelism()
		var names []string
		for range n {
			names = append(names, fmt.Sprintf("e%d", rng.IntN(4)))
		}
		slots := slotNames(strings.Join(names, " "))
		placed := place(g, slots)
		tasks := g.Tasks()
		if len(placed) != len(tasks) {
			t.Fatalf("seed %d: %d tasks are placed %d times", seed, len(tasks), len(placed))
		}
		where := map[job.TaskID]job.Slot{}
		holds := map[string]bool{} // slot and vertex
		for _, id := range tasks {
			s := slots[placed[id]]
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

// TestRefill_Properties: tasks come back to the executors that they were on, as many as there are slots for; the others are placed around them.
func TestRefill_Properties(t *testing.T) {
	moved := 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		g := randomGraph(rng)
		s := newSeats(g)
		n := len(s.slots)
		names := func(n int) string {
			var out []string
			for range n {
				out = append(out, fmt.Sprintf("e%d", rng.IntN(4)))
			}
			return strings.Join(out, " ")
		}
		s.request(s.all())
		s.fill(g, slotNames(names(n)))
		before, of := slices.Clone(s.slots), maps.Clone(s.of)
		var asked []int
		for at := range n {
			if rng.IntN(2) == 0 {
				asked = append(asked, at)
			}
		}
		granted := slotNames(names(len(asked)))
		for i := range granted {
			granted[i].Address = fmt.Sprintf("new-%d", i)
		}
		s.request(asked)
		if !s.fill(g, granted) {
			t.Fatalf("seed %d: %d slots are too few for %d seats", seed, len(granted), len(asked))
		}
		had, got, back := map[job.ExecutorID]int{}, map[job.ExecutorID]int{}, map[job.ExecutorID]int{}
		taken := map[string]bool{}
		for at, slot := range s.slots {
			if !slices.Contains(asked, at) {
				if slot != before[at] {
					t.Fatalf("seed %d: seat %d was moved from %v to %v, and nobody asked", seed, at, before[at], slot)
				}
				continue
			}
			if taken[slot.Address] || !slices.Contains(granted, slot) {
				t.Fatalf("seed %d: slot %v was given to two seats, or never to the job", seed, slot)
			}
			taken[slot.Address] = true
			had[before[at].Executor]++
			if slot.Executor == before[at].Executor {
				back[slot.Executor]++
			}
		}
		for _, slot := range granted {
			got[slot.Executor]++
		}
		for e := range had {
			if want := min(had[e], got[e]); back[e] != want {
				t.Fatalf("seed %d: %d seats are back on %s, which had %d and has %d free", seed, back[e], e, had[e], got[e])
			}
			moved += had[e] - back[e]
		}
		if !maps.Equal(of, s.of) {
			t.Fatalf("seed %d: tasks have changed their seats", seed)
		}
	}
	if moved == 0 {
		t.Error("no seat ever moved: the test does not test it")
	}
}

func TestRefill_SmallVerticesAreSpread(t *testing.T) {
	g := &job.Graph{Vertices: []job.Vertex{{ID: "a", Parallelism: 4}, {ID: "b", Parallelism: 2}}}
	s := newSeats(g)
	s.request(s.all())
	s.fill(g, slotNames("e1 e1 e2 e2")) // b is in seats 0 and 2
	s.lose("e1")
	s.request([]int{0, 1})
	s.fill(g, slotNames("e2 e3"))
	if got := []job.ExecutorID{s.slots[0].Executor, s.slots[1].Executor}; !slices.Equal(got, []job.ExecutorID{"e3", "e2"}) {
		t.Errorf("seats 0 and 1 are on %v: e2 has a subtask of b already, the other belongs on e3", got)
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
