package checkpoint

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/job"
)

// stateOf is state whose bytes say what they are: "<operator>:<group>;" per key group, "<operator>/<subtask>/<n>;" per item.
func stateOf(operator string, subtask, items int, groups *job.KeyGroupRange) OperatorState {
	out := OperatorState{Operator: operator}
	if items >= 0 {
		var data []byte
		offsets := []int64{0}
		for n := range items {
			data = fmt.Appendf(data, "%s/%d/%d;", operator, subtask, n)
			offsets = append(offsets, int64(len(data)))
		}
		out.Items = &Items{Handle: InlineHandle(data), Offsets: offsets}
	}
	if groups != nil {
		var data []byte
		offsets := []int64{0}
		for g := groups.Start; g < groups.End; g++ {
			data = fmt.Appendf(data, "%s:%d;", operator, g)
			offsets = append(offsets, int64(len(data)))
		}
		out.Keyed = &Keyed{Handle: InlineHandle(data), Range: *groups, Offsets: offsets}
	}
	return out
}

// vertexOf is a vertex with one operator per id; items says how many items each subtask of each has, -1 for none.
func vertexOf(parallelism, maxParallelism int, items func() int, ids ...string) VertexState {
	v := VertexState{Vertex: job.VertexID(ids[0]), Parallelism: parallelism, MaxParallelism: maxParallelism, Operators: operators(ids...)}
	for i := range parallelism {
		s := SubtaskState{Subtask: i}
		for _, id := range ids {
			r := job.KeyGroups(i, parallelism, maxParallelism)
			s.Operators = append(s.Operators, stateOf(id, i, items(), &r))
		}
		v.Subtasks = append(v.Subtasks, s)
	}
	return v
}

func operators(ids ...string) []job.Operator {
	var out []job.Operator
	for _, id := range ids {
		out = append(out, job.Operator{ID: id, Stateful: true})
	}
	return out
}

func graphOf(parallelism, maxParallelism int, chains ...[]string) *job.Graph {
	g := &job.Graph{Name: "flights"}
	for _, ids := range chains {
		g.Vertices = append(g.Vertices, job.Vertex{ID: job.VertexID(ids[0]), Parallelism: parallelism, MaxParallelism: maxParallelism, Operators: operators(ids...)})
	}
	return g
}

func metadataOf(vertices ...VertexState) *Metadata {
	return &Metadata{Job: "j", ID: 4, Kind: Checkpoint, Vertices: vertices}
}

// read gives the state that a restore hands out, as text, by operator.
func read(t *testing.T, r Restore) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, op := range r.Operators {
		for _, it := range op.Items {
			if err := it.Validate(); err != nil {
				t.Fatal(err)
			}
			for i := range it.Len() {
				out[op.Operator] += string(it.Item(it.Handle.Inline, i))
			}
		}
		for _, k := range op.Keyed {
			if err := errors.Join(k.Validate(job.MaxMaxParallelism), k.Handle.Verify(k.Handle.Inline)); err != nil {
				t.Fatal(err)
			}
			for g := k.Range.Start; g < k.Range.End; g++ {
				out[op.Operator] += string(k.Group(k.Handle.Inline, g))
			}
		}
	}
	return out
}

// The twin knows nothing of ranges: it asks for each key group who owns it, and deals out a list of items by index.
func twin(md *Metadata, operator string, parallelism int) []string {
	var items []string
	out := make([]string, parallelism)
	groups := make([]string, parallelism)
	for _, v := range md.Vertices {
		for _, s := range v.Subtasks {
			for _, op := range s.Operators {
				if op.Operator != operator {
					continue
				}
				own := strings.SplitAfter(string(op.Items.Handle.Inline), ";")
				own = own[:len(own)-1]
				if v.Parallelism == parallelism {
					out[s.Subtask] = strings.Join(own, "")
				}
				items = append(items, own...)
				for g := range v.MaxParallelism {
					if op.Keyed.Range.Contains(g) {
						owner := job.KeyGroupOwner(g, parallelism, v.MaxParallelism)
						groups[owner] += fmt.Sprintf("%s:%d;", operator, g)
					}
				}
			}
		}
		if v.Parallelism != parallelism && slices.ContainsFunc(v.Operators, func(o job.Operator) bool { return o.ID == operator }) {
			for n, item := range items {
				i := 0
				for (i+1)*len(items)/parallelism <= n {
					i++
				}
				out[i] += item
			}
		}
	}
	for i := range out {
		out[i] += groups[i]
	}
	return out
}

