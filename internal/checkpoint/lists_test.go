package checkpoint

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/job"
)

// listOf is a list state whose items say where they were written.
func listOf(name string, mode job.ListMode, items []string) List {
	l := List{Schema: StateSchema{Name: name, Kind: "operator-list", ValueType: "string"}, Mode: mode}
	var data []byte
	l.Items.Offsets = []int64{0}
	for _, it := range items {
		data = append(data, it...)
		l.Items.Offsets = append(l.Items.Offsets, int64(len(data)))
	}
	l.Items.Handle = InlineHandle(data)
	return l
}

// given is what a restore hands out of list states, by subtask and name.
func given(t *testing.T, out map[job.TaskID]Restore, v job.VertexID, parallelism int) []map[string][]string {
	t.Helper()
	got := make([]map[string][]string, parallelism)
	for i := range got {
		got[i] = map[string][]string{}
		for _, op := range out[job.TaskID{Vertex: v, Subtask: i}].Operators {
			for _, l := range op.Lists {
				if err := l.Validate(); err != nil {
					t.Fatal(err)
				}
				for n := range l.Items.Len() {
					got[i][l.Schema.Name] = append(got[i][l.Schema.Name], string(l.Items.Item(l.Items.Handle.Inline, n)))
				}
			}
		}
	}
	return got
}

// listTwin is Flink's rule by hand: items are dealt one share after another, and the next state begins where the odd items of this one have ended.
func listTwin(old []map[string][]string, modes map[string]job.ListMode, parallelism int) []map[string][]string {
	out := make([]map[string][]string, parallelism)
	for i := range out {
		out[i] = map[string][]string{}
	}
	start := 0
	for _, name := range slices.Sorted(maps.Keys(modes)) {
		var all []string
		for _, o := range old {
			all = append(all, o[name]...)
		}
		switch {
		case modes[name] == job.Union:
			for i := range out {
				out[i][name] = all
			}
		case modes[name] == job.BroadcastState:
			for i := range out {
				out[i][name] = old[i%len(old)][name]
			}
		case len(old) == parallelism:
			for i := range out {
				out[i][name] = old[i][name]
			}
		default:
			left, odd, next := len(all)/parallelism, len(all)%parallelism, start
			for i := range parallelism {
				n := left
				if odd > 0 {
					n, odd = n+1, odd-1
					next = (start + i + 1) % parallelism
				}
				out[(start+i)%parallelism][name] = all[:n]
				all = all[n:]
			}
			start = next
		}
	}
	return out
}

// TestAssign_ListStates_OverChainsOfParallelisms restores random list states again and again at random parallelisms: nothing is lost and nothing
// is there twice, union and broadcast are exact, and each step is the twin's.
func TestAssign_ListStates_OverChainsOfParallelisms(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 11))
		modes := map[string]job.ListMode{}
		for i := range 1 + r.IntN(5) {
			modes[fmt.Sprint("state", i)] = job.ListMode(1 + r.IntN(3))
		}
		shared := map[string][]string{} // what all subtasks have of a broadcast state
		for name := range modes {
			for n := range r.IntN(4) {
				shared[name] = append(shared[name], fmt.Sprintf("%s#%d;", name, n))
			}
		}
		old := make([]map[string][]string, 1+r.IntN(6))
		for i := range old {
			old[i] = map[string][]string{}
			for name, mode := range modes {
				if mode == job.BroadcastState {
					old[i][name] = shared[name]
					continue
				}
				for n := range r.IntN(5) * r.IntN(2) {
					old[i][name] = append(old[i][name], fmt.Sprintf("%s/%d/%d;", name, i, n))
				}
			}
		}
		for step := range 6 {
			parallelism := 1 + r.IntN(6)
			got := restoreLists(t, old, modes, parallelism)
			want := listTwin(old, modes, parallelism)
			for i := range got {
				for name := range modes {
					if !slices.Equal(got[i][name], want[i][name]) {
						t.Fatalf("seed %d step %d: subtask %d of %d (after %d) has of %s state %s %q, the twin %q", seed, step, i, parallelism, len(old), modes[name], name, got[i][name], want[i][name])
					}
				}
			}
			for name, mode := range modes {
				if mode == job.Split && joined(old, name) != joined(got, name) {
					t.Fatalf("seed %d step %d: items of %s were %s, are %s", seed, step, name, joined(old, name), joined(got, name))
				}
			}
			for i := range got { // union state is one item for each subtask from now on, or it would grow with each step
				for name, mode := range modes {
					if mode == job.Union && len(got[i][name]) > 0 {
						got[i][name] = got[i][name][:1]
					}
				}
			}
			old = got
		}
	}
}

