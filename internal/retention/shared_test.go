package retention

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

func shared(id int) string { return fmt.Sprintf("v-0-a1-c%d-n1.shared", id) }

func TestOrphans_SharedFiles(t *testing.T) {
	const dir = "2f6c/shared/"
	items := func(ids ...int) []StoredItem {
		var out []StoredItem
		for _, id := range ids {
			out = append(out, StoredItem{dir + shared(id), StoredFile, 9 * time.Hour})
		}
		return append(out,
			StoredItem{dir + "notes.txt", StoredFile, 9 * time.Hour},
			StoredItem{dir + shared(1) + "x", StoredFile, 9 * time.Hour},
			StoredItem{"moved/" + dir + shared(1), StoredFile, 9 * time.Hour}, // that of another checkpoint directory
			StoredItem{dir + shared(2), StoredFile, time.Minute})
	}
	orphans := func(ids ...int) []string {
		var out []string
		for _, id := range ids {
			out = append(out, dir+shared(id))
		}
		return out
	}
	md := sample(shared(3), shared(7))
	for _, c := range []struct {
		name string
		live map[job.ID]Activity
		md   map[string]*checkpoint.Metadata
		want []string
	}{
		{"of a job that has ended", nil, map[string]*checkpoint.Metadata{"2f6c/chk-7": md}, orphans(1, 5, 9)},
		{"of another job's metadata", nil, map[string]*checkpoint.Metadata{"other/chk-7": md}, orphans(1, 3, 5, 7, 9)},
		{"of nothing", nil, nil, orphans(1, 3, 5, 7, 9)},
		{"some metadata cannot be read", nil, map[string]*checkpoint.Metadata{"2f6c/chk-7": md, "2f6c/chk-6": nil}, nil},
		{"metadata of another job cannot be read", nil, map[string]*checkpoint.Metadata{"2f6c/chk-7": md, "other/chk-6": nil}, orphans(1, 5, 9)},
		{"of a job that runs", map[job.ID]Activity{"2f6c": {Lowest: 8, Bases: []checkpoint.ID{7}}}, map[string]*checkpoint.Metadata{"2f6c/chk-7": md}, orphans(1, 5)},
		{"of a job that runs, without a base", map[job.ID]Activity{"2f6c": {Lowest: 8}}, nil, orphans(1, 3, 5, 7)},
		// Checkpoint 8 has completed and taken the place of 7 while the sweep looked: it may refer to anything that 7 referred to.
		{"its base is gone meanwhile", map[job.ID]Activity{"2f6c": {Lowest: 8, Bases: []checkpoint.ID{7}}}, nil, nil},
		{"nothing is known of it", map[job.ID]Activity{"2f6c": {}}, map[string]*checkpoint.Metadata{"2f6c/chk-7": md}, nil},
		{"another job runs", map[job.ID]Activity{"x": {}}, map[string]*checkpoint.Metadata{"2f6c/chk-7": md}, orphans(1, 5, 9)},
	} {
		f := SweepFacts{Items: items(1, 3, 5, 7, 9), Metadata: c.md, Live: c.live, SafeAge: time.Hour}
		if diff := cmp.Diff(c.want, Orphans(f)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestOrphans_LeftoversInTheSharedDirectory(t *testing.T) {
	items := []StoredItem{{"j/shared", EmptyDir, time.Hour}, {"j/shared/.tmp~1", UnfinishedFile, time.Hour}}
	if diff := cmp.Diff([]string{"j/shared", "j/shared/.tmp~1"}, Orphans(SweepFacts{Items: items})); diff != "" {
		t.Error(diff)
	}
	if got := Orphans(SweepFacts{Items: items, Live: map[job.ID]Activity{"j": {Lowest: 9}}}); len(got) > 0 {
		t.Errorf("%v of a job that runs", got)
	}
}

// The checkpoint that a file was uploaded for may come back after a crash, if nobody is sure that it is gone.
func TestMustBeGone_OfASharedFile(t *testing.T) {
	f := SweepFacts{Metadata: map[string]*checkpoint.Metadata{"2f6c/chk-7": sample()}}
	for name, want := range map[string]string{
		"2f6c/shared/" + shared(5): "2f6c/chk-5/_metadata", "2f6c/shared/" + shared(7): "",
		"savepoint-2f6c-1/" + shared(5): "savepoint-2f6c-1/_metadata", "2f6c/shared/x": "",
	} {
		if got := f.MustBeGone(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestSharedLeft(t *testing.T) {
	files := []string{
		"2f6c/chk-7/_metadata", "2f6c/shared/" + shared(3), "2f6c/shared/" + shared(4), "2f6c/shared/" + shared(7), "2f6c/shared/" + shared(8), "2f6c/shared/" + shared(9),
		"2f6c/shared/notes.txt", "x/shared/" + shared(1),
	}
	names, settle := SharedLeft("2f6c", files, []*checkpoint.Metadata{sample(shared(3))}, 8)
	if diff := cmp.Diff([]string{shared(4), shared(7), shared(8)}, names); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]checkpoint.ID{4, 8}, settle); diff != "" { // 7 is there, and does not refer to the file
		t.Error(diff)
	}
	if names, settle := SharedLeft("2f6c", files, []*checkpoint.Metadata{sample(shared(3)), nil}, 8); names != nil || settle != nil {
		t.Errorf("one cannot be read, and %v %v would be deleted", names, settle)
	}
}

func TestUnshared(t *testing.T) {
	md := sample(shared(1), shared(2), shared(3))
	if diff := cmp.Diff([]string{shared(2)}, Unshared(md, []*checkpoint.Metadata{sample(shared(1)), sample(shared(3), shared(9))})); diff != "" {
		t.Error(diff)
	}
	if got := Unshared(md, []*checkpoint.Metadata{nil}); got != nil {
		t.Errorf("%v would be deleted", got)
	}
}
