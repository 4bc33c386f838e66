package rpc

import (
	"errors"
	"fmt"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rpc/pb"
)

func encodeGraph(g *job.Graph) *pb.Graph {
	if g == nil {
		return nil
	}
	return &pb.Graph{
		JobName: g.Name, Params: g.Params, Fingerprint: g.Fingerprint,
		Vertices: each(g.Vertices, encodeVertex), Edges: each(g.Edges, encodeEdge), MasterHooks: g.MasterHooks,
	}
}

// decodeGraph answers a graph whose edges connect vertices that are there and whose parallelisms are possible.
func decodeGraph(p *pb.Graph) (*job.Graph, error) {
	if p == nil {
		return nil, errors.New("no graph")
	}
	g := &job.Graph{Name: p.JobName, Params: p.Params, Fingerprint: p.Fingerprint, MasterHooks: p.MasterHooks}
	var err error
	if g.Vertices, err = tryEach("vertex", p.Vertices, decodeVertex); err != nil {
		return nil, fmt.Errorf("graph: %w", err)
	}
	known := map[job.VertexID]bool{}
	for _, v := range g.Vertices {
		if known[v.ID] {
			return nil, fmt.Errorf("graph: vertex %s occurs twice", v.ID)
		}
		known[v.ID] = true
	}
	if g.Edges, err = tryEach("edge", p.Edges, decodeEdge); err != nil {
		return nil, fmt.Errorf("graph: %w", err)
	}
	for _, e := range g.Edges {
		if !known[e.From] || !known[e.To] {
			return nil, fmt.Errorf("graph: edge %s from vertex %q to vertex %q, which are not both in the graph", e.ID, e.From, e.To)
		}
	}
	return g, nil
}

func encodeVertex(v job.Vertex) *pb.Vertex {
	return &pb.Vertex{
		Id: string(v.ID), Name: v.Name, Parallelism: encodeInt(v.Parallelism), MaxParallelism: encodeInt(v.MaxParallelism),
		Operators: each(v.Operators, encodeOperator), Splits: v.Splits, States: each(v.States, encodeDeclared),
	}
}

func decodeVertex(p *pb.Vertex) (job.Vertex, error) {
	v := job.Vertex{
		ID: job.VertexID(p.GetId()), Name: p.GetName(), Parallelism: int(p.GetParallelism()), MaxParallelism: int(p.GetMaxParallelism()),
		Splits: p.GetSplits(),
	}
	switch {
	case v.ID == "":
		return v, errors.New("no vertex id")
	case v.MaxParallelism < 1 || v.MaxParallelism > job.MaxMaxParallelism:
		return v, fmt.Errorf("max parallelism of %s is %d, it is at least 1 and at most %d", v.ID, v.MaxParallelism, job.MaxMaxParallelism)
	case v.Parallelism < 1 || v.Parallelism > v.MaxParallelism:
		return v, fmt.Errorf("parallelism of %s is %d, it is at least 1 and at most %d", v.ID, v.Parallelism, v.MaxParallelism)
	}
	var err error
	if v.Operators, err = tryEach("operator", p.GetOperators(), decodeOperator); err != nil {
		return v, err
	}
	v.States, err = tryEach("state", p.GetStates(), decodeDeclared)
	return v, err
}

func encodeDeclared(s job.DeclaredState) *pb.DeclaredState {
	return &pb.DeclaredState{
		OperatorId: s.Operator, Name: s.Name, Kind: s.Kind, Mode: encodeEnum[pb.ListMode](s.Mode), KeyType: s.KeyType, ValueType: s.ValueType, Converts: s.Converts,
		NamespaceType: s.NamespaceType, MapKeyType: s.MapKeyType, TtlMs: s.TTL,
	}
}

func decodeDeclared(p *pb.DeclaredState) (job.DeclaredState, error) {
	s := job.DeclaredState{
		Operator: p.GetOperatorId(), Name: p.GetName(), Kind: p.GetKind(), KeyType: p.GetKeyType(), ValueType: p.GetValueType(), Converts: p.GetConverts(),
		NamespaceType: p.GetNamespaceType(), MapKeyType: p.GetMapKeyType(), TTL: p.GetTtlMs(),
	}
	if p.GetMode() == pb.ListMode_LIST_MODE_UNSPECIFIED {
		return s, nil // keyed state
	}
	var err error
	s.Mode, err = decodeEnum[job.ListMode]("list mode", p.GetMode(), pb.ListMode_name)
	return s, err
}

func encodeOperator(o job.Operator) *pb.Operator {
	return &pb.Operator{Id: o.ID, Kind: o.Kind, Signature: o.Signature, States: o.States, Stateful: o.Stateful}
}

func decodeOperator(p *pb.Operator) (job.Operator, error) {
	if p.GetId() == "" {
		return job.Operator{}, errors.New("no operator id")
	}
	return job.Operator{ID: p.Id, Kind: p.Kind, Signature: p.Signature, States: p.States, Stateful: p.Stateful}, nil
}

func encodeEdge(e job.Edge) *pb.Edge {
	return &pb.Edge{Id: e.ID, FromVertex: string(e.From), ToVertex: string(e.To), Partitioning: encodeEnum[pb.Partitioning](e.Partitioning)}
}

func decodeEdge(p *pb.Edge) (job.Edge, error) {
	partitioning, err := decodeEnum[job.Partitioning]("partitioning", p.GetPartitioning(), pb.Partitioning_name)
	return job.Edge{
		ID: p.GetId(), From: job.VertexID(p.GetFromVertex()), To: job.VertexID(p.GetToVertex()), Partitioning: partitioning,
	}, err
}
