package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream"
)

// CheckStates says why an operator of the program cannot take over keyed states that were written with the given schemas.
func (p *Program) CheckStates(operator string, written []stream.StateSchema) error {
	n, v := p.node(operator)
	if n == nil {
		return fmt.Errorf("the job has no operator %s", operator)
	}
	return noPanic("operator "+operator, func() error { return checkStates(n, v, written) })
}

// CheckList says why an operator of the program cannot take over a list or broadcast state that was written with the given schema and mode.
func (p *Program) CheckList(operator string, written stream.StateSchema, mode job.ListMode) error {
	n, v := p.node(operator)
	if n == nil {
		return fmt.Errorf("the job has no operator %s", operator)
	}
	return noPanic("operator "+operator, func() error {
		op, err := unconnected(n, v)
		if err != nil {
			return err
		}
		checker, ok := op.(stream.ListChecker)
		if !ok {
			return fmt.Errorf("it has a state %q in the checkpoint and no operator state in the job", written.Name)
		}
		return checker.CheckList(written, mode)
	})
}

// node finds an operator of the program; nil: there is none.
func (p *Program) node(operator string) (*stream.Node, job.Vertex) {
	for _, v := range p.Graph.Vertices {
		for _, n := range p.chains[v.ID].nodes {
			if n.ID == operator {
				return n, v
			}
		}
	}
	return nil, job.Vertex{}
}

// unconnected builds the operator of one subtask, with one key group, and without anything behind it.
func unconnected(n *stream.Node, v job.Vertex) (stream.Operator, error) {
	link, err := n.Build(&stream.Env{
		Operator: n.ID, Parallelism: v.Parallelism, MaxParallelism: v.MaxParallelism,
		KeyGroups: job.KeyGroupRange{End: 1}, Running: new(int), Wake: func() {},
	}, nil)
	if err != nil {
		return nil, err
	}
	return link.Operator, nil
}

func checkStates(n *stream.Node, v job.Vertex, written []stream.StateSchema) error {
	if len(n.States) == 0 {
		return errors.New("it has keyed state in the checkpoint and none in the job")
	}
	op, err := unconnected(n, v)
	if err != nil {
		return err
	}
	checker, ok := op.(stream.StateChecker)
	if !ok {
		return fmt.Errorf("an operator of kind %s cannot say which states it reads", n.Kind)
	}
	return checker.CheckStates(written)
}

// declaredBy is what an operator declares: keyed states as it writes them, and what else it describes.
func declaredBy(id string, op stream.Operator) (out []job.DeclaredState) {
	var described []job.DeclaredState
	if d, ok := op.(stream.StateDescriber); ok {
		described = d.DescribeStates()
	}
	if k, ok := op.(stream.KeyedStateful); ok {
		for _, s := range k.Schemas() {
			d := job.DeclaredState{
				Operator: id, Name: s.Name, Kind: s.Kind, KeyType: s.KeyType, ValueType: s.ValueType,
				NamespaceType: s.NamespaceType, MapKeyType: s.MapKeyType, TTL: s.TTL,
			}
			if i := slices.IndexFunc(described, func(o job.DeclaredState) bool { return o.Mode == 0 && o.Name == s.Name }); i >= 0 {
				d.Converts = described[i].Converts
			}
			out = append(out, d)
		}
	}
	for _, d := range described {
		if d.Mode != 0 {
			d.Operator = id
			out = append(out, d)
		}
	}
	return out
}

// declareStates notes at each vertex what its operators declare.
func (p *Program) declareStates() error {
	for i := range p.Graph.Vertices {
		v := &p.Graph.Vertices[i]
		for _, n := range p.chains[v.ID].nodes {
			if len(n.States) == 0 {
				continue
			}
			err := noPanic("operator "+n.ID, func() error {
				op, err := unconnected(n, *v)
				if err != nil {
					return fmt.Errorf("operator %s: %w", n.ID, err)
				}
				v.States = append(v.States, declaredBy(n.ID, op)...)
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
