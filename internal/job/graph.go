package job

// Graph is a job's execution plan, made by running the job's definition with its parameters. It holds no code, so that it can be
// sent, stored and compared.
type Graph struct {
	Name        string
	Params      map[string]string
	Vertices    []Vertex // in topological order, sources first
	Edges       []Edge
	MasterHooks []string `json:",omitempty"` // ids, in the order of the definition
	Fingerprint string   // digest of all that two builds of one job must agree on; splits are not in it
}

// Vertex is a chain of operators that run in one task, one after another by direct calls.
type Vertex struct {
	ID             VertexID
	Name           string // operator ids joined by " -> "
	Parallelism    int
	MaxParallelism int // number of key groups
	Operators      []Operator
	Splits         [][]byte // of the source that starts the chain, found once at submission
	// States are what the operators declare, in their order. They are not in the fingerprint.
	States []DeclaredState `json:",omitempty"`
}

// Operator describes one operator of a chain.
type Operator struct {
	ID        string
	Kind      string // "source", "map", "sink", ...
	Signature string // types of the operator, e.g. "string -> main.Stats"
	States    []string
	Stateful  bool
}

// Partitioning says how the records of an edge find their receiving subtask.
type Partitioning int

// The partitionings.
const (
	Forward   Partitioning = iota + 1 // subtask i to subtask i
	Hash                              // by key group
	Rebalance                         // round robin
	Broadcast                         // to every subtask
)

// String is the lower-case name of the partitioning.
func (p Partitioning) String() string {
	switch p {
	case Forward:
		return "forward"
	case Hash:
		return "hash"
	case Rebalance:
		return "rebalance"
	case Broadcast:
		return "broadcast"
	}
	return "unknown"
}

// Edge connects two vertices.
type Edge struct {
	ID           string // "<from operator>-><to operator>", unique in the graph
	From, To     VertexID
	Partitioning Partitioning
}

// Vertex returns the vertex with the given id, or nil.
func (g *Graph) Vertex(id VertexID) *Vertex {
	for i := range g.Vertices {
		if g.Vertices[i].ID == id {
			return &g.Vertices[i]
		}
	}
	return nil
}

// VertexOf returns the vertex that has an operator, or nil.
func (g *Graph) VertexOf(operator string) *Vertex {
	for i := range g.Vertices {
		for _, op := range g.Vertices[i].Operators {
			if op.ID == operator {
				return &g.Vertices[i]
			}
		}
	}
	return nil
}

// Inputs returns the edges that end in v, in graph order.
func (g *Graph) Inputs(v VertexID) []Edge { return g.edges(func(e Edge) bool { return e.To == v }) }

// Outputs returns the edges that start in v, in graph order.
func (g *Graph) Outputs(v VertexID) []Edge { return g.edges(func(e Edge) bool { return e.From == v }) }

func (g *Graph) edges(keep func(Edge) bool) []Edge {
	var out []Edge
	for _, e := range g.Edges {
		if keep(e) {
			out = append(out, e)
		}
	}
	return out
}

// IsSource reports whether v has no inputs: its tasks are where barriers are injected.
func (g *Graph) IsSource(v VertexID) bool { return len(g.Inputs(v)) == 0 }

// Tasks lists every task of the graph, vertices in graph order, subtasks ascending.
func (g *Graph) Tasks() []TaskID {
	var out []TaskID
	for _, v := range g.Vertices {
		for i := range v.Parallelism {
			out = append(out, TaskID{v.ID, i})
		}
	}
	return out
}

// MaxVertexParallelism is the number of slots the job needs: a slot holds one subtask of each vertex (slot sharing).
func (g *Graph) MaxVertexParallelism() int {
	n := 0
	for _, v := range g.Vertices {
		n = max(n, v.Parallelism)
	}
	return n
}

// Slot is one slot of a task executor; it holds one subtask of each vertex.
type Slot struct {
	Executor ExecutorID
	Address  string // host:port of the executor's gRPC server
}

// Placement says where a task runs in one execution of the job.
type Placement struct {
	Attempt  AttemptID
	Executor ExecutorID
	Address  string // host:port of the executor's gRPC server
}
