package checkpoint

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/job"
)

// takenOf is the graph that the sample was taken of.
func takenOf(md *Metadata) *job.Graph {
	g := &job.Graph{Name: md.JobName}
	for _, v := range md.Vertices {
		g.Vertices = append(g.Vertices, job.Vertex{
			ID: v.Vertex, Parallelism: v.Parallelism, MaxParallelism: v.MaxParallelism, Operators: slices.Clone(v.Operators),
		})
	}
	return g
}

func TestFit_DropsStateOnlyWhenAllowed(t *testing.T) {
	md := sample()
	g := takenOf(md)
	g.Vertices[1].Operators[0].ID = "per-route"
	_, _, err := Fit(md, g, false)
	if !errors.Is(err, ErrIncompatible) || !strings.Contains(err.Error(), "state of operator per-origin has no operator in job flights") ||
		!strings.Contains(err.Error(), "--allow-non-restored-state") {
		t.Errorf("not allowed: %v", err)
	}
	fitted, dropped, err := Fit(md, g, true)
	if err != nil || !slices.Equal(dropped, []string{"per-origin"}) {
		t.Fatalf("allowed: dropped %v, %v", dropped, err)
	}
	// FLINK-39513: what was allowed at the start must hold for every later restore, so that it is a property of the metadata.
	for range 2 {
		tasks, err := Assign(fitted, g)
		if err != nil {
			t.Fatal(err)
		}
		if r := tasks[job.TaskID{Vertex: "per-origin", Subtask: 0}]; len(r.Operators) != 0 {
			t.Errorf("the new operator gets %v", r)
		}
		if r := tasks[job.TaskID{Vertex: "flights", Subtask: 0}]; len(r.Operators) != 1 || !r.Ended {
			t.Errorf("the operator that stayed gets %v", r)
		}
	}
	if diff := cmp.Diff(sample(), md); diff != "" {
		t.Errorf("the metadata that was given has changed: %s", diff)
	}
	if _, err := EncodeMetadata(fitted); err != nil {
		t.Errorf("what is left is not metadata: %v", err)
	}
}

func TestFit_ReportsNoOperatorThatHadNothing(t *testing.T) {
	md := sample()
	g := takenOf(md)
	g.Vertices[0].Operators = g.Vertices[0].Operators[:1] // parse had no state
	fitted, dropped, err := Fit(md, g, true)
	if err != nil || len(dropped) != 0 {
		t.Errorf("dropped %v, %v", dropped, err)
	}
	if n := len(fitted.Vertices[0].Operators); n != 1 {
		t.Errorf("%d operators are left", n)
	}
}

// reader is a StateReader of one function; it reads every list state.
type reader func(operator string, written []StateSchema) error

func (r reader) ReadsKeyed(operator string, written []StateSchema) error { return r(operator, written) }
func (r reader) ReadsList(string, StateSchema, job.ListMode) error       { return nil }

func TestCompare(t *testing.T) {
	unreadable := func(string, []StateSchema) error { return errors.New("cannot read int64 as string") }
	fine := func(operator string, written []StateSchema) error {
		if operator != "per-origin" || len(written) != 1 || written[0].Name != "stats" {
			return errors.New("asked for the wrong states")
		}
		return nil
	}
	for name, c := range map[string]struct {
		change func(g *job.Graph)
		states func(string, []StateSchema) error
		want   []Comparison
	}{
		"the same": {func(*job.Graph) {}, fine, []Comparison{
			{"flights", Matched, "", ""}, {"parse", Matched, "", ""}, {"per-origin", Matched, "", ""},
		}},
		"another parallelism": {func(g *job.Graph) { g.Vertices[1].Parallelism = 4 }, fine, []Comparison{
			{"flights", Matched, "", ""}, {"parse", Matched, "", ""}, {"per-origin", Matched, "parallelism 2 -> 4", ""},
		}},
		"renamed": {func(g *job.Graph) { g.Vertices[1].Operators[0].ID = "per-route" }, fine, []Comparison{
			{"flights", Matched, "", ""}, {"parse", Matched, "", ""}, {"per-route", New, "starts empty", ""}, {"per-origin", Dropped, "its state has no operator in the job", ""},
		}},
		"stateless ones come and go": {func(g *job.Graph) { g.Vertices[0].Operators[1].ID = "read" }, fine, []Comparison{
			{"flights", Matched, "", ""}, {"read", New, "", ""}, {"per-origin", Matched, "", ""},
		}},
		"other types": {func(*job.Graph) {}, unreadable, []Comparison{
			{"flights", Matched, "", ""}, {"parse", Matched, "", ""}, {"per-origin", Incompatible, "cannot read int64 as string", ""},
		}},
		"no state any more": {func(g *job.Graph) { g.Vertices[0].Operators[0].Stateful = false }, fine, []Comparison{
			{"flights", Incompatible, "it has state in the checkpoint and none in the job", ""}, {"parse", Matched, "", ""}, {"per-origin", Matched, "", ""},
		}},
		"other key groups": {func(g *job.Graph) { g.Vertices[1].MaxParallelism = 16 }, fine, []Comparison{
			{"flights", Matched, "", ""}, {"parse", Matched, "", ""},
			{"per-origin", Incompatible, "operator per-origin was at max parallelism 8 and is now at 16; keyed state cannot move between numbers of key groups: choose max parallelism 8", ""},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			md := sample()
			g := takenOf(md)
			c.change(g)
			got, err := Compare(md, g, reader(c.states))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			// What a comparison finds no fault with can be assigned, and the other way round but for types.
			bad := slices.ContainsFunc(got, func(c Comparison) bool { return c.Outcome == Incompatible || c.Outcome == Dropped })
			if _, err := Assign(md, g); err != nil && !bad {
				t.Errorf("no fault was found, but: %v", err)
			}
		})
	}
}

func TestCompare_RefusesMetadataWithAPartMissing(t *testing.T) {
	md := sample()
	md.Vertices[1].Subtasks = md.Vertices[1].Subtasks[:1]
	if _, err := Compare(md, takenOf(md), nil); !errors.Is(err, ErrIncompatible) || !strings.Contains(err.Error(), "1 of the 2 subtasks") {
		t.Errorf("%v", err)
	}
}
