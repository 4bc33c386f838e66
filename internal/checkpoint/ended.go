package checkpoint

import (
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/job"
)

// endedSubtasks says which tasks of v had reached their end of input. Old subtasks that end up in one task must agree, because a task
// flushes all of its operators or none.
func endedSubtasks(v *job.Vertex, old map[string]*oldOperator) ([]bool, error) {
	out := make([]bool, v.Parallelism)
	decided := make([]bool, v.Parallelism)
	for _, op := range v.Operators {
		o := old[op.ID]
		if o == nil {
			continue
		}
		same := o.vertex.Parallelism == v.Parallelism
		for n := range o.vertex.Subtasks {
			ended := o.vertex.Subtasks[n].Ended
			if !same && ended != o.vertex.Subtasks[0].Ended {
				return nil, fmt.Errorf("some but not all subtasks of vertex %s had reached the end of their input, so that its parallelism cannot change from %d to %d; start with parallelism %d",
					o.vertex.Vertex, o.vertex.Parallelism, v.Parallelism, o.vertex.Parallelism)
			}
		}
		for i := range out {
			ended := o.vertex.Subtasks[0].Ended
			if same {
				ended = o.vertex.Subtasks[i].Ended
			}
			if decided[i] && out[i] != ended {
				return nil, fmt.Errorf("only some operators of task %s[%d] had reached the end of their input; start with the chains that the checkpoint was taken with", v.ID, i)
			}
			out[i], decided[i] = ended, true
		}
	}
	return out, nil
}

// nothingComes reports a task of v that had reached the end of its input although a task in front of it had not. It would take records again and
// never give out what comes of them, because its operators are not flushed twice. ended has the subtasks of each vertex of g.
func nothingComes(g *job.Graph, v *job.Vertex, ended map[job.VertexID][]bool) error {
	for _, e := range g.Inputs(v.ID) {
		before := ended[e.From]
		own, open := slices.Index(ended[v.ID], true), slices.Index(before, false)
		if e.Partitioning == job.Forward {
			own = pairOff(ended[v.ID], before)
			open = own
		}
		if own >= 0 && open >= 0 {
			return fmt.Errorf("%s had reached the end of its input, and %s in front of it has not; start with the operators and chains that the checkpoint was taken with",
				job.TaskID{Vertex: v.ID, Subtask: own}, job.TaskID{Vertex: e.From, Subtask: open})
		}
	}
	return nil
}

// pairOff finds a subtask that has ended and whose only producer, the subtask of the same number, has not; -1: there is none.
func pairOff(ended, before []bool) int {
	for i, is := range ended {
		if is && i < len(before) && !before[i] {
			return i
		}
	}
	return -1
}
