package scheduler

import (
	"fmt"

	"github.com/weirstream/weir/internal/job"
)

// place gives each task of the graph one of the slots; the answer is in the order of Graph.Tasks.
//
// A slot holds at most one subtask of each vertex. Slot i holds subtask i of every vertex of full parallelism. A smaller vertex is spread over the
// slots at even distances, from the place where the executors hold the least of the smaller vertices so far. Vertices of one parallelism that are
// connected forward lie on top of each other, so that their records never leave the process. Slots beyond the need are not used.
func place(g *job.Graph, slots []job.Slot) ([]job.Slot, error) {
	n := g.MaxVertexParallelism()
	if len(slots) < n {
		return nil, fmt.Errorf("job %s needs %s and was given %d: this is a bug of the slot registry", g.Name, plural(n, "slot"), len(slots))
	}
	spread := spreader{slots: slots[:n], perExecutor: map[job.ExecutorID]int{}, perSlot: make([]int, n)}
	group := forwardGroups(g)
	offset := map[job.VertexID]int{} // of a group, by its first vertex
	var out []job.Slot
	for _, v := range g.Vertices {
		first := group[v.ID]
		if _, ok := offset[first]; !ok {
			offset[first] = spread.choose(v.Parallelism)
		}
		for i := range v.Parallelism {
			at := spread.slot(i, v.Parallelism, offset[first])
			spread.add(at, v.Parallelism)
			out = append(out, slots[at])
		}
	}
	return out, nil
}

// forwardGroups maps each vertex to the first vertex, in graph order, that it is connected to by forward edges of equal parallelism.
func forwardGroups(g *job.Graph) map[job.VertexID]job.VertexID {
	group := map[job.VertexID]job.VertexID{}
	for _, v := range g.Vertices {
		group[v.ID] = v.ID
	}
	for _, e := range g.Edges {
		from, to := g.Vertex(e.From), g.Vertex(e.To)
		if e.Partitioning != job.Forward || from.Parallelism != to.Parallelism {
			continue
		}
		keep, drop := group[e.From], group[e.To]
		for _, v := range g.Vertices {
			if group[v.ID] == drop {
				group[v.ID] = keep
			}
		}
	}
	return group
}

// spreader remembers how many subtasks of the smaller vertices lie where.
type spreader struct {
	slots       []job.Slot
	perExecutor map[job.ExecutorID]int
	perSlot     []int
}

// slot is where subtask i lies. Distances are at least one since parallelism is at most the number of slots, so no two subtasks meet.
func (s *spreader) slot(i, parallelism, offset int) int {
	n := len(s.slots)
	return (i*n/parallelism + offset) % n
}

// choose returns the first offset with the least load for a vertex.
func (s *spreader) choose(parallelism int) int {
	best, bestLoad := 0, [2]int{}
	if parallelism == len(s.slots) {
		return best
	}
	for offset := range s.slots {
		var load [2]int
		for i := range parallelism {
			at := s.slot(i, parallelism, offset)
			load[0] += s.perExecutor[s.slots[at].Executor]
			load[1] += s.perSlot[at]
		}
		if offset == 0 || load[0] < bestLoad[0] || load[0] == bestLoad[0] && load[1] < bestLoad[1] {
			best, bestLoad = offset, load
		}
	}
	return best
}

func (s *spreader) add(at, parallelism int) {
	if parallelism < len(s.slots) {
		s.perExecutor[s.slots[at].Executor]++
		s.perSlot[at]++
	}
}
