package plan

import (
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream"
)

// Chain is the operators of a vertex, built for one subtask.
type Chain struct {
	Operators []Operator    // head first
	Inputs    []any         // collectors of the head, one for each edge that ends in the vertex, in graph order
	Source    stream.Poller // of a source
	// Running is the index of the operator that runs user code now.
	Running *int
	// Clock is the processing time of the operators.
	Clock *stream.Clock
}

// Operator is a built operator of a chain.
type Operator struct {
	ID string
	stream.Operator
}

// Build makes the operators of one subtask of vertex v. env is the same for all but for what belongs to one operator, which Build fills in; out
// gives the collector of an edge that leaves the vertex.
func (p *Program) Build(v job.VertexID, env stream.Env, out func(edge string) any) (*Chain, error) {
	c := p.chains[v]
	if c == nil {
		return nil, fmt.Errorf("job %s has no vertex %s", p.Graph.Name, v)
	}
	ids := map[*stream.Edge]string{}
	for id, e := range p.edges {
		ids[e] = id
	}
	built := &Chain{Operators: make([]Operator, len(c.nodes)), Running: new(int), Clock: new(stream.Clock)}
	links := map[*stream.Node]*stream.Link{}
	for i := len(c.nodes) - 1; i >= 0; i-- { // an operator's outputs come after it
		n := c.nodes[i]
		outs := make([]any, len(n.Outputs))
		for k, e := range n.Outputs {
			if id, leaves := ids[e]; leaves {
				outs[k] = out(id)
			} else {
				outs[k] = links[e.To].Input(slices.Index(e.To.Inputs, e))
			}
		}
		opEnv := env
		opEnv.Operator, opEnv.Index, opEnv.Running, opEnv.Clock = n.ID, i, built.Running, built.Clock
		var link *stream.Link
		err := noPanic("it", func() (err error) {
			link, err = n.Build(&opEnv, outs)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("operator %s: %w", n.ID, err)
		}
		links[n] = link
		built.Operators[i] = Operator{n.ID, link.Operator}
	}
	head := links[c.nodes[0]]
	for i := range c.nodes[0].Inputs {
		built.Inputs = append(built.Inputs, head.Input(i))
	}
	built.Source = head.Source
	return built, nil
}
