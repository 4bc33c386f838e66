package plan

import (
	"errors"
	"fmt"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream"
)

// CheckStates says why an operator of the program cannot take over keyed states that were written with the given schemas.
func (p *Program) CheckStates(operator string, written []stream.StateSchema) error {
	for _, v := range p.Graph.Vertices {
		for _, n := range p.chains[v.ID].nodes {
			if n.ID == operator {
				return noPanic("operator "+operator, func() error { return checkStates(n, v, written) })
			}
		}
	}
	return fmt.Errorf("the job has no operator %s", operator)
}

// checkStates builds the operator of one subtask, without anything behind it.
func checkStates(n *stream.Node, v job.Vertex, written []stream.StateSchema) error {
	if len(n.States) == 0 {
		return errors.New("it has keyed state in the checkpoint and none in the job")
	}
	link, err := n.Build(&stream.Env{
		Operator: n.ID, Parallelism: v.Parallelism, MaxParallelism: v.MaxParallelism,
		KeyGroups: job.KeyGroups(0, v.Parallelism, v.MaxParallelism), Running: new(int), Wake: func() {},
	}, nil)
	if err != nil {
		return err
	}
	checker, ok := link.Operator.(stream.StateChecker)
	if !ok {
		return fmt.Errorf("an operator of kind %s cannot say which states it reads", n.Kind)
	}
	return checker.CheckStates(written)
}
