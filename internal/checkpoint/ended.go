package checkpoint

import (
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/job"
)

// A task that had reached the end of its input starts at its end again: it reads nothing, takes nothing and flushes nothing (Restore.Ended). Which
// of the new tasks are such is decided from the parts that each is made of, the old subtasks of its operators:
//
//  1. All parts had ended, and nobody in front of the task has anything to send: it has ended. A vertex that had ended as a whole stays so at any
//     parallelism; its state goes to the new subtasks all the same, because it holds output that is still to be committed.
//  2. None had: it has not.
//  3. Some had, or all had and somebody in front of it sends: without keyed state it has not. A source reads on at the positions of the parts, and
//     those of ended ones are at their end or not there any more, so it ends by itself; it needs no positions at all to do so. Its operators are
//     flushed, those of ended parts a second time, which gives nothing: an operator without keyed state holds nothing after its flush that it would
//     give out again (stream.Finisher), and what a sink still has to commit it commits, once, whoever has it.
//  4. The same with keyed state is refused: what was flushed for a key would be given out again, or be missing from what comes of later records.
//     It does not happen by itself, since a keyed operator ends when everything in front of it has, in all its subtasks.
//
// At the same parallelism the parts of a task are the subtasks of its number; at another one they are all subtasks, because items of each of them
// may come to it.
type endings struct {
	g   *job.Graph
	old map[string]*oldOperator
	of  map[job.VertexID][]bool // by subtask; of the vertices that were looked at
}

func newEndings(g *job.Graph, old map[string]*oldOperator) *endings {
	return &endings{g: g, old: old, of: map[job.VertexID][]bool{}}
}

// vertex says which tasks of v have ended. Vertices must be asked for in graph order, producers first. After an error the vertex counts as running.
func (e *endings) vertex(v *job.Vertex) ([]bool, error) {
	out := make([]bool, v.Parallelism)
	e.of[v.ID] = out
	keyed := e.keyed(v)
	decided := make([]bool, v.Parallelism)
	for i := range out {
		with, without := e.parts(v, i)
		if with != "" && without != "" && keyed != "" {
			return make([]bool, v.Parallelism), e.mixed(v, i, with, without)
		}
		decided[i] = with != "" && without == ""
	}
	for i := range out {
		from, sends := e.sender(v, i)
		if decided[i] && sends && keyed != "" {
			return make([]bool, v.Parallelism), fmt.Errorf("%s had reached the end of its input, and %s in front of it has not; start with the operators and chains that the checkpoint was taken with",
				job.TaskID{Vertex: v.ID, Subtask: i}, from)
		}
		out[i] = decided[i] && !sends
	}
	return out, nil
}

// parts names an operator of the task of which a part had ended, and one of which a part had not; empty: there is none.
func (e *endings) parts(v *job.Vertex, subtask int) (with, without string) {
	for _, op := range v.Operators {
		o := e.old[op.ID]
		if o == nil {
			continue // it is new, and has no say
		}
		for n := range o.vertex.Subtasks {
			switch {
			case o.vertex.Parallelism == v.Parallelism && n != subtask:
			case o.vertex.Subtasks[n].Ended:
				with = op.ID
			default:
				without = op.ID
			}
		}
	}
	return with, without
}

// keyed names an operator of v that has keyed state, or had some in the checkpoint; empty: none.
func (e *endings) keyed(v *job.Vertex) string {
	for _, op := range v.Operators {
		o := e.old[op.ID]
		if len(op.States) > 0 || o != nil && (o.declared() || slices.ContainsFunc(o.states, func(s *OperatorState) bool { return s != nil && s.Keyed != nil })) {
			return op.ID
		}
	}
	return ""
}

// declared reports whether the operator had declared states: those of subtasks that have finished are not in the checkpoint.
func (o *oldOperator) declared() bool {
	return slices.ContainsFunc(o.vertex.Operators, func(op job.Operator) bool { return op.ID == o.id && len(op.States) > 0 })
}

// sender finds a task in front of v's subtask that has not ended.
func (e *endings) sender(v *job.Vertex, subtask int) (job.TaskID, bool) {
	for _, in := range e.g.Inputs(v.ID) {
		before := e.of[in.From]
		for i, ended := range before {
			if !ended && (in.Partitioning != job.Forward || i == subtask) {
				return job.TaskID{Vertex: in.From, Subtask: i}, true
			}
		}
	}
	return job.TaskID{}, false
}

func (e *endings) mixed(v *job.Vertex, subtask int, with, without string) error {
	if with != without {
		return fmt.Errorf("only some operators of task %s had reached the end of their input; start with the chains that the checkpoint was taken with",
			job.TaskID{Vertex: v.ID, Subtask: subtask})
	}
	old := e.old[with].vertex
	return fmt.Errorf("some but not all subtasks of vertex %s had reached the end of their input, and it has keyed state, so that its parallelism cannot change from %d to %d; start with parallelism %d",
		old.Vertex, old.Parallelism, v.Parallelism, old.Parallelism)
}
