package inspect

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream/codec"
)

// encoded is the encoding of values, one for each item.
func encoded[V any](t *testing.T, values ...V) (items [][]byte) {
	t.Helper()
	c, err := codec.For[V]()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		data, err := c.Append(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, data)
	}
	return items
}

// listing makes a checkpoint of an operator with a list state of each mode, and one that is empty. what holds the split items by subtask; subtask 1
// has its state in a file.
func listing(t *testing.T, what [][]string, rules map[string]int64) *Stored {
	t.Helper()
	files := map[string][]byte{}
	v := checkpoint.VertexState{Vertex: "lists", Parallelism: len(what), MaxParallelism: groups, Operators: []job.Operator{{ID: "lists", Kind: "process", Stateful: true}}}
	for i, split := range what {
		var entries [][]byte
		for _, k := range []string{"a", "b", "c"} {
			if n, ok := rules[k]; ok {
				entries = append(entries, append(encoded(t, k)[0], encoded(t, n)[0]...))
			}
		}
		op := checkpoint.OperatorState{Operator: "lists"}
		add := func(name, kind string, mode job.ListMode, key, value string, items [][]byte) {
			it := checkpoint.Items{Offsets: []int64{0}}
			var data []byte
			for _, item := range items {
				data = append(data, item...)
				it.Offsets = append(it.Offsets, int64(len(data)))
			}
			it.Handle = checkpoint.InlineHandle(data)
			if i == 1 && len(data) > 0 {
				const file = "lists-1-a1-c7.state"
				it.Handle = checkpoint.FileHandle(file, int64(len(files[file])), data)
				files[file] = append(files[file], data...)
			}
			op.Lists = append(op.Lists, checkpoint.List{
				Schema: checkpoint.StateSchema{Name: name, Kind: kind, KeyType: key, ValueType: value}, Mode: mode, Items: it,
			})
		}
		add("split", "operator-list", job.Split, "", "string", encoded(t, split...))
		add("all", "operator-list", job.Union, "", "int64", encoded(t, int64(i), 7))
		add("none", "operator-list", job.Split, "", "bool", nil)
		add("rules", "broadcast", job.BroadcastState, "string", "int64", entries)
		v.Subtasks = append(v.Subtasks, checkpoint.SubtaskState{Subtask: i, Operators: []checkpoint.OperatorState{op}})
	}
	md, _ := sample()
	md.Vertices = []checkpoint.VertexState{v}
	return stored(t, md, files)
}

func TestLists_AreListedWithTheirMode(t *testing.T) {
	s := listing(t, [][]string{{"x", "yy"}, {"zzz"}}, map[string]int64{"a": 1, "b": 2})
	list, err := s.States(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range list {
		got = append(got, fmt.Sprint(r.Name, " ", r.Kind, " ", r.Mode, " ", r.KeyType, ">", r.ValueType, " ", r.Entries, " ", r.Bytes))
	}
	want := "[split operator-list split >string 3 9 all operator-list union >int64 4 4 none operator-list split >bool 0 0 rules broadcast broadcast string>int64 2 6]"
	if fmt.Sprint(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	report := NewReport(s.Metadata).Vertices[0].Operators[0]
	if report.Items != 11 || len(report.States) != 4 {
		t.Errorf("report has %d items and %d states", report.Items, len(report.States))
	}
	if v, err := s.Verify(t.Context()); err != nil || len(v.Damage) > 0 || v.Pieces != 8 {
		t.Errorf("verified %+v, %v", v, err)
	}
}

func TestLists_GetShowsElementsBySubtaskAndBroadcastValuesByKey(t *testing.T) {
	s := listing(t, [][]string{{"x", "yy"}, {"zzz"}, nil}, map[string]int64{"a": 1, "b": 2})
	for _, c := range []struct {
		state, key, want string
		err              error
	}{
		{"split", "0", `["x","yy"]`, nil},
		{"split", "1", `["zzz"]`, nil},
		{"split", "2", `[]`, nil},
		{"all", "2", `[2,7]`, nil},
		{"rules", "b", `2`, nil},
		{"rules", "c", "", ErrNoKey},
		{"split", "3", "", ErrBadKey},
		{"split", "x", "", ErrBadKey},
		{"missing", "0", "", ErrUnknown},
	} {
		e, err := s.Get(t.Context(), "lists", c.state, c.key)
		if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) || err == nil && string(e.Value) != c.want {
			t.Errorf("%s of %s: %s, %v, want %s, %v", c.key, c.state, e.Value, err, c.want, c.err)
		}
	}
	if _, err := s.Get(t.Context(), "lists", "missing", "0"); !strings.Contains(err.Error(), "(its states: split, all, none, rules)") {
		t.Error(err)
	}
}

func TestLists_DiffComparesItemsWhereverTheyAre(t *testing.T) {
	a := listing(t, [][]string{{"x", "yy"}, {"zzz"}}, map[string]int64{"a": 1, "b": 2})
	b := listing(t, [][]string{nil, {"zzz", "x"}, {"new", "new"}}, map[string]int64{"a": 1, "b": 3})
	list, err := Diff(t.Context(), a, b, 3)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range list {
		got = append(got, fmt.Sprint(d.Name, " +", d.Added.Count, " -", d.Removed.Count, " =", d.Same, d.Problem))
	}
	if want := "[split +2 -1 =2 all +2 -0 =4 none +0 -0 =0 rules +1 -1 =1]"; fmt.Sprint(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	other := listing(t, [][]string{{"x"}}, nil)
	for i := range other.Metadata.Vertices[0].Subtasks[0].Operators[0].Lists {
		l := &other.Metadata.Vertices[0].Subtasks[0].Operators[0].Lists[i]
		switch l.Schema.Name {
		case "split":
			l.Mode = job.Union
		case "all":
			l.Schema.ValueType = "string"
		case "none":
			l.Schema.Name = "renamed"
		}
	}
	if list, err = Diff(t.Context(), a, other, 3); err != nil {
		t.Fatal(err)
	}
	got = nil
	for _, d := range list {
		got = append(got, fmt.Sprint(d.Name, " ", d.In, " ", d.Problem))
	}
	if want := "[split 0 kind is operator-list (split) and operator-list (union) all 0 type is int64 and string none 1  rules 0  renamed 2 ]"; fmt.Sprint(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestLists_DamageNamesTheState(t *testing.T) {
	s := listing(t, [][]string{{"x"}, {"zzz"}}, nil)
	l := &s.Metadata.Vertices[0].Subtasks[1].Operators[0].Lists[0]
	l.Items.Handle.CRC32C++
	if _, err := s.States(t.Context()); err == nil || !strings.Contains(err.Error(), "operator lists subtask 1: list state split: ") {
		t.Error(err)
	}
}
