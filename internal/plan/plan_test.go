package plan_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/plan"
	"github.com/weirstream/weir/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// numbers is a source; its splits say for whom they were found.
type numbers struct {
	name string
	fail func() error
}

func (n numbers) Splits(_ context.Context, parallelism int) ([][]byte, error) {
	if n.fail != nil {
		return nil, n.fail()
	}
	return [][]byte{[]byte(fmt.Sprintf("%s/%d", n.name, parallelism))}, nil
}

func (numbers) Open(stream.SourceEnv) (stream.Reader[int], error) {
	return nil, errors.New("not to be opened")
}

// sink is a sink that may refuse the job.
type sink[T any] struct{ check func() error }

func (sink[T]) Open(stream.SinkEnv) (stream.Writer[T], error) {
	return nil, errors.New("not to be opened")
}

func (s sink[T]) Check(context.Context) error {
	if s.check == nil {
		return nil
	}
	return s.check()
}

func same(v int) int                          { return v }
func sum(a, b int) int                        { return a + b }
func positive(v int) bool                     { return v > 0 }
func text(v int) string                       { return fmt.Sprint(v) }
func source(j *stream.Job) stream.Stream[int] { return stream.From(j, "src", numbers{name: "src"}) }

func compile(t *testing.T, build func(*stream.Job), opts job.Options) (*plan.Program, error) {
	t.Helper()
	return plan.New(stream.Define("test", "", func(j *stream.Job) error { build(j); return nil }), nil, opts)
}

// describe writes a graph as lines.
func describe(g *job.Graph) (out []string) {
	for _, v := range g.Vertices {
		out = append(out, fmt.Sprintf("%s: %s (%d)", v.ID, v.Name, v.Parallelism))
	}
	for _, e := range g.Edges {
		out = append(out, fmt.Sprintf("%s: %s to %s by %s", e.ID, e.From, e.To, e.Partitioning))
	}
	return out
}

func TestChaining(t *testing.T) {
	for name, c := range map[string]struct {
		build func(j *stream.Job)
		want  []string
	}{
		"forward edges of equal parallelism": {func(j *stream.Job) {
			stream.To(stream.Filter(stream.Map(source(j), "m", same), "f", positive), "out", sink[int]{})
		}, []string{"src: src -> m -> f -> out (2)"}},
		"a key cuts": {func(j *stream.Job) {
			stream.To(stream.Reduce(stream.KeyBy(stream.Map(source(j), "m", same), same), "sum", sum, stream.EmitUpdates), "out", sink[int]{})
		}, []string{"src: src -> m (2)", "sum: sum -> out (2)", "m->sum: src to sum by hash"}},
		"another parallelism cuts": {func(j *stream.Job) {
			stream.To(stream.Map(source(j), "m", same).WithParallelism(3), "out", sink[int]{})
		}, []string{"src: src (2)", "m: m (3)", "out: out (2)", "src->m: src to m by rebalance", "m->out: m to out by rebalance"}},
		"rebalance and broadcast cut": {func(j *stream.Job) {
			stream.To(stream.Map(source(j).Rebalance(), "m", same).Broadcast(), "out", sink[int]{})
		}, []string{"src: src (2)", "m: m (2)", "out: out (2)", "src->m: src to m by rebalance", "m->out: m to out by broadcast"}},
		"WithoutChaining cuts before": {func(j *stream.Job) {
			stream.To(stream.Map(source(j), "m", same).WithoutChaining(), "out", sink[int]{})
		}, []string{"src: src (2)", "m: m -> out (2)", "src->m: src to m by forward"}},
		"fan-out stays in the chain": {func(j *stream.Job) {
			s := source(j)
			stream.To(stream.Map(s, "a", same), "out-a", sink[int]{})
			stream.To(stream.Map(s, "b", text), "out-b", sink[string]{})
		}, []string{"src: src -> a -> out-a -> b -> out-b (2)"}},
		"union is a task of its own": {func(j *stream.Job) {
			s := source(j)
			stream.To(stream.Union(stream.Map(s, "a", same), stream.Map(s, "b", same)), "out", sink[int]{})
		}, []string{"src: src -> a -> b (2)", "union-4: union-4 -> out (2)", "a->union-4: src to union-4 by forward", "b->union-4: src to union-4 by forward"}},
		"edges between the same two operators have ids of their own": {func(j *stream.Job) {
			s := source(j)
			stream.To(stream.Union(s, s, s), "out", sink[int]{})
		}, []string{"src: src (2)", "union-2: union-2 -> out (2)", "src->union-2: src to union-2 by forward",
			"src->union-2#2: src to union-2 by forward", "src->union-2#3: src to union-2 by forward"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := compile(t, c.build, job.Options{Parallelism: 2})
			if err != nil {
				t.Fatal(err)
			}
			if got := describe(p.Graph); !slices.Equal(got, c.want) {
				t.Errorf("got\n %s\nwant\n %s", strings.Join(got, "\n "), strings.Join(c.want, "\n "))
			}
		})
	}
}

