package scheduler

import (
	"slices"

	"github.com/weirstream/weir/internal/job"
)

// place gives each task of the graph a seat: the number of one of the slots, of which there are as many as the job needs.
//
// A slot holds at most one subtask of each vertex. Slot i holds subtask i of every vertex of full parallelism. A smaller vertex is spread over the
// slots at even distances, from the place where the executors hold the least of the smaller vertices so far. Vertices of one parallelism that are
// connected forward lie on top of each other, so that their records never leave the process.
func place(g *job.Graph, slots []job.Slot) map[job.TaskID]int {
	spread := spreader{slots: slots, perExecutor: map[job.ExecutorID]int{}, perSlot: make([]int, len(slots))}
	group := forwardGroups(g)
	offset := map[job.VertexID]int{} // of a group, by its first vertex
	out := map[job.TaskID]int{}
	for _, v := range g.Vertices {
		first := group[v.ID]
		if _, ok := offset[first]; !ok {
			offset[first] = spread.choose(v.Parallelism)
		}
		for i := range v.Parallelism {
			at := spread.slot(i, v.Parallelism, offset[first])
			spread.add(at, v.Parallelism)
			out[job.TaskID{Vertex: v.ID, Subtask: i}] = at
		}
	}
	return out
}

// refill gives new slots to seats that were asked for, when tasks restart. A seat gets a slot of the executor that it was on before, if there is one
// among them. The others get what is left: the seats with the most subtasks of smaller vertices choose first, and take the executor that has the
// least of these.
func refill(s *seats, g *job.Graph, asked []int, slots []job.Slot) {
	left := slices.Clone(slots)
	var open []int
	for _, at := range asked {
		same := slices.IndexFunc(left, func(slot job.Slot) bool { return slot.Executor == s.slots[at].Executor })
		if same < 0 {
			open = append(open, at)
			continue
		}
		s.slots[at] = left[same]
		left = slices.Delete(left, same, same+1)
	}
	small := make([]int, len(s.slots)) // subtasks of smaller vertices, by seat
	for _, v := range g.Vertices {
		for i := range v.Parallelism {
			if v.Parallelism < len(s.slots) {
				small[s.of[job.TaskID{Vertex: v.ID, Subtask: i}]]++
			}
		}
	}
	load := map[job.ExecutorID]int{}
	for at, slot := range s.slots {
		if s.held[at] || slices.Contains(asked, at) && !slices.Contains(open, at) {
			load[slot.Executor] += small[at]
		}
	}
	slices.SortStableFunc(open, func(a, b int) int { return small[b] - small[a] })
	for _, at := range open {
		best := 0
		for i := range left {
			if load[left[i].Executor] < load[left[best].Executor] {
				best = i
			}
		}
		s.slots[at] = left[best]
		load[left[best].Executor] += small[at]
		left = slices.Delete(left, best, best+1)
	}
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
