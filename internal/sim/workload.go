package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weirstream/weir/internal/job"
)

// maxParallelism is the number of key groups of simulated jobs.
const maxParallelism = 16

// The limits of a job.
const (
	highestParallelism = 4
	maxVertices        = 6
	island             = 3 // vertices of an island: a source, what is behind it, and a sink
)

// kind is what a vertex does.
type kind int

const (
	source kind = iota + 1
	mapper
	keyed // counts records for each key, and sends totals at the end of its input
	sink
)

var kindNames = map[kind]string{source: "source", mapper: "map", keyed: "keyed", sink: "sink"}

// workload is a job with what it does, and the model of its output.
type workload struct {
	graph  *job.Graph
	kinds  []kind  // by vertex
	splits [][]int // by vertex: length of each split of a source
	keys   int
	pace   time.Duration // between two batches of a source
	// forward are the edges that are forward in the beginning.
	forward map[string]bool
	// paths[v][w] are the ways from vertex v to w, each as the set of its vertices, both included.
	paths [][][]uint8
}

func newWorkload(rng *rand.Rand, cfg Config) *workload {
	n := 2 + rng.IntN(3)
	w := &workload{graph: &job.Graph{Name: "sim", Fingerprint: "f"}, kinds: make([]kind, n), splits: make([][]int, n), keys: 3 + rng.IntN(12)}
	pipelines := 0 // parallelism of all vertices, which are connected forward: as many failover regions
	islands := false
	switch rng.IntN(10) {
	case 0, 1:
		pipelines = 2 + rng.IntN(3)
	case 2, 3: // two jobs in one
		islands, n = true, maxVertices
		w.kinds, w.splits = make([]kind, n), make([][]int, n)
	}
	if rng.IntN(4) == 0 {
		w.graph.MasterHooks = []string{simHook}
	}
	w.pace = time.Duration(20+rng.IntN(100)) * time.Millisecond
	for i := range n {
		switch {
		case islands && i%island != 1:
			w.kinds[i] = []kind{source, keyed, sink}[i%island]
		case !islands && i == 0 || !islands && i == 1 && n > 2 && rng.IntN(4) == 0:
			w.kinds[i] = source
		case !islands && (i == n-1 || i == n-2 && i > 1 && rng.IntN(5) == 0):
			w.kinds[i] = sink
		case pipelines > 0 || rng.IntN(3) == 0:
			w.kinds[i] = mapper
		default:
			w.kinds[i] = keyed
		}
		id := vertexID(i)
		v := job.Vertex{ID: id, Name: string(id), Parallelism: 1 + rng.IntN(highestParallelism), MaxParallelism: maxParallelism}
		if pipelines > 0 {
			v.Parallelism = pipelines
		}
		v.Operators = []job.Operator{{ID: string(id), Kind: kindNames[w.kinds[i]], Stateful: w.kinds[i] != mapper}}
		if w.kinds[i] == source {
			v.Splits = make([][]byte, 1+rng.IntN(6))
			w.splits[i] = lengths(rng, cfg, len(v.Splits), int(cfg.FaultsFor/w.pace))
		}
		w.graph.Vertices = append(w.graph.Vertices, v)
	}
	w.connect(rng, pipelines > 0, islands)
	w.findPaths()
	w.forward = forwardEdges(w.graph)
	return w
}

// lengths are those of the splits of a source. Some splits are so short that their tasks finish long before the others; in a job without end,
// all but the last may have an end.
func lengths(rng *rand.Rand, cfg Config, splits, limit int) []int {
	out := make([]int, splits)
	for i := range out {
		out[i] = 20 + rng.IntN(limit)
		switch {
		case !cfg.Bounded && (i == splits-1 || rng.IntN(2) == 0):
			out[i] = 1 << 30
		case rng.IntN(3) == 0:
			out[i] = rng.IntN(20)
		}
	}
	return out
}

func vertexID(i int) job.VertexID { return job.VertexID(fmt.Sprintf("v%d", i)) }

// connect gives each vertex but the sources an input, each but the sinks an output, and sometimes more. Vertices of different islands are not connected.
func (w *workload) connect(rng *rand.Rand, forward, islands bool) {
	n := len(w.kinds)
	has := map[[2]int]bool{}
	link := func(from, to int) {
		if has[[2]int{from, to}] {
			return
		}
		has[[2]int{from, to}] = true
		a, b := &w.graph.Vertices[from], &w.graph.Vertices[to]
		p := []job.Partitioning{job.Hash, job.Rebalance, job.Forward}[rng.IntN(3)]
		if forward {
			p = job.Forward
		}
		if p == job.Forward && a.Parallelism != b.Parallelism {
			p = job.Rebalance
		}
		if w.kinds[to] == keyed {
			p = job.Hash
		}
		w.graph.Edges = append(w.graph.Edges, job.Edge{ID: fmt.Sprintf("%s->%s", a.ID, b.ID), From: a.ID, To: b.ID, Partitioning: p})
	}
	feeds := func(i int) bool { return w.kinds[i] != sink }
	for to := range n {
		if w.kinds[to] == source {
			continue
		}
		var from []int
		if islands {
			link(to-1, to)
			continue
		}
		for i := range to {
			if feeds(i) {
				from = append(from, i)
			}
		}
		link(from[rng.IntN(len(from))], to)
		if rng.IntN(3) == 0 {
			link(from[rng.IntN(len(from))], to)
		}
	}
	for from := range n {
		if feeds(from) && len(w.graph.Outputs(vertexID(from))) == 0 {
			link(from, n-1)
		}
	}
}

func (w *workload) index(id job.VertexID) int { return int(id[1] - '0') }

func (w *workload) findPaths() {
	n := len(w.kinds)
	w.paths = make([][][]uint8, n)
	for from := n - 1; from >= 0; from-- {
		w.paths[from] = make([][]uint8, n)
		w.paths[from][from] = []uint8{1 << from}
		for _, e := range w.graph.Outputs(vertexID(from)) {
			for to := range n {
				for _, p := range w.paths[w.index(e.To)][to] {
					w.paths[from][to] = append(w.paths[from][to], p|1<<from)
				}
			}
		}
	}
}

func (w *workload) String() string {
	out := ""
	for i, v := range w.graph.Vertices {
		out += fmt.Sprintf("%s:%s*%d ", v.ID, kindNames[w.kinds[i]], v.Parallelism)
		if w.kinds[i] == source {
			out += fmt.Sprintf("(%d splits) ", len(v.Splits))
		}
	}
	for _, e := range w.graph.Edges {
		out += fmt.Sprintf("%s:%s ", e.ID, e.Partitioning)
	}
	return out
}

// record travels. Its path and its counts are what the model compares.
type record struct {
	source, split, index int
	key                  int
	path                 uint8              // vertices that it went through
	counts               [maxVertices]int32 // by keyed vertex on the path: the how many-th of its key it was there
	total                bool               // sent by the keyed vertex source at the end of its input: index is the count of key
}

// batch is what travels in one element.
type batch struct {
	records []record
	behind  int64 // the latest barrier that was sent on the channel before it
}

// Len makes it an element.Batch.
func (b batch) Len() int { return len(b.records) }

// keyOf is the key of a record of a source.
func (w *workload) keyOf(source, split, index int) int {
	return int(mix(uint64(source)<<40|uint64(split)<<32|uint64(index)) % uint64(w.keys))
}

func groupOf(key int) int { return job.KeyGroupOf(mix(uint64(key)), maxParallelism) }

// mix is the end of splitmix64: a hash that depends on nothing else.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