func TestAssign_AgreesWithTheTwin_AtAnyParallelism(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	items := func() int { return rng.IntN(6) }
	for range 400 {
		maxP := 1 + rng.IntN(40)
		oldP, newP := 1+rng.IntN(min(maxP, 12)), 1+rng.IntN(min(maxP, 12))
		md := metadataOf(vertexOf(oldP, maxP, items, "a", "b"), vertexOf(1+rng.IntN(min(maxP, 12)), maxP, items, "c"))
		// The chains are cut in another way than they were, and the order of the vertices is another.
		got, err := Assign(md, graphOf(newP, maxP, []string{"c"}, []string{"b"}, []string{"a"}))
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 3*newP {
			t.Fatalf("%d tasks got a restore, want %d", len(got), 3*newP)
		}
		seen := map[string]int{}
		for _, id := range []string{"a", "b", "c"} {
			want := twin(md, id, newP)
			for i := range newP {
				r := read(t, got[job.TaskID{Vertex: job.VertexID(id), Subtask: i}])
				if r[id] != want[i] {
					t.Fatalf("max %d, %d -> %d: %s[%d] got\n%s\nwant\n%s", maxP, oldP, newP, id, i, r[id], want[i])
				}
				for _, piece := range strings.SplitAfter(r[id], ";") {
					seen[piece]++
				}
			}
		}
		delete(seen, "")
		total := 0
		for _, v := range md.Vertices {
			for _, s := range v.Subtasks {
				for _, op := range s.Operators {
					total += op.Items.Len() + op.Keyed.Range.Len()
				}
			}
		}
		if len(seen) != total {
			t.Fatalf("%d different pieces were given out, there are %d", len(seen), total)
		}
		for piece, n := range seen {
			if n != 1 {
				t.Fatalf("%s was given out %d times", piece, n)
			}
		}
	}
}

func TestAssign_SameParallelism_GivesEachSubtaskItsOwn(t *testing.T) {
	n := 0
	md := metadataOf(vertexOf(3, 8, func() int { n++; return n * n }, "a"))
	got, err := Assign(md, graphOf(3, 8, []string{"a"}))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		own := md.Vertices[0].Subtasks[i].Operators[0]
		want := Restore{Operators: []OperatorRestore{{"a", []Items{*own.Items}, []Keyed{*own.Keyed}, nil}}}
		if diff := cmp.Diff(want, got[job.TaskID{Vertex: "a", Subtask: i}]); diff != "" {
			t.Errorf("subtask %d: %s", i, diff)
		}
	}
}

func TestAssign_SharesOfItemsDifferByAtMostOne(t *testing.T) {
	counts := []int{7, 0, 1, 30}
	md := metadataOf(vertexOf(4, 64, func() int { n := counts[0]; counts = counts[1:]; return n }, "a"))
	for p := 1; p <= 50; p++ {
		got, err := Assign(md, graphOf(p, 64, []string{"a"}))
		if err != nil {
			t.Fatal(err)
		}
		for i := range p {
			n := 0
			for _, op := range got[job.TaskID{Vertex: "a", Subtask: i}].Operators {
				for _, it := range op.Items {
					n += it.Len()
				}
			}
			if p != 4 && (n < 38/p || n > 38/p+1) {
				t.Errorf("p %d: subtask %d has %d of 38 items", p, i, n)
			}
		}
	}
}

func TestAssign_NewOperator_StartsEmpty(t *testing.T) {
	md := metadataOf(vertexOf(2, 8, func() int { return 1 }, "a"))
	got, err := Assign(md, graphOf(2, 8, []string{"a", "new"}, []string{"other"}))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if ops := got[job.TaskID{Vertex: "a", Subtask: i}].Operators; len(ops) != 1 || ops[0].Operator != "a" {
			t.Errorf("a[%d] restores %v", i, ops)
		}
		r, ok := got[job.TaskID{Vertex: "other", Subtask: i}]
		if !ok || len(r.Operators) > 0 || r.Ended {
			t.Errorf("other[%d] restores %+v", i, r)
		}
	}
}

func TestAssign_OperatorThatWasRemoved_IsAnErrorOnlyIfItHadState(t *testing.T) {
	empty := func() int { return 0 }
	v := vertexOf(2, 8, empty, "a", "gone")
	for i := range v.Subtasks {
		k := v.Subtasks[i].Operators[1].Keyed
		k.Handle, k.Offsets = InlineHandle(nil), make([]int64, k.Range.Len()+1)
	}
	if _, err := Assign(metadataOf(v), graphOf(2, 8, []string{"a"})); err != nil {
		t.Errorf("without state: %v", err)
	}
	_, err := Assign(metadataOf(vertexOf(2, 8, empty, "a", "gone")), graphOf(2, 8, []string{"a"}))
	if !errors.Is(err, ErrIncompatible) || !strings.Contains(err.Error(), "checkpoint 4: state of operator gone has no operator in job flights; give") {
		t.Errorf("with state: %v", err)
	}
}

func TestAssign_RefusesWhatDoesNotFit(t *testing.T) {
	one := func() int { return 1 }
	missing := vertexOf(2, 8, one, "a")
	missing.Subtasks = missing.Subtasks[1:]
	double := vertexOf(2, 8, one, "a")
	double.Subtasks[1].Operators[0] = stateOf("a", 1, 1, &job.KeyGroupRange{Start: 3, End: 8})
	for _, c := range []struct {
		name string
		old  VertexState
		new  *job.Graph
		text string
	}{
		{"max parallelism", vertexOf(2, 8, one, "a"), graphOf(2, 16, []string{"a"}), "operator a was at max parallelism 8 and is now at 16"},
		{"above max", vertexOf(2, 8, one, "a"), graphOf(9, 8, []string{"a"}), "vertex a has parallelism 9"},
		{"subtask missing", missing, graphOf(2, 8, []string{"a"}), "it has the state of 1 of the 2 subtasks of vertex a"},
		{"key group twice", double, graphOf(2, 8, []string{"a"}), "two subtasks of operator a have state of key group 3"},
	} {
		if _, err := Assign(metadataOf(c.old), c.new); !errors.Is(err, ErrIncompatible) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: error is %v, want %q", c.name, err, c.text)
		}
	}
	if _, err := Assign(&Metadata{}, graphOf(1, 8, []string{"a"})); !errors.Is(err, ErrMalformed) {
		t.Errorf("malformed metadata: %v", err)
	}
}

