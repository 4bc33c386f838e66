package checkpoint

import (
	"errors"
	"fmt"

	"github.com/weirstream/weir/internal/job"
)

// ErrIncompatible: the job's graph cannot take over the state of the checkpoint. The same will happen again, surely.
var ErrIncompatible = errors.New("checkpoint does not fit the job")

// Restore is what one task gets of a checkpoint.
type Restore struct {
	Operators []OperatorRestore // in the order of the chain, only those that get something
	// Ended: see SubtaskState.Ended.
	Ended bool
}

// OperatorRestore is what one operator of one task gets: parts of the state of one or more old subtasks, in their order. The offsets in
// the handles select what belongs to the task; see Keyed.
type OperatorRestore struct {
	Operator string
	Items    []Items
	Keyed    []Keyed
	// Lists has an entry for each old subtask of whose items of a list state the task gets some.
	Lists []List
}

// Assign decides what each task of g gets of the checkpoint md; the map has an entry for each. Every key group and every item that is not of a union or
// broadcast state goes to exactly one task.
//
// Operators are matched by their ids, wherever they are in the graph, because what is chained may have changed. At the same parallelism a
// subtask gets what the subtask of the same number wrote. At another one, key groups go to their new owners, and the items of all old
// subtasks are laid end to end and cut evenly. List states of users' operators go by their mode, see job.ListMode.
func Assign(md *Metadata, g *job.Graph) (map[job.TaskID]Restore, error) {
	if err := md.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	old, err := index(md)
	if err != nil {
		return nil, incompatible(md, err)
	}
	out := map[job.TaskID]Restore{}
	matched := map[string]bool{}
	ended := newEndings(g, old)
	for i := range g.Vertices {
		v := &g.Vertices[i]
		for _, op := range v.Operators {
			matched[op.ID] = true
		}
		if err := assignVertex(v, old, ended, out); err != nil {
			return nil, incompatible(md, err)
		}
	}
	for i := range md.Vertices {
		for _, op := range md.Vertices[i].Operators {
			if !matched[op.ID] && old[op.ID].hasState() {
				return nil, incompatible(md, fmt.Errorf("state of operator %s has no operator in job %s; give the operator its id back, or drop its state with --allow-non-restored-state",
					op.ID, g.Name))
			}
		}
	}
	if hooks := md.UnmatchedHooks(g); len(hooks) > 0 {
		return nil, incompatible(md, fmt.Errorf("state of master hook %s has no hook in job %s; give the hook its id back, or drop its state with --allow-non-restored-state",
			hooks[0], g.Name))
	}
	return out, nil
}

func incompatible(md *Metadata, err error) error {
	return fmt.Errorf("%w: %s %d: %w", ErrIncompatible, md.Kind, md.ID, err)
}

// oldOperator is an operator in the checkpoint.
type oldOperator struct {
	id     string
	vertex *VertexState
	states []*OperatorState // by subtask, nil for a subtask that had none
}

// hasState reports whether anything would be lost without the operator.
func (o *oldOperator) hasState() bool {
	for _, s := range o.states {
		if s != nil && s.hasState() {
			return true
		}
	}
	return false
}

// index finds the operators of the checkpoint by id. It refuses metadata in which a part of a vertex is missing: a task must never start
// empty by accident.
func index(md *Metadata) (map[string]*oldOperator, error) {
	out := map[string]*oldOperator{}
	for i := range md.Vertices {
		v := &md.Vertices[i]
		if len(v.Subtasks) != v.Parallelism {
			return nil, fmt.Errorf("it has the state of %d of the %d subtasks of vertex %s", len(v.Subtasks), v.Parallelism, v.Vertex)
		}
		for _, op := range v.Operators {
			out[op.ID] = &oldOperator{id: op.ID, vertex: v, states: make([]*OperatorState, v.Parallelism)}
		}
		for n := range v.Subtasks {
			for k := range v.Subtasks[n].Operators {
				s := &v.Subtasks[n].Operators[k]
				out[s.Operator].states[n] = s
			}
		}
	}
	return out, nil
}

func assignVertex(v *job.Vertex, old map[string]*oldOperator, endings *endings, out map[job.TaskID]Restore) error {
	if v.Parallelism < 1 || v.Parallelism > v.MaxParallelism {
		return fmt.Errorf("vertex %s has parallelism %d, it is at least 1 and at most its max parallelism %d; choose another parallelism",
			v.ID, v.Parallelism, v.MaxParallelism)
	}
	ended, err := endings.vertex(v)
	if err != nil {
		return err
	}
	tasks := make([]Restore, v.Parallelism)
	for _, op := range v.Operators {
		o := old[op.ID]
		if o == nil {
			continue
		}
		keyed, err := assignKeyed(op.ID, o, v)
		if err != nil {
			return err
		}
		items, lists := assignItems(o, v), assignLists(o, v)
		for i := range tasks {
			if len(items[i])+len(keyed[i])+len(lists[i]) > 0 {
				tasks[i].Operators = append(tasks[i].Operators, OperatorRestore{op.ID, items[i], keyed[i], lists[i]})
			}
		}
	}
	for i := range tasks {
		tasks[i].Ended = ended[i]
		out[job.TaskID{Vertex: v.ID, Subtask: i}] = tasks[i]
	}
	return nil
}

// assignKeyed gives each new subtask the key groups that it owns.
func assignKeyed(operator string, o *oldOperator, v *job.Vertex) ([][]Keyed, error) {
	out := make([][]Keyed, v.Parallelism)
	next := 0
	for _, s := range o.states {
		if s == nil || s.Keyed == nil {
			continue
		}
		if o.vertex.MaxParallelism != v.MaxParallelism {
			return nil, fmt.Errorf("operator %s was at max parallelism %d and is now at %d; keyed state cannot move between numbers of key groups: choose max parallelism %d",
				operator, o.vertex.MaxParallelism, v.MaxParallelism, o.vertex.MaxParallelism)
		}
		k := s.Keyed
		if k.Range.Start < next {
			return nil, fmt.Errorf("two subtasks of operator %s have state of key group %d", operator, k.Range.Start)
		}
		next = k.Range.End
		if k.Range.Len() == 0 {
			continue
		}
		first := job.KeyGroupOwner(k.Range.Start, v.Parallelism, v.MaxParallelism)
		last := job.KeyGroupOwner(k.Range.End-1, v.Parallelism, v.MaxParallelism)
		for i := first; i <= last; i++ {
			if want := k.Range.Intersect(job.KeyGroups(i, v.Parallelism, v.MaxParallelism)); want.Len() > 0 {
				out[i] = append(out[i], k.cut(want))
			}
		}
	}
	return out, nil
}

// assignItems gives each new subtask its share of the items.
func assignItems(o *oldOperator, v *job.Vertex) [][]Items {
	out := make([][]Items, v.Parallelism)
	total := 0
	for i, s := range o.states {
		if s == nil || s.Items == nil || s.Items.Len() == 0 {
			continue
		}
		total += s.Items.Len()
		if o.vertex.Parallelism == v.Parallelism {
			out[i] = []Items{*s.Items}
		}
	}
	if o.vertex.Parallelism == v.Parallelism {
		return out
	}
	before := 0 // items of earlier old subtasks
	for _, s := range o.states {
		if s == nil || s.Items == nil {
			continue
		}
		n := s.Items.Len()
		for i := range out {
			from := max(i*total/v.Parallelism, before)
			to := min((i+1)*total/v.Parallelism, before+n)
			if from < to {
				out[i] = append(out[i], s.Items.cut(from-before, to-before))
			}
		}
		before += n
	}
	return out
}
