package stateschema

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/plan"
	"github.com/weirstream/weir/stream"
)

// nowhere is a source that is never opened.
type nowhere[T any] struct{ stream.Source[T] }

type wide struct {
	A int64
	B string
	C *float64
}

type narrow struct {
	B string
	A int8
}

// version is a job of one keyed operator and one without keys, whose states have the given types.
func version[K comparable, V any](t *testing.T, migrations ...stream.Migration) *plan.Program {
	t.Helper()
	def := stream.Define("versions", "", func(j *stream.Job) error {
		in := stream.From(j, "source", nowhere[K]{})
		keyed := stream.KeyBy(in, func(k K) K { return k })
		value, list := stream.NewValue[K, V]("value").Migrate(migrations...), stream.NewList[K, V]("list").Migrate(migrations...)
		out := stream.Process(keyed, "keyed", func(*stream.Context[K], K, func(int) error) error { return nil }, value, list)
		split, union := stream.NewListState[V]("split").Migrate(migrations...), stream.NewUnionListState[V]("union").Migrate(migrations...)
		rules := stream.NewBroadcastState[K, V]("rules").Migrate(migrations...)
		stream.ProcessBroadcast(in, out, "plain", stream.BroadcastFunction[K, int, int]{
			Process:   func(*stream.OperatorContext, *stream.ReadOnlyContext, K, func(int) error) error { return nil },
			Broadcast: func(*stream.BroadcastContext, int, func(int) error) error { return nil },
		}, split, union, rules)
		return nil
	})
	p, err := plan.New(def, nil, job.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// keys is a job that has one keyed state. Each type of a version costs the compiler much.
func keys[K comparable](t *testing.T) *plan.Program {
	t.Helper()
	def := stream.Define("versions", "", func(j *stream.Job) error {
		keyed := stream.KeyBy(stream.From(j, "source", nowhere[int64]{}), func(int64) (k K) { return k })
		stream.Process(keyed, "keyed", func(*stream.Context[K], int64, func(int64) error) error { return nil }, stream.NewValue[K, int64]("value"))
		return nil
	})
	p, err := plan.New(def, nil, job.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// schemasOf are the states of a program as a checkpoint has them.
func schemasOf(p *plan.Program) (out []job.DeclaredState) {
	for _, v := range p.Graph.Vertices {
		out = append(out, v.States...)
	}
	return out
}

func written(s job.DeclaredState) checkpoint.StateSchema {
	return checkpoint.StateSchema{Name: s.Name, Kind: s.Kind, KeyType: s.KeyType, ValueType: s.ValueType}
}

// byCode is what the operators themselves say.
func byCode(p *plan.Program, s job.DeclaredState) error {
	w := stream.StateSchema(written(s))
	if s.Mode == 0 {
		return p.CheckStates(s.Operator, []stream.StateSchema{w})
	}
	return p.CheckList(s.Operator, w, s.Mode)
}

// TestReads_AgreesWithTheOperators asks for each two versions of a job, and each state of the older one, whether the newer one can read it: once its
// code, once its graph.
func TestReads_AgreesWithTheOperators(t *testing.T) {
	programs := map[string]*plan.Program{
		"int64":    version[int64, int64](t),
		"text":     version[string, string](t),
		"bytes":    version[string, []byte](t),
		"wide":     version[string, wide](t),
		"narrow":   version[string, narrow](t),
		"int8":     keys[int8](t),
		"uint16":   keys[uint16](t),
		"pair":     keys[[2]int16](t),
		"pair64":   keys[[2]int64](t),
		"migrated": version[string, float64](t, stream.Migrate(func(narrow) float64 { return 1 }), stream.Migrate(func(s string) narrow { return narrow{B: s} })),
	}
	refused, accepted := 0, 0
	for oldName, old := range programs {
		for newName, today := range programs {
			for _, s := range schemasOf(old) {
				code := byCode(today, s)
				var graph error
				if r := (declared{today.Graph}); s.Mode == 0 {
					graph = r.ReadsKeyed(s.Operator, []checkpoint.StateSchema{written(s)})
				} else {
					graph = r.ReadsList(s.Operator, written(s), s.Mode)
				}
				if (code == nil) != (graph == nil) {
					t.Errorf("%s state %s of %s by %s: the code says %v, the graph %v", s.Mode, s.Name, oldName, newName, code, graph)
				}
				if code == nil {
					accepted++
				} else {
					refused++
				}
			}
		}
	}
	if refused < 50 || accepted < 50 {
		t.Errorf("%d refused, %d accepted: the types say too little", refused, accepted)
	}
}

// taken is a checkpoint of the program whose states have something in them.
func taken(p *plan.Program) *checkpoint.Metadata {
	md := &checkpoint.Metadata{Job: "j", ID: 7, Kind: checkpoint.Savepoint}
	for _, v := range p.Graph.Vertices {
		state := checkpoint.VertexState{Vertex: v.ID, Parallelism: 1, MaxParallelism: v.MaxParallelism, Operators: v.Operators}
		sub := checkpoint.SubtaskState{}
		for _, op := range v.Operators {
			s := checkpoint.OperatorState{Operator: op.ID}
			for _, d := range v.States {
				data := checkpoint.InlineHandle([]byte{1})
				switch {
				case d.Operator != op.ID:
				case d.Mode != 0:
					s.Lists = append(s.Lists, checkpoint.List{Schema: written(d), Mode: d.Mode, Items: checkpoint.Items{Handle: data, Offsets: []int64{0, 1}}})
				default:
					if s.Keyed == nil {
						s.Keyed = &checkpoint.Keyed{Handle: data, Range: job.KeyGroupRange{End: 1}, Offsets: []int64{0, 1}}
					}
					s.Keyed.States = append(s.Keyed.States, written(d))
				}
			}
			if s.Keyed != nil || s.Lists != nil {
				sub.Operators = append(sub.Operators, s)
			}
		}
		state.Subtasks = []checkpoint.SubtaskState{sub}
		md.Vertices = append(md.Vertices, state)
	}
	return md
}

func TestCheck_NamesOperatorStateAndBothSchemas(t *testing.T) {
	md := taken(version[string, narrow](t))
	if err := Check(md, version[string, wide](t).Graph); err != nil {
		t.Error(err)
	}
	err := Check(md, version[string, int64](t).Graph)
	for _, part := range []string{"savepoint 7: operator keyed: state \"value\": value: read \"struct{B:string,A:int8}\" as \"int64\"", "checkpoint does not fit the job"} {
		if err == nil || !errors.Is(err, checkpoint.ErrIncompatible) || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want %s", err, part)
		}
	}
	err = Check(md, keys[int64](t).Graph)
	if err == nil || !strings.Contains(err.Error(), `key: keys "string" cannot become keys "int64": their hashes differ`) {
		t.Error(err)
	}
}

func TestCheck_OldGraphsAndForeignCodecs_AreLeftToTheTasks(t *testing.T) {
	old, today := version[string, narrow](t), version[string, int64](t)
	g := *today.Graph
	g.Vertices = slices.Clone(g.Vertices)
	for i := range g.Vertices {
		g.Vertices[i].States = nil
	}
	if err := Check(taken(old), &g); err != nil {
		t.Error(err)
	}
	foreign := version[string, narrow](t)
	for i := range foreign.Graph.Vertices {
		for k := range foreign.Graph.Vertices[i].States {
			foreign.Graph.Vertices[i].States[k].ValueType = fmt.Sprint("avro:", k)
		}
	}
	if err := Check(taken(old), foreign.Graph); err != nil {
		t.Error(err)
	}
}

func TestCheck_AnotherModeOrKind_IsRefused(t *testing.T) {
	p := version[string, string](t)
	md := taken(p)
	g := p.Graph
	for i := range g.Vertices {
		for k := range g.Vertices[i].States {
			if s := &g.Vertices[i].States[k]; s.Name == "split" {
				s.Mode = job.Union
			}
		}
	}
	if err := Check(md, g); err == nil || !strings.Contains(err.Error(), `operator plain: state "split": it was written as split state of kind "operator-list" and is declared as union state of kind "operator-list"`) {
		t.Error(err)
	}
}

func TestReads_NamespacesAndKeysOfMaps(t *testing.T) {
	today := job.DeclaredState{Name: "s", Kind: "map", KeyType: "string", ValueType: "int64", NamespaceType: "int64", MapKeyType: "struct{A:string}"}
	for want, change := range map[string]func(w *checkpoint.StateSchema){
		"":                             func(w *checkpoint.StateSchema) { w.NamespaceType = "int16" },
		`namespaces of type "" and is`: func(w *checkpoint.StateSchema) { w.NamespaceType = "" },
		`namespace: keys "string"`:     func(w *checkpoint.StateSchema) { w.NamespaceType = "string" },
		`key of the maps: keys "str`:   func(w *checkpoint.StateSchema) { w.MapKeyType = "struct{B:string}" },
	} {
		w := checkpoint.StateSchema{Name: "s", Kind: "map", KeyType: "string", ValueType: "int32", NamespaceType: "int64", MapKeyType: "struct{A:string}"}
		change(&w)
		if err := reads(&today, w, 0); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