func restoreLists(t *testing.T, old []map[string][]string, modes map[string]job.ListMode, parallelism int) []map[string][]string {
	t.Helper()
	v := VertexState{Vertex: "a", Parallelism: len(old), MaxParallelism: 8, Operators: operators("a")}
	for i, o := range old {
		op := OperatorState{Operator: "a"}
		for _, name := range slices.Sorted(maps.Keys(modes)) {
			op.Lists = append(op.Lists, listOf(name, modes[name], o[name]))
		}
		v.Subtasks = append(v.Subtasks, SubtaskState{Subtask: i, Operators: []OperatorState{op}})
	}
	file, err := EncodeMetadata(metadataOf(v)) // what is assigned is what was read
	if err != nil {
		t.Fatal(err)
	}
	md, err := DecodeMetadata(file)
	if err != nil {
		t.Fatal(err)
	}
	out, err := Assign(md, graphOf(parallelism, 8, []string{"a"}))
	if err != nil {
		t.Fatal(err)
	}
	return given(t, out, "a", parallelism)
}

// joined is all items of a state, sorted.
func joined(all []map[string][]string, name string) string {
	var items []string
	for _, one := range all {
		items = append(items, one[name]...)
	}
	slices.Sort(items)
	return strings.Join(items, "")
}

func TestAssign_BroadcastState_OfAFinishedSubtask_ComesFromAnother(t *testing.T) {
	v := VertexState{Vertex: "a", Parallelism: 2, MaxParallelism: 8, Operators: operators("a"), Subtasks: []SubtaskState{
		{Subtask: 0, Ended: true},
		{Subtask: 1, Operators: []OperatorState{{Operator: "a", Lists: []List{listOf("rules", job.BroadcastState, []string{"x;", "y;"})}}}},
	}}
	for _, parallelism := range []int{2, 3} {
		g := graphOf(parallelism, 8, []string{"a"})
		md := metadataOf(v)
		if parallelism != 2 { // an ended subtask fixes the parallelism; see Assign
			md.Vertices[0].Subtasks[0].Ended = false
		}
		out, err := Assign(md, g)
		if err != nil {
			t.Fatal(err)
		}
		got := given(t, out, "a", parallelism)
		for i := range got {
			if s := strings.Join(got[i]["rules"], ""); s != "x;y;" {
				t.Errorf("parallelism %d: subtask %d has %q", parallelism, i, s)
			}
		}
	}
}

func TestValidate_ListStates(t *testing.T) {
	for want, lists := range map[string][]List{
		`list state "x" occurs twice`:     {listOf("x", job.Split, nil), listOf("x", job.Union, nil)},
		`list state "x": unknown mode 0`:  {listOf("x", 0, nil)},
		`list state "x": unknown mode 4`:  {listOf("x", 4, nil)},
		`list state "x": offset 0 is 9, `: {{Schema: StateSchema{Name: "x"}, Mode: job.Split, Items: Items{Offsets: []int64{9}}}},
	} {
		v := VertexState{Vertex: "a", Parallelism: 1, MaxParallelism: 8, Operators: operators("a"),
			Subtasks: []SubtaskState{{Operators: []OperatorState{{Operator: "a", Lists: lists}}}}}
		if err := metadataOf(v).Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
