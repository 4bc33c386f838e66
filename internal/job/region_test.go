package job

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestRegions_OfKnownShapes(t *testing.T) {
	three := []Vertex{{ID: "source", Parallelism: 4}, {ID: "map", Parallelism: 4}, {ID: "sink", Parallelism: 4}}
	chain := func(second Partitioning) []Edge {
		return []Edge{{From: "source", To: "map", Partitioning: Forward}, {From: "map", To: "sink", Partitioning: second}}
	}
	for _, c := range []struct {
		name string
		g    Graph
		want int
	}{
		{"nothing", Graph{}, 0},
		{"no edges", Graph{Vertices: three}, 12},
		{"forward", Graph{Vertices: three, Edges: chain(Forward)}, 4},
		{"hash", Graph{Vertices: three, Edges: chain(Hash)}, 1},
		{"rebalance", Graph{Vertices: three, Edges: chain(Rebalance)}, 1},
		{"broadcast", Graph{Vertices: three, Edges: chain(Broadcast)}, 1},
		{"one keyed pipeline beside forward ones", Graph{
			Vertices: append(slices.Clone(three), Vertex{ID: "a", Parallelism: 2}, Vertex{ID: "b", Parallelism: 3}),
			Edges:    append(chain(Forward), Edge{From: "a", To: "b", Partitioning: Hash}),
		}, 5},
		{"forward between unequal ends connects all", Graph{
			Vertices: []Vertex{{ID: "a", Parallelism: 2}, {ID: "b", Parallelism: 3}}, Edges: []Edge{{From: "a", To: "b", Partitioning: Forward}},
		}, 1},
	} {
		if got := len(c.g.Regions()); got != c.want {
			t.Errorf("%s: %d regions, want %d: %v", c.name, got, c.want, c.g.Regions())
		}
	}
}

// TestRegions_AgreeWithTheTwin compares random graphs with one that walks from task to task.
func TestRegions_AgreeWithTheTwin(t *testing.T) {
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var g Graph
		for i := range 1 + rng.IntN(6) {
			g.Vertices = append(g.Vertices, Vertex{ID: VertexID(fmt.Sprintf("v%d", i)), Parallelism: 1 + rng.IntN(4)})
		}
		for range rng.IntN(8) {
			from, to := rng.IntN(len(g.Vertices)), rng.IntN(len(g.Vertices))
			g.Edges = append(g.Edges, Edge{From: g.Vertices[from].ID, To: g.Vertices[to].ID, Partitioning: Partitioning(1 + rng.IntN(4))})
		}
		regions := g.Regions()
		of := map[TaskID]int{}
		var all []TaskID
		for i, r := range regions {
			for _, task := range r {
				of[task] = i
			}
			all = append(all, r...)
		}
		if len(all) != len(g.Tasks()) || len(of) != len(all) {
			t.Fatalf("seed %d: %d tasks in regions, %d different ones, %d in the graph", seed, len(all), len(of), len(g.Tasks()))
		}
		for _, a := range g.Tasks() {
			reached := walk(&g, a)
			for _, b := range g.Tasks() {
				if (of[a] == of[b]) != reached[b] {
					t.Fatalf("seed %d: %s and %s are connected %t, and in regions %d and %d", seed, a, b, reached[b], of[a], of[b])
				}
			}
		}
	}
}

// walk is the dumb twin: everything that can be reached over edges in both directions.
func walk(g *Graph, from TaskID) map[TaskID]bool {
	reached := map[TaskID]bool{from: true}
	for again := true; again; {
		again = false
		for _, a := range g.Tasks() {
			for _, b := range g.Tasks() {
				if reached[a] != reached[b] && (adjacent(g, a, b) || adjacent(g, b, a)) {
					reached[a], reached[b], again = true, true, true
				}
			}
		}
	}
	return reached
}

func adjacent(g *Graph, a, b TaskID) bool {
	for _, e := range g.Edges {
		pointwise := e.Partitioning == Forward && g.Vertex(e.From).Parallelism == g.Vertex(e.To).Parallelism
		if e.From == a.Vertex && e.To == b.Vertex && (!pointwise || a.Subtask == b.Subtask) {
			return true
		}
	}
	return false
}