func TestAssign_EndOfInput(t *testing.T) {
	one := func() int { return 1 }
	ended := func(v VertexState, subtasks ...int) VertexState {
		for _, i := range subtasks {
			v.Subtasks[i].Ended = true
		}
		return v
	}
	for _, c := range []struct {
		name string
		md   *Metadata
		g    *job.Graph
		want []bool // per task, in graph order; nil: an error
	}{
		{"partly, same parallelism", metadataOf(ended(vertexOf(2, 8, one, "a"), 1)), graphOf(2, 8, []string{"a"}), []bool{false, true}},
		{"all, other parallelism", metadataOf(ended(vertexOf(2, 8, one, "a"), 0, 1)), graphOf(3, 8, []string{"a"}), []bool{true, true, true}},
		{"none, other parallelism", metadataOf(vertexOf(2, 8, one, "a")), graphOf(1, 8, []string{"a"}), []bool{false}},
		{"partly, other parallelism", metadataOf(ended(vertexOf(2, 8, one, "a"), 1)), graphOf(3, 8, []string{"a"}), nil},
		{"chain cut", metadataOf(ended(vertexOf(2, 8, one, "a", "b"), 0)), graphOf(2, 8, []string{"a"}, []string{"b"}), []bool{true, false, true, false}},
		{"chains joined, agree", metadataOf(ended(vertexOf(1, 8, one, "a"), 0), ended(vertexOf(1, 8, one, "b"), 0)), graphOf(1, 8, []string{"a", "b"}), []bool{true}},
		{"chains joined, differ", metadataOf(ended(vertexOf(1, 8, one, "a"), 0), vertexOf(1, 8, one, "b")), graphOf(1, 8, []string{"a", "b"}), nil},
	} {
		got, err := Assign(c.md, c.g)
		if c.want == nil {
			if !errors.Is(err, ErrIncompatible) || !strings.Contains(err.Error(), "end of their input") {
				t.Errorf("%s: error is %v", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for i, task := range c.g.Tasks() {
			if got[task].Ended != c.want[i] {
				t.Errorf("%s: %s ended = %v", c.name, task, got[task].Ended)
			}
		}
	}
}

// X6: a task that starts at the end of its input must have nobody in front of it who still sends.
func TestAssign_EndedTask_HasNoRunningTaskInFrontOfIt(t *testing.T) {
	one := func() int { return 1 }
	with := func(id string, ended ...bool) VertexState {
		v := vertexOf(2, 8, one, id)
		for i := range v.Subtasks {
			v.Subtasks[i].Ended = ended[i]
		}
		return v
	}
	for _, c := range []struct {
		name string
		part job.Partitioning
		md   *Metadata
		want string // empty: it fits
	}{
		{"nobody has ended", job.Hash, metadataOf(with("a", false, false), with("b", false, false)), ""},
		{"all have", job.Hash, metadataOf(with("a", true, true), with("b", true, true)), ""},
		{"the producers only", job.Hash, metadataOf(with("a", true, true), with("b", false, false)), ""},
		{"one of two producers has not", job.Hash, metadataOf(with("a", true, false), with("b", false, true)), "b[1] had reached the end of its input, and a[1] in front of it has not"},
		{"forward, its own producer has", job.Forward, metadataOf(with("a", true, false), with("b", true, false)), ""},
		{"forward, its own producer has not", job.Forward, metadataOf(with("a", true, false), with("b", true, true)), "b[1] had reached the end of its input, and a[1] in front of it has not"},
		{"the producer is new", job.Rebalance, metadataOf(with("b", true, true)), "b[0] had reached the end of its input, and a[0] in front of it has not"},
	} {
		g := graphOf(2, 8, []string{"a"}, []string{"b"})
		g.Edges = []job.Edge{{ID: "a->b", From: "a", To: "b", Partitioning: c.part}}
		_, err := Assign(c.md, g)
		compared, failed := Compare(c.md, g, reader(func(string, []StateSchema) error { return nil }))
		if failed != nil {
			t.Fatal(failed)
		}
		if c.want == "" {
			if err != nil || compared[1].Outcome != Matched {
				t.Errorf("%s: %v, compared %+v", c.name, err, compared)
			}
			continue
		}
		if !errors.Is(err, ErrIncompatible) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if compared[1].Outcome != Incompatible || !strings.Contains(compared[1].Detail, c.want) {
			t.Errorf("%s: compared %+v, want b to be incompatible", c.name, compared)
		}
	}
}
