package task

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/compression"
	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/plan"
	"github.com/weirstream/weir/stream"
)

// lister is a job whose operator has list states of every mode. What it is to do comes as records.
type lister struct {
	program *plan.Program
	seen    []map[string][]string // what the operator has, by subtask and state
}

// listed are the list states, one of which never has an element.
var listed = []string{"a", "b", "empty", "large", "union"}

const listMaxParallelism = 8

type addition struct{ State, Element string }

func newLister(t *testing.T) *lister {
	t.Helper()
	l := &lister{}
	def := stream.Define("lister", "", func(j *stream.Job) error {
		lists := map[string]*stream.ListState[string]{}
		states := []stream.OperatorState{}
		for _, name := range listed {
			lists[name] = stream.NewListState[string](name)
			if name == "union" {
				lists[name] = stream.NewUnionListState[string](name)
			}
			states = append(states, lists[name])
		}
		rules := stream.NewBroadcastState[string, int]("rules")
		from := stream.From(j, "source", silent[addition]{})
		marks := stream.From(j, "marks", silent[string]{})
		stream.ProcessBroadcast(from.Rebalance(), marks, "op", stream.BroadcastFunction[addition, string, string]{
			Process: func(c *stream.OperatorContext, b *stream.ReadOnlyContext, v addition, _ func(string) error) error {
				switch v.State {
				case "look":
					seen := map[string][]string{}
					for name, s := range lists {
						seen[name] = slices.Collect(s.All(c))
					}
					for k, n := range rules.All(b) {
						seen["rules"] = append(seen["rules"], fmt.Sprint(k, n))
					}
					l.seen[c.Subtask()] = seen
				case "own": // of the union state, as an operator does it when it opens
					var own []string
					i := 0
					for e := range lists["union"].All(c) {
						if i%c.Parallelism() == c.Subtask() {
							own = append(own, e)
						}
						i++
					}
					lists["union"].Set(c, own)
				default:
					lists[v.State].Append(c, v.Element)
				}
				return nil
			},
			Broadcast: func(c *stream.BroadcastContext, v string, _ func(string) error) error {
				n, _ := rules.Get(c, v)
				rules.Put(c, v, n+1)
				return nil
			},
		}, append(states, rules)...)
		return nil
	})
	var err error
	if l.program, err = plan.New(def, nil, job.Options{MaxParallelism: listMaxParallelism}); err != nil {
		t.Fatal(err)
	}
	return l
}

// silent is a source that is never opened.
type silent[T any] struct{ stream.Source[T] }

// task makes the task of one subtask, whose channel 0 carries additions and whose channel 1 the broadcast stream.
func (l *lister) task(t *testing.T, subtask, parallelism int, restore *Restore) *rig {
	t.Helper()
	r := newRig(t, 0)
	built, err := l.program.Build("op", stream.Env{
		Subtask: subtask, Parallelism: parallelism, MaxParallelism: listMaxParallelism, Restored: restore != nil,
		KeyGroups: job.KeyGroups(subtask, parallelism, listMaxParallelism),
	}, func(string) any { return nil })
	if err != nil {
		t.Fatal(err)
	}
	additions, marks := built.Inputs[0].(stream.Collector[addition]), built.Inputs[1].(stream.Collector[string])
	r.cfg.Chain = &Chain{Running: built.Running, Operators: []Operator{{built.Operators[0].ID, built.Operators[0].Operator}}}
	r.cfg.Chain.Deliver = func(channel int, b element.Batch) error {
		for _, v := range b.(batch) {
			if channel == 1 {
				if err := marks.Collect(1, v); err != nil {
					return err
				}
				continue
			}
			state, e, _ := strings.Cut(v, ":")
			if err := additions.Collect(1, addition{state, e}); err != nil {
				return err
			}
		}
		return nil
	}
	r.cfg.Attempt.Task = job.TaskID{Vertex: "op", Subtask: subtask}
	r.cfg.KeyGroups = job.KeyGroups(subtask, parallelism, listMaxParallelism)
	r.cfg.Restore = restore
	return r
}

// TestFault_B85_ListStatesOverRescales snapshots and restores an operator with several list states, one empty and one too large to be inline, a union
// state and a broadcast state, at a chain of parallelisms: what Flink got wrong with compressed state, whose offsets were those of the bytes before.
func TestFault_B85_ListStatesOverRescales(t *testing.T) {
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) { listChain(t, seed) })
	}
}

