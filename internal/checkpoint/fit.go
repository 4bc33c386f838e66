package checkpoint

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weirstream/weir/internal/job"
)

// Fit sees whether the job can take over the state of the checkpoint. With allowDropped the state of operators that the job does not have is
// left out: of the metadata that is returned, so that every later restore leaves it out too. dropped are the operators whose state is lost. The
// state of master hooks is treated in the same way; see UnmatchedHooks.
func Fit(md *Metadata, g *job.Graph, allowDropped bool) (fitted *Metadata, dropped []string, err error) {
	if allowDropped {
		md, dropped = without(md, g)
	}
	if _, err := Assign(md, g); err != nil {
		return nil, nil, err
	}
	return md, dropped, nil
}

// without copies md without the operators that g does not have, and says which of them had state.
func without(md *Metadata, g *job.Graph) (*Metadata, []string) {
	have := operatorsOf(g)
	out := *md
	out.Vertices, out.MasterStates = slices.Clone(md.Vertices), withoutHooks(md.MasterStates, g)
	lost := map[string]bool{}
	for i := range out.Vertices {
		v := &out.Vertices[i]
		v.Operators = slices.DeleteFunc(slices.Clone(v.Operators), func(op job.Operator) bool { return have[op.ID] == nil })
		v.Subtasks = slices.Clone(v.Subtasks)
		for n := range v.Subtasks {
			s := &v.Subtasks[n]
			s.Operators = slices.DeleteFunc(slices.Clone(s.Operators), func(op OperatorState) bool {
				if have[op.Operator] != nil {
					return false
				}
				lost[op.Operator] = lost[op.Operator] || op.hasState()
				return true
			})
		}
	}
	var dropped []string
	for i := range md.Vertices {
		for _, op := range md.Vertices[i].Operators {
			if lost[op.ID] {
				dropped = append(dropped, op.ID)
			}
		}
	}
	return &out, dropped
}

func operatorsOf(g *job.Graph) map[string]*job.Operator {
	out := map[string]*job.Operator{}
	for i := range g.Vertices {
		for k := range g.Vertices[i].Operators {
			op := &g.Vertices[i].Operators[k]
			out[op.ID] = op
		}
	}
	return out
}

func (s *OperatorState) hasState() bool {
	return s.Items != nil && s.Items.Len() > 0 || s.Keyed != nil && s.Keyed.Size() > 0 ||
		slices.ContainsFunc(s.Lists, func(l List) bool { return l.Items.Len() > 0 })
}

// Outcome is what becomes of an operator at a restore.
type Outcome string

// The outcomes.
const (
	Matched      Outcome = "matched"      // it is in the job and in the checkpoint
	New          Outcome = "new"          // it is only in the job, and starts empty
	Dropped      Outcome = "dropped"      // it is only in the checkpoint, and its state would be lost
	Incompatible Outcome = "incompatible" // it is in both, but cannot take over its state
)

// Comparison is one operator, or one master hook, of a job and of a checkpoint.
type Comparison struct {
	Operator string // empty for a hook
	Outcome  Outcome
	Detail   string
	Hook     string
}

// StateReader says whether an operator of a job can read what was written with other schemas.
type StateReader interface {
	ReadsKeyed(operator string, written []StateSchema) error
	ReadsList(operator string, written StateSchema, mode job.ListMode) error
}

// Compare says for each operator what a restore would do: those of the job in graph order, then the dropped ones, then
// the master hooks in the same way. The error is of the whole checkpoint.
func Compare(md *Metadata, g *job.Graph, states StateReader) ([]Comparison, error) {
	if err := md.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	old, err := index(md)
	if err != nil {
		return nil, incompatible(md, err)
	}
	var out []Comparison
	ended := newEndings(g, old)
	for i := range g.Vertices { // producers come first
		v := &g.Vertices[i]
		_, err := ended.vertex(v)
		for k := range v.Operators {
			c := compareOperator(&v.Operators[k], old[v.Operators[k].ID], v, states)
			if c.Outcome == Matched && err != nil {
				c.Outcome, c.Detail = Incompatible, err.Error()
			}
			out = append(out, c)
		}
	}
	have := operatorsOf(g)
	for i := range md.Vertices {
		for _, op := range md.Vertices[i].Operators {
			if have[op.ID] == nil && old[op.ID].hasState() {
				out = append(out, Comparison{Operator: op.ID, Outcome: Dropped, Detail: "its state has no operator in the job"})
			}
		}
	}
	return append(out, compareHooks(md, g)...), nil
}

func compareOperator(op *job.Operator, o *oldOperator, v *job.Vertex, states StateReader) Comparison {
	switch {
	case o == nil && op.Stateful:
		return Comparison{Operator: op.ID, Outcome: New, Detail: "starts empty"}
	case o == nil:
		return Comparison{Operator: op.ID, Outcome: New}
	case !o.hasState():
		return Comparison{Operator: op.ID, Outcome: Matched}
	case !op.Stateful:
		return Comparison{Operator: op.ID, Outcome: Incompatible, Detail: "it has state in the checkpoint and none in the job"}
	}
	if _, err := assignKeyed(op.ID, o, v); err != nil {
		return Comparison{Operator: op.ID, Outcome: Incompatible, Detail: err.Error()}
	}
	if err := o.readBy(op.ID, states); err != nil {
		return Comparison{Operator: op.ID, Outcome: Incompatible, Detail: err.Error()}
	}
	c := Comparison{Operator: op.ID, Outcome: Matched}
	if o.vertex.Parallelism != v.Parallelism {
		c.Detail = fmt.Sprintf("parallelism %d -> %d", o.vertex.Parallelism, v.Parallelism)
	}
	return c
}

// readBy says why the operator of the job cannot read a state of o. Of a list state without items nothing is asked: nobody gets it.
func (o *oldOperator) readBy(operator string, states StateReader) error {
	if written := o.schemas(); len(written) > 0 {
		if err := states.ReadsKeyed(operator, written); err != nil {
			return err
		}
	}
	lists := o.listsByName()
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		for _, l := range lists[name] {
			if l != nil && l.Items.Len() > 0 {
				if err := states.ReadsList(operator, l.Schema, l.Mode); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

// schemas are those of the first subtask with keyed state; all subtasks write the same.
func (o *oldOperator) schemas() []StateSchema {
	for _, s := range o.states {
		if s != nil && s.Keyed != nil && len(s.Keyed.States) > 0 {
			return s.Keyed.States
		}
	}
	return nil
}
