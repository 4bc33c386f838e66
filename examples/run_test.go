package examples_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirstream/weir/stream"
)

// chain is a job built as one chain in one subtask: every exchange is a direct call. Batches, processes and rescaling are the runtime's; what
// the job itself says is all here.
type chain struct {
	nodes []*stream.Node
	links []*stream.Link
}

// graph runs a definition.
func graph(t testing.TB, d stream.Definition, params map[string]string) ([]*stream.Node, error) {
	t.Helper()
	j := stream.NewJob(d.Name, params)
	if err := d.Build(j); err != nil {
		return nil, err
	}
	return j.Nodes(), j.Err()
}

// snapshot is a checkpoint of a chain.
type snapshot struct {
	items   [][][]byte
	schemas [][]stream.StateSchema
	groups  [][][]byte
	splits  [][]byte // of the source, without a checkpoint
}

const maxParallelism = 8

// build makes the operators behind a snapshot, last one first.
func build(t testing.TB, nodes []*stream.Node, attempt int, from *snapshot, restored bool) *chain {
	t.Helper()
	c := &chain{nodes: nodes, links: make([]*stream.Link, len(nodes))}
	running := 0
	for i, n := range slices.Backward(nodes) {
		env := &stream.Env{
			Job: "job", JobID: "ab12", Operator: n.ID, Parallelism: 1, MaxParallelism: maxParallelism, Attempt: attempt,
			Restored: restored, Running: &running, Index: i,
		}
		env.KeyGroups.End = maxParallelism
		if n.Splits != nil {
			env.Splits = from.splits
		}
		var outs []any
		for _, e := range n.Outputs {
			outs = append(outs, c.links[slices.Index(nodes, e.To)].In)
		}
		link, err := n.Build(env, outs)
		must(t, err)
		c.links[i] = link
	}
	for i, l := range c.links {
		if restored {
			c.restore(t, i, from)
		}
		must(t, l.Operator.Open())
	}
	return c
}

func (c *chain) restore(t testing.TB, i int, from *snapshot) {
	t.Helper()
	if op, ok := c.links[i].Operator.(stream.ItemsStateful); ok {
		must(t, op.RestoreItems(from.items[i]))
	}
	if op, ok := c.links[i].Operator.(stream.KeyedStateful); ok {
		for g, data := range from.groups[i] {
			must(t, op.RestoreGroup(g, from.schemas[i], data))
		}
	}
}

// checkpoint takes a durable snapshot; with notify, the operators hear of it.
func (c *chain) checkpoint(t testing.TB, id int64, notify bool) *snapshot {
	t.Helper()
	n := len(c.links)
	s := &snapshot{items: make([][][]byte, n), schemas: make([][]stream.StateSchema, n), groups: make([][][]byte, n)}
	for i, l := range c.links {
		if op, ok := l.Operator.(stream.ItemsStateful); ok {
			items, err := op.SnapshotItems(id)
			must(t, err)
			if items.Persist != nil {
				must(t, items.Persist())
			}
			s.items[i] = items.Items
		}
		if op, ok := l.Operator.(stream.KeyedStateful); ok {
			snap, err := op.SnapshotKeyed()
			must(t, err)
			s.schemas[i] = op.Schemas()
			for g := range maxParallelism {
				data, err := snap.AppendGroup(nil, g)
				must(t, err)
				s.groups[i] = append(s.groups[i], data)
			}
			snap.Release()
		}
	}
	for _, l := range c.links {
		if op, ok := l.Operator.(stream.CheckpointListener); ok && notify {
			must(t, op.CheckpointComplete(id))
		}
	}
	return s
}

func (c *chain) close(t testing.TB) {
	t.Helper()
	for _, l := range c.links {
		must(t, l.Operator.Close())
	}
}

// runWithCrashes runs a job to its end, crashing and restoring it some times at random points.
func runWithCrashes(t testing.TB, d stream.Definition, params map[string]string, crashes int, seed uint64) {
	t.Helper()
	nodes, err := graph(t, d, params)
	must(t, err)
	splits, err := nodes[0].Splits(t.Context(), 3)
	must(t, err)
	rnd := rand.New(rand.NewPCG(seed, 0))
	last, id, restored := &snapshot{splits: splits}, int64(0), false
	for attempt := 0; ; attempt++ {
		c := build(t, nodes, attempt, last, restored)
		ended := false
		for polls := 0; !ended && (attempt >= crashes || polls < 40); polls++ {
			next, err := c.links[0].Source.Poll(1 + rnd.IntN(500))
			must(t, err)
			if ended = next.Ended(); !ended && rnd.IntN(10) == 0 {
				id++
				last, restored = c.checkpoint(t, id, rnd.IntN(2) == 0), true
			}
		}
		if ended {
			c.finish(t, id+1)
			return
		}
		c.close(t)
	}
}

// finish is the end of input: what is held back, then the final checkpoint.
func (c *chain) finish(t testing.TB, id int64) {
	t.Helper()
	for _, l := range c.links {
		if op, ok := l.Operator.(stream.Finisher); ok {
			must(t, op.Finish())
		}
	}
	c.checkpoint(t, id, true)
	c.close(t)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func sameSet(t testing.TB, got, want []string) {
	t.Helper()
	got, want = slices.Clone(got), slices.Clone(want)
	slices.Sort(got)
	slices.Sort(want)
	if slices.Equal(got, want) {
		return
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("%d rows, want %d; sorted, they differ from row %d on: got %s, want %s", len(got), len(want), i,
				fmt.Sprint(got[min(i, len(got)):min(i+2, len(got))]), fmt.Sprint(want[min(i, len(want)):min(i+2, len(want))]))
		}
	}
}
