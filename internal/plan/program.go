package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream"
)

// Program is a job's graph together with the code behind it.
type Program struct {
	Graph *job.Graph

	// Hooks are the job's master hooks.
	Hooks []stream.HookDefinition

	chains map[job.VertexID]*chain
	edges  map[string]*stream.Edge // by job.Edge.ID
}

// chain is the nodes of a vertex: a tree of forward edges whose root is the head.
type chain struct {
	vertex job.VertexID
	nodes  []*stream.Node // head first, in order of creation
}

// New runs the definition. The graph has no splits yet; see FindSplits.
func New(def stream.Definition, params map[string]string, opts job.Options) (*Program, error) {
	j := stream.NewJob(def.Name, params)
	if err := define(def, j); err != nil {
		return nil, err
	}
	if err := j.Err(); err != nil {
		return nil, oneLine(err)
	}
	if len(j.Nodes()) == 0 {
		return nil, fmt.Errorf("job %s has no streams", def.Name)
	}
	if opts.Parallelism == 0 {
		opts.Parallelism = j.DefaultParallelism()
	}
	p := &Program{
		Graph:  &job.Graph{Name: def.Name, Params: maps.Clone(params)},
		Hooks:  j.MasterHooks(),
		chains: map[job.VertexID]*chain{},
		edges:  map[string]*stream.Edge{},
	}
	if err := p.link(j.Nodes(), opts.Normalize()); err != nil {
		return nil, fmt.Errorf("job %s: %w", def.Name, err)
	}
	if err := p.declareStates(); err != nil {
		return nil, fmt.Errorf("job %s: %w", def.Name, err)
	}
	for _, h := range p.Hooks {
		p.Graph.MasterHooks = append(p.Graph.MasterHooks, h.ID)
	}
	p.Graph.Fingerprint = fingerprint(p.Graph)
	return p, nil
}

func define(def stream.Definition, j *stream.Job) error {
	return noPanic(fmt.Sprintf("the definition of job %s", def.Name), func() error {
		if err := def.Build(j); err != nil {
			return fmt.Errorf("job %s: %w", def.Name, err)
		}
		return nil
	})
}

// noPanic turns a panic of the user's code in f into an error.
func noPanic(what string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s panics: %v", what, r)
		}
	}()
	return f()
}

func oneLine(err error) error {
	return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
}

// link chains the nodes and makes vertices and edges of them.
func (p *Program) link(nodes []*stream.Node, opts job.Options) error {
	of := map[*stream.Node]*chain{}
	for _, id := range slices.Sorted(maps.Keys(opts.OperatorParallelism)) {
		if !slices.ContainsFunc(nodes, func(n *stream.Node) bool { return n.ID == id }) {
			return fmt.Errorf("a parallelism is chosen for operator %s, which the job does not have", id)
		}
	}
	for _, n := range nodes {
		if own, chosen := opts.OperatorParallelism[n.ID]; chosen {
			n.Parallelism = own
		}
		if n.Parallelism == 0 {
			n.Parallelism = opts.Parallelism
		}
		if n.Parallelism < 1 {
			return fmt.Errorf("operator %s: parallelism %d is not positive", n.ID, n.Parallelism)
		}
		if n.Parallelism > opts.MaxParallelism {
			return fmt.Errorf("operator %s: parallelism %d is over the max parallelism %d", n.ID, n.Parallelism, opts.MaxParallelism)
		}
		c, err := chainOf(n, of)
		if err != nil {
			return err
		}
		c.nodes = append(c.nodes, n)
		of[n] = c
		p.chains[c.vertex] = c
	}
	for _, n := range nodes {
		if of[n].nodes[0] == n {
			p.Graph.Vertices = append(p.Graph.Vertices, vertex(of[n], opts.MaxParallelism))
		}
		for _, e := range n.Inputs {
			if of[e.From] != of[n] {
				p.addEdge(e, of)
			}
		}
	}
	return nil
}

// chainOf returns the chain that n joins, or a new one.
func chainOf(n *stream.Node, of map[*stream.Node]*chain) (*chain, error) {
	for _, e := range n.Inputs {
		same := e.From.Parallelism == n.Parallelism
		if e.Partitioning == job.Forward && !same {
			return nil, fmt.Errorf("a forward edge from %s (parallelism %d) to %s (parallelism %d): both must agree", e.From.ID, e.From.Parallelism, n.ID, n.Parallelism)
		}
		if e.Partitioning == 0 {
			e.Partitioning = job.Rebalance
			if same {
				e.Partitioning = job.Forward
			}
		}
	}
	if len(n.Inputs) == 1 && n.Inputs[0].Partitioning == job.Forward && !n.NoChain {
		return of[n.Inputs[0].From], nil
	}
	return &chain{vertex: job.VertexID(n.ID)}, nil
}

func vertex(c *chain, maxParallelism int) job.Vertex {
	v := job.Vertex{ID: c.vertex, Parallelism: c.nodes[0].Parallelism, MaxParallelism: maxParallelism}
	var names []string
	for _, n := range c.nodes {
		names = append(names, n.ID)
		op := job.Operator{ID: n.ID, Kind: n.Kind, Signature: n.Signature, States: n.States, Stateful: n.Stateful}
		for _, e := range n.Inputs {
			op.Signature += " " + e.Type.Schema()
		}
		v.Operators = append(v.Operators, op)
	}
	v.Name = strings.Join(names, " -> ")
	return v
}

func (p *Program) addEdge(e *stream.Edge, of map[*stream.Node]*chain) {
	id := e.From.ID + "->" + e.To.ID
	for n := 2; p.edges[id] != nil; n++ {
		id = fmt.Sprintf("%s->%s#%d", e.From.ID, e.To.ID, n)
	}
	p.edges[id] = e
	p.Graph.Edges = append(p.Graph.Edges, job.Edge{ID: id, From: of[e.From].vertex, To: of[e.To].vertex, Partitioning: e.Partitioning})
}

// FindSplits finds the parts of every source's input and lets every sink say whether it can work. It runs once, at submission.
func (p *Program) FindSplits(ctx context.Context) error {
	for i := range p.Graph.Vertices {
		v := &p.Graph.Vertices[i]
		for _, n := range p.chains[v.ID].nodes {
			err := noPanic("it", func() error { return prepare(ctx, n, v) })
			if err != nil {
				return fmt.Errorf("operator %s: %w", n.ID, err)
			}
		}
	}
	return nil
}

func prepare(ctx context.Context, n *stream.Node, v *job.Vertex) (err error) {
	if n.Check != nil {
		if err := n.Check(ctx); err != nil {
			return err
		}
	}
	if n.Splits != nil {
		v.Splits, err = n.Splits(ctx, v.Parallelism)
	}
	return err
}

// EdgeType returns the record type of an edge of the graph.
func (p *Program) EdgeType(edge string) stream.EdgeType { return p.edges[edge].Type }
