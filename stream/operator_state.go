package stream

import (
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream/codec"
)

// OperatorState is a declared state that belongs to a subtask of an operator and not to a key: a ListState or a BroadcastState. A declaration
// belongs to one operator.
type OperatorState interface {
	name() string
	bind(index int, operator string) error
	newHolder() holder
}

// The kinds of operator state, as they are in StateSchema.Kind and so in checkpoints.
const (
	kindOperatorList = "operator-list"
	kindBroadcast    = "broadcast"
)

// holder is what one subtask has of an operator state.
type holder interface {
	schema() StateSchema
	mode() job.ListMode
	snapshot() (ListSnapshot, error)
	check(written StateSchema) error
	restore(written StateSchema, items [][]byte) error
	converts() []string // see codec.Converts
}

// operatorDeclaration is what the kinds of operator state have in common.
type operatorDeclaration struct {
	id       string
	mode     job.ListMode
	index    int
	operator string
	err      error
}

func (d *operatorDeclaration) name() string { return d.id }

func (d *operatorDeclaration) bind(index int, operator string) error {
	switch {
	case d.err != nil:
		return fmt.Errorf("state %q of operator %s: %w", d.id, operator, d.err)
	case d.operator != "":
		return fmt.Errorf("state %q is declared for operator %s and for %s: each needs a declaration of its own", d.id, d.operator, operator)
	case d.id == "":
		return fmt.Errorf("a state of operator %s has no name", operator)
	}
	d.index, d.operator = index, operator
	return nil
}

// bindStates declares operator states for n, behind the states that it has already.
func bindStates(j *Job, n *Node, states []OperatorState) {
	for i, st := range states {
		if slices.Contains(n.States, st.name()) {
			j.fail("two states of operator %s have the name %q", n.ID, st.name())
		}
		n.States = append(n.States, st.name())
		if err := st.bind(i, n.ID); err != nil {
			j.Fail(err)
		}
	}
	n.Stateful = n.Stateful || len(states) > 0
}

// operatorStates are the operator states of one subtask. It implements ListsStateful.
type operatorStates struct {
	of      *Env
	holders []holder
}

func newOperatorStates(env *Env, declared []OperatorState) operatorStates {
	s := operatorStates{of: env}
	for _, d := range declared {
		s.holders = append(s.holders, d.newHolder())
	}
	return s
}

// SnapshotLists implements ListsStateful.
func (s *operatorStates) SnapshotLists() ([]ListSnapshot, error) {
	out := make([]ListSnapshot, len(s.holders))
	for i, h := range s.holders {
		var err error
		if out[i], err = h.snapshot(); err != nil {
			return nil, s.of.fail(fmt.Errorf("snapshot state %q: %w", h.schema().Name, err))
		}
	}
	return out, nil
}

// DescribeStates implements StateDescriber.
func (s *operatorStates) DescribeStates() []job.DeclaredState {
	var out []job.DeclaredState
	for _, h := range s.holders {
		out = append(out, describe(h.schema(), h.mode(), h.converts()))
	}
	return out
}

// RestoreList implements ListsStateful.
func (s *operatorStates) RestoreList(written StateSchema, mode job.ListMode, items [][]byte) error {
	h, err := s.find(written, mode)
	if err == nil {
		err = Permanent(h.check(written))
	}
	if err == nil {
		err = h.restore(written, items)
	}
	if err != nil {
		return s.of.fail(fmt.Errorf("restore state %q: %w", written.Name, err))
	}
	return nil
}

// CheckList implements ListChecker.
func (s *operatorStates) CheckList(written StateSchema, mode job.ListMode) error {
	h, err := s.find(written, mode)
	if err == nil {
		err = h.check(written)
	}
	if err != nil {
		return fmt.Errorf("state %q: %w", written.Name, err)
	}
	return nil
}

// find gives the state that was written, which must still be of the same kind and mode: the mode says what the items of a subtask mean.
func (s *operatorStates) find(written StateSchema, mode job.ListMode) (holder, error) {
	i := slices.IndexFunc(s.holders, func(h holder) bool { return h.schema().Name == written.Name })
	if i < 0 {
		return nil, Permanent(fmt.Errorf("the checkpoint has a state %q that the operator no longer declares: declare it again and clear it, or give the operator another id and leave its state behind",
			written.Name))
	}
	h := s.holders[i]
	if kind := h.schema().Kind; kind != written.Kind || h.mode() != mode {
		return nil, Permanent(fmt.Errorf("it was written as a %s state of kind %q and is declared as a %s one of kind %q: declare it as it was, or under another name",
			mode, written.Kind, h.mode(), kind))
	}
	return h, nil
}

// OperatorContext is what an operator without keys knows of the record that it processes, and how its states find their subtask. It is valid during
// the call only.
type OperatorContext struct {
	env     *Env
	ts      Timestamp
	holders []holder
}

// Timestamp is the event time of the record, or NoTimestamp: when the operator opens, and at the end of input, there is none.
func (c *OperatorContext) Timestamp() Timestamp { return c.ts }

// Subtask is the number of the subtask, from 0 up to Parallelism.
func (c *OperatorContext) Subtask() int { return c.env.Subtask }

// Parallelism is the number of the operator's subtasks.
func (c *OperatorContext) Parallelism() int { return c.env.Parallelism }

// Restored tells whether the subtask continues from a checkpoint.
func (c *OperatorContext) Restored() bool { return c.env.Restored }

// held gives what the subtask of holders has of a state.
func held[H holder](holders []holder, d *operatorDeclaration, mine func(H) bool) H {
	if d.index < len(holders) {
		if h, ok := holders[d.index].(H); ok && mine(h) {
			return h
		}
	}
	panic(fmt.Sprintf("state %q is not a state of the operator that uses it: name it where the operator is made", d.id))
}

// resolveWritten gives the codec that reads values of a state that were written with a schema.
func resolveWritten[V any](what string, c codec.Codec[V], written string) (codec.Codec[V], error) {
	resolved, err := codec.Resolve(c, written)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return resolved, nil
}