func listChain(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 85))
	l := newLister(t)
	want := map[string][]string{} // all elements there must be, by state
	marks := 0
	var stored *checkpoint.Metadata
	made := map[string][]byte{}
	for step := range 5 {
		parallelism := 1 + random.IntN(5)
		l.seen = make([]map[string][]string, parallelism)
		rigs := make([]*rig, parallelism)
		for i, restore := range l.restores(t, stored, parallelism) {
			rigs[i] = l.task(t, i, parallelism, restore)
			rigs[i].files.made = made
			rigs[i].cfg.Decoder = compression.NewDecoder()
			if seed%2 == 1 {
				rigs[i].cfg.InlineLimit, rigs[i].cfg.Compression, rigs[i].cfg.Encoder = 100, checkpoint.Zstd, compression.NewEncoder()
			}
			rigs[i].start()
			rigs[i].in.put(0, recordsOf("look:"), recordsOf("own:"))
		}
		synctest.Wait()
		if what := l.wrong(want, marks); what != "" {
			t.Fatalf("seed %d, step %d at parallelism %d: %s", seed, step, parallelism, what)
		}
		for i, r := range rigs {
			for n := range random.IntN(9) {
				state := []string{"a", "b", "large", "union"}[random.IntN(4)]
				e := fmt.Sprintf("%d/%d/%d", step, i, n)
				if state == "large" {
					e += string(big(job.DefaultInlineLimit/3, byte(n)))
				}
				want[state] = append(want[state], e)
				r.in.put(0, recordsOf(state+":"+e))
			}
			r.in.put(1, recordsOf("x", "y"))
		}
		marks++
		stored = l.snapshot(t, rigs, checkpoint.ID(step+1))
	}
}

// restores is what each task starts from; nil: from nothing.
func (l *lister) restores(t *testing.T, stored *checkpoint.Metadata, parallelism int) []*Restore {
	t.Helper()
	out := make([]*Restore, parallelism)
	if stored == nil {
		return out
	}
	g := *l.program.Graph
	g.Vertices = slices.Clone(g.Vertices)
	g.Vertex("op").Parallelism = parallelism
	assigned, err := checkpoint.Assign(stored, &g)
	if err != nil {
		t.Fatal(err)
	}
	for i := range out {
		out[i] = &Restore{Checkpoint: stored.ID, Dir: fmt.Sprintf("j/chk-%d", stored.ID), State: assigned[job.TaskID{Vertex: "op", Subtask: i}]}
	}
	return out
}

// snapshot takes a checkpoint of all tasks, stops them, and gives the metadata as it is read again.
func (l *lister) snapshot(t *testing.T, rigs []*rig, id checkpoint.ID) *checkpoint.Metadata {
	t.Helper()
	md := &checkpoint.Metadata{Job: "j", ID: id, Kind: checkpoint.Checkpoint}
	for _, v := range l.program.Graph.Vertices {
		state := checkpoint.VertexState{Vertex: v.ID, Parallelism: 1, MaxParallelism: v.MaxParallelism, Operators: v.Operators}
		if v.ID == "op" {
			state.Parallelism = len(rigs)
			for _, r := range rigs {
				r.both(barrierOf(int64(id)))
				r.j.take()
				state.Subtasks = append(state.Subtasks, r.master.acked[id])
				_ = r.stop()
			}
		} else {
			state.Subtasks = []checkpoint.SubtaskState{{}}
		}
		md.Vertices = append(md.Vertices, state)
	}
	file, err := checkpoint.EncodeMetadata(md)
	if err != nil {
		t.Fatal(err)
	}
	if md, err = checkpoint.DecodeMetadata(file); err != nil {
		t.Fatal(err)
	}
	return md
}

// wrong says what the operators do not have as they must; empty: nothing.
func (l *lister) wrong(want map[string][]string, marks int) string {
	for _, name := range []string{"a", "b", "empty", "large"} {
		var all []string
		least, most := 1<<30, 0
		for _, seen := range l.seen {
			all = append(all, seen[name]...)
			least, most = min(least, len(seen[name])), max(most, len(seen[name]))
		}
		if slices.Sort(all); !slices.Equal(all, slices.Sorted(slices.Values(want[name]))) {
			return fmt.Sprintf("state %s has %d elements, want %d, or others", name, len(all), len(want[name]))
		}
	}
	for i, seen := range l.seen {
		union := slices.Sorted(slices.Values(seen["union"]))
		if !slices.Equal(union, slices.Sorted(slices.Values(want["union"]))) {
			return fmt.Sprintf("subtask %d has of the union state %q, want all of %q", i, union, want["union"])
		}
		rules := fmt.Sprint(seen["rules"])
		if marks > 0 && rules != fmt.Sprintf("[x%d y%d]", marks, marks) {
			return fmt.Sprintf("subtask %d has the broadcast state %s after %d marks", i, rules, marks)
		}
	}
	return ""
}

func TestRestore_ListStateWithoutAnOperatorThatHasIt_IsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.cfg.Restore = &Restore{Checkpoint: 1, State: checkpoint.Restore{Operators: []checkpoint.OperatorRestore{{
			Operator: "a", Lists: []checkpoint.List{{Schema: checkpoint.StateSchema{Name: "seen"}, Mode: job.Split}},
		}}}}
		r.start()
		if err := r.wait(); err == nil || !stream.IsPermanent(err) || !strings.Contains(err.Error(), `operator a has no named list states any more, the checkpoint has "seen"`) {
			t.Error(err)
		}
	})
}
