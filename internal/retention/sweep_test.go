package retention

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

const hour = time.Hour

func TestOrphans(t *testing.T) {
	md := sample() // of job 2f6c, id 7; refers to one file
	const live = "live"
	facts := SweepFacts{
		SafeAge: hour, Live: map[job.ID]Activity{live: {Lowest: 5}},
		Metadata: map[string]*checkpoint.Metadata{"2f6c/chk-7": md, "2f6c/chk-8": nil, "savepoint-2f6c-01": md},
	}
	keep := []StoredItem{
		{"2f6c/chk-7/_metadata", StoredFile, 9 * hour},
		{"2f6c/chk-7/per-origin-0-a1-c7.state", StoredFile, 9 * hour}, // is referred to
		{"savepoint-2f6c-01/per-origin-0-a1-c7.state", StoredFile, 9 * hour},
		{"2f6c/chk-8/_metadata", StoredFile, 9 * hour}, // cannot be read
		{"2f6c/chk-8/per-origin-0-a1-c8.state", StoredFile, 9 * hour},
		{"2f6c/chk-6/per-origin-0-a1-c6.state", StoredFile, hour - 1}, // is too young
		{"live/chk-5/a-0-a1-c5.state", StoredFile, 9 * hour},          // may be pending
		{"live/chk-6/.tmp~1", UnfinishedFile, 9 * hour},
		{"live/chk-6", EmptyDir, 9 * hour},
		{"savepoint-live-07/a-0-a1-c5.state", StoredFile, 9 * hour},
		{"2f6c/chk-6/notes.txt", StoredFile, 9 * hour}, // is not ours
		{"2f6c/a-0-a1-c6.state", StoredFile, 9 * hour},
		{"other/a-0-a1-c6.state", StoredFile, 9 * hour},
		{"other", EmptyDir, 9 * hour},
	}
	drop := []StoredItem{
		{".tmp~3", UnfinishedFile, hour},
		{"2f6c/chk-5", EmptyDir, hour},
		{"2f6c/chk-6/per-origin-0-a1-c6.state", StoredFile, hour},
		{"2f6c/chk-7/.tmp~2", UnfinishedFile, hour},
		{"2f6c/chk-7/per-origin-0-a2-c7.state", StoredFile, hour}, // of a late attempt
		{"live/chk-4/a-0-a1-c4.state", StoredFile, hour},
		{"savepoint-2f6c-02/per-origin-0-a1-c9.state", StoredFile, hour},
	}
	var want []string
	for _, item := range drop {
		want = append(want, item.Path)
	}
	facts.Items = append(slices.Clone(keep), drop...)
	// The same path is once too young and once not: only one can be there at a time.
	facts.Items = slices.DeleteFunc(facts.Items, func(i StoredItem) bool { return i.Age == hour-1 })
	if diff := cmp.Diff(want, Orphans(facts)); diff != "" {
		t.Error(diff)
	}
	facts.Items = keep
	if got := Orphans(facts); len(got) != 0 {
		t.Errorf("%v would be deleted", got)
	}
}

// world is a checkpoint directory of random content, with what a dumb observer knows of each file.
type world struct {
	facts  SweepFacts
	sacred map[string]string // path -> why it must stay
}

func randomWorld(r *rand.Rand) world {
	w := world{facts: SweepFacts{Metadata: map[string]*checkpoint.Metadata{}, Live: map[job.ID]Activity{}, SafeAge: time.Duration(r.IntN(3)) * hour}, sacred: map[string]string{}}
	for n := range 3 {
		j := job.ID(fmt.Sprintf("job%d", n))
		lowest := checkpoint.ID(1 + r.IntN(6))
		if r.IntN(2) == 0 {
			w.facts.Live[j] = Activity{Lowest: lowest}
		}
		for id := checkpoint.ID(1); id < 7; id++ {
			w.addCheckpoint(r, j, id)
		}
	}
	return w
}

func (w *world) addCheckpoint(r *rand.Rand, j job.ID, id checkpoint.ID) {
	dir := checkpoint.Dir(j, id)
	activity, live := w.facts.Live[j]
	lowest := activity.Lowest
	completed, readable := r.IntN(2) == 0, r.IntN(4) > 0
	md := &checkpoint.Metadata{Job: j, ID: id, Vertices: []checkpoint.VertexState{{Vertex: "v", Subtasks: []checkpoint.SubtaskState{{}}}}}
	for subtask := range r.IntN(4) {
		name := checkpoint.StateFile(job.AttemptID{Task: job.TaskID{Vertex: "v", Subtask: subtask}, Attempt: 1 + r.IntN(2)}, id)
		if r.IntN(2) == 0 {
			name = checkpoint.SegmentFile("host:6122", "1f", int64(subtask), id)
		}
		item := StoredItem{path.Join(dir, name), StoredFile, time.Duration(r.IntN(4)) * hour}
		w.facts.Items = append(w.facts.Items, item)
		refer := r.IntN(2) == 0
		if refer {
			md.Vertices[0].Subtasks[0].Operators = append(md.Vertices[0].Subtasks[0].Operators, checkpoint.OperatorState{
				Operator: fmt.Sprint(subtask), Items: &checkpoint.Items{Handle: checkpoint.FileHandle(name, 0, []byte("x"))},
			})
		}
		switch {
		case live && id >= lowest:
			w.sacred[item.Path] = "may be pending"
		case completed && !readable:
			w.sacred[item.Path] = "nobody knows"
		case completed && refer:
			w.sacred[item.Path] = "is referred to"
		case item.Age < w.facts.SafeAge:
			w.sacred[item.Path] = "is young"
		}
	}
	if completed {
		w.facts.Items = append(w.facts.Items, StoredItem{dir + "/" + checkpoint.MetadataFile, StoredFile, 9 * hour})
		w.sacred[dir+"/"+checkpoint.MetadataFile] = "is metadata"
		w.facts.Metadata[dir] = nil
		if readable {
			w.facts.Metadata[dir] = md
		}
	}
}

// What is deleted is exactly what a dumb observer has no reason to keep, and a second sweep finds nothing.
func TestOrphans_Property(t *testing.T) {
	deleted := 0
	for seed := range uint64(2000) {
		w := randomWorld(rand.New(rand.NewPCG(seed, 7)))
		got := Orphans(w.facts)
		deleted += len(got)
		gone := map[string]bool{}
		for _, name := range got {
			gone[name] = true
			if why := w.sacred[name]; why != "" {
				t.Fatalf("seed %d: %s would be deleted: it %s", seed, name, why)
			}
		}
		for _, item := range w.facts.Items {
			if !gone[item.Path] && w.sacred[item.Path] == "" {
				t.Fatalf("seed %d: %s stays for no reason", seed, item.Path)
			}
		}
		w.facts.Items = slices.DeleteFunc(w.facts.Items, func(i StoredItem) bool { return gone[i.Path] })
		if again := Orphans(w.facts); len(again) > 0 {
			t.Fatalf("seed %d: a second sweep finds %v", seed, again)
		}
	}
	if deleted == 0 {
		t.Error("nothing was ever deleted")
	}
}