func TestParallelism_TheSubmissionsChoiceWins(t *testing.T) {
	for _, c := range []struct{ submitted, own, want int }{{0, 0, 1}, {0, 3, 3}, {2, 3, 2}} {
		p, err := compile(t, func(j *stream.Job) {
			if c.own > 0 {
				j.SetParallelism(c.own)
			}
			source(j)
		}, job.Options{Parallelism: c.submitted})
		if err != nil || p.Graph.Vertices[0].Parallelism != c.want || p.Graph.Vertices[0].MaxParallelism != job.DefaultMaxParallelism {
			t.Errorf("submitted %d, own %d: got %+v, %v", c.submitted, c.own, p, err)
		}
	}
}

func TestNew_Refuses(t *testing.T) {
	def := func(f func(*stream.Job) error) stream.Definition { return stream.Define("test", "", f) }
	for name, c := range map[string]struct {
		def    stream.Definition
		params map[string]string
		opts   job.Options
		want   string
	}{
		"forward between unequal": {def(func(j *stream.Job) error {
			stream.Map(source(j).Forward(), "m", same).WithParallelism(3)
			return nil
		}), nil, job.Options{Parallelism: 2}, "a forward edge from src (parallelism 2) to m (parallelism 3): both must agree"},
		"too parallel":          {def(func(j *stream.Job) error { source(j); return nil }), nil, job.Options{Parallelism: 9, MaxParallelism: 8}, "operator src: parallelism 9 is over the max parallelism 8"},
		"negative parallelism":  {def(func(j *stream.Job) error { source(j); return nil }), nil, job.Options{Parallelism: -2}, "operator src: parallelism -2 is not positive"},
		"nothing":               {def(func(*stream.Job) error { return nil }), nil, job.Options{}, "job test has no streams"},
		"an error":              {def(func(*stream.Job) error { return errors.New("no such mode") }), nil, job.Options{}, "job test: no such mode"},
		"a panic":               {def(func(*stream.Job) error { panic("index out of range") }), nil, job.Options{}, "the definition of job test panics: index out of range"},
		"mistakes, in one line": {def(func(j *stream.Job) error { j.Param("in"); source(j); source(j); return nil }), map[string]string{"x": ""}, job.Options{}, `job test needs parameter "in" (weir run test --set in=...); two operators of job test have the id "src"; job test has no parameter "x"; it has: in`},
	} {
		_, err := plan.New(c.def, c.params, c.opts)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// job1 is a job for fingerprints, with one thing changed by each option.
func job1(change string) stream.Definition {
	return stream.Define("job1", "", func(j *stream.Job) error {
		j.ParamOr("in", "")
		s := stream.From(j, "src", numbers{name: "src"})
		id := "m"
		if change == "id" {
			id = "n"
		}
		m := stream.Map(s, id, same)
		if change == "kind" {
			m = stream.Filter(s, "f", positive)
		}
		if change == "partitioning" {
			m = m.Broadcast()
		}
		key := stream.KeyBy(m, same)
		state := stream.NewValue[int, int]("n")
		if change == "state" {
			state = stream.NewValue[int, int]("count")
		}
		counted := stream.Process(key, "count", func(*stream.Context[int], int, func(int) error) error { return nil }, state)
		if change == "parallelism" {
			counted = counted.WithParallelism(5)
		}
		if change == "type" {
			stream.To(stream.Map(counted, "show", text), "out", sink[string]{})
			return nil
		}
		if change == "union" {
			counted = stream.Union(counted, counted)
		}
		stream.To(stream.Map(counted, "show", same), "out", sink[int]{})
		return nil
	})
}

func fingerprint(t *testing.T, change string, params map[string]string, opts job.Options) *job.Graph {
	t.Helper()
	p, err := plan.New(job1(change), params, opts)
	if err != nil {
		t.Fatal(err)
	}
	return p.Graph
}

func TestFingerprint_IsStable(t *testing.T) {
	g := fingerprint(t, "", map[string]string{"in": "x"}, job.Options{Parallelism: 2})
	for range 20 {
		if again := fingerprint(t, "", map[string]string{"in": "x"}, job.Options{Parallelism: 2}); again.Fingerprint != g.Fingerprint {
			t.Fatalf("two plans of one job: %s and %s", g.Fingerprint, again.Fingerprint)
		}
	}
	const golden = "8fcaa8a8e2121fdf41441a90bf653159"
	if g.Fingerprint != golden {
		t.Errorf("got %s, want %s: executors of the last build would refuse the jobs of this one", g.Fingerprint, golden)
	}
}

func TestFingerprint_IsSensitive(t *testing.T) {
	seen := map[string]string{}
	note := func(what string, g *job.Graph) {
		if other, ok := seen[g.Fingerprint]; ok {
			t.Errorf("%s does not change the fingerprint of %s", what, other)
		}
		seen[g.Fingerprint] = what
	}
	for _, change := range []string{"", "id", "kind", "state", "parallelism", "type", "union"} {
		note(change, fingerprint(t, change, nil, job.Options{}))
	}
	note("parameter", fingerprint(t, "", map[string]string{"in": "y"}, job.Options{}))
	note("parallelism of the job", fingerprint(t, "", nil, job.Options{Parallelism: 3}))
	note("max parallelism", fingerprint(t, "", nil, job.Options{MaxParallelism: 64}))
}

func TestDiff_NamesTheOperator(t *testing.T) {
	submitted := fingerprint(t, "", nil, job.Options{})
	for change, want := range map[string]string{
		"":   "",
		"id": "operator m is not in this build",
		"state": "operator count differs: submitted as process int by int -> int int64 in count at parallelism 1 of 128 with states n, " +
			"here process int by int -> int int64 in count at parallelism 1 of 128 with states count",
		"parallelism": "operator count differs: submitted as process int by int -> int int64 in count at parallelism 1 of 128 with states n, " +
			"here process int by int -> int int64 in count at parallelism 5 of 128 with states n",
		"type": "operator out differs: submitted as sink int -> int64 in count at parallelism 1 of 128, " +
			"here sink string -> string in count at parallelism 1 of 128",
	} {
		if got := plan.Diff(submitted, fingerprint(t, change, nil, job.Options{})); got != want {
			t.Errorf("%s: got %q, want %q", change, got, want)
		}
	}
	more := fingerprint(t, "union", nil, job.Options{})
	more.Vertices = append(slices.Clone(submitted.Vertices), job.Vertex{Operators: []job.Operator{{ID: "zz"}}})
	if got := plan.Diff(submitted, more); got != "operator zz is only in this build" {
		t.Errorf("got %q", got)
	}
	edges := *submitted
	edges.Fingerprint = "other"
	if got := plan.Diff(submitted, &edges); got != "the edges between the operators differ" {
		t.Errorf("got %q", got)
	}
}

func TestFindSplits_PerSource(t *testing.T) {
	p, err := compile(t, func(j *stream.Job) {
		a := stream.From(j, "a", numbers{name: "a"}).WithParallelism(3)
		b := stream.From(j, "b", numbers{name: "b"})
		stream.To(stream.Union(a, b), "out", sink[int]{})
	}, job.Options{Parallelism: 2})
	if err != nil {
		t.Fatal(err)
	}
	before := p.Graph.Fingerprint
	if err := p.FindSplits(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range p.Graph.Vertices {
		got = append(got, fmt.Sprintf("%s%s", v.ID, v.Splits))
	}
	if want := "a[a/3] b[b/2] union-3[]"; strings.Join(got, " ") != want || p.Graph.Fingerprint != before {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestFindSplits_RefusalsNameTheOperator(t *testing.T) {
	for name, c := range map[string]struct {
		find, check func() error
		want        string
	}{
		"source":        {func() error { return errors.New("no such file") }, nil, "operator src: no such file"},
		"source panics": {func() error { panic("nil map") }, nil, "operator src: it panics: nil map"},
		"sink":          {nil, func() error { return errors.New("not writable") }, "operator out: not writable"},
		"sink panics":   {nil, func() error { panic("nil map") }, "operator out: it panics: nil map"},
	} {
		p, err := compile(t, func(j *stream.Job) {
			stream.To(stream.From(j, "src", numbers{fail: c.find}), "out", sink[int]{c.check})
		}, job.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.FindSplits(t.Context()); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// ints collects what leaves a chain.
type ints struct{ got []int }

func (c *ints) Collect(_ stream.Timestamp, v int) error { c.got = append(c.got, v); return nil }

func TestBuild_ConnectsTheOperatorsOfAChain(t *testing.T) {
	p, err := compile(t, func(j *stream.Job) {
		s := stream.Map(source(j).Rebalance(), "double", func(v int) int { return 2 * v })
		stream.To(stream.Filter(s, "some", func(v int) bool { return v != 4 }).Rebalance(), "out", sink[int]{})
		stream.Reduce(stream.KeyBy(s, same), "sum", sum, stream.EmitUpdates)
	}, job.Options{})
	if err != nil {
		t.Fatal(err)
	}
	outs := map[string]*ints{"some->out": {}, "double->sum": {}}
	c, err := p.Build("double", stream.Env{Parallelism: 1, MaxParallelism: 128}, func(edge string) any { return stream.Collector[int](outs[edge]) })
	if err != nil {
		t.Fatal(err)
	}
	if c.Source != nil || len(c.Operators) != 2 || c.Operators[0].ID != "double" || c.Operators[1].ID != "some" {
		t.Fatalf("built %+v", c)
	}
	for v := range 4 {
		if err := c.Inputs[0].(stream.Collector[int]).Collect(1, v); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(outs["some->out"].got, []int{0, 2, 6}) || !slices.Equal(outs["double->sum"].got, []int{0, 2, 4, 6}) {
		t.Errorf("got %v and %v", outs["some->out"].got, outs["double->sum"].got)
	}
	if *c.Running != 1 {
		t.Errorf("operator %d ran last, want 1", *c.Running)
	}
	src, err := p.Build("src", stream.Env{}, func(string) any { return stream.Collector[int](&ints{}) })
	if err != nil || src.Source == nil || len(src.Inputs) > 0 {
		t.Errorf("the source: %+v, %v", src, err)
	}
	if _, err := p.Build("none", stream.Env{}, nil); err == nil || !strings.Contains(err.Error(), "job test has no vertex none") {
		t.Errorf("an unknown vertex: %v", err)
	}
	if _, err := p.Build("src", stream.Env{}, func(string) any { return "not a collector" }); err == nil || !strings.Contains(err.Error(), "operator src: output 0 takes string") {
		t.Errorf("a wrong output: %v", err)
	}
	if _, err := p.Build("src", stream.Env{}, func(string) any { return nil }); err == nil {
		t.Error("no output is taken for one")
	}
	if p.EdgeType("double->sum").Schema() != "int64" {
		t.Errorf("the edge has schema %s", p.EdgeType("double->sum").Schema())
	}
}
