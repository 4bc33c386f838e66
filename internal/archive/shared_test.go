package archive_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/archive"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/retention"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/storage/storagetest"
)

// counted is a storage that counts calls by their kinds.
type counted struct {
	*storagetest.Mem
	calls map[storagetest.Kind]int
}

func (c *counted) CreateFile(ctx context.Context, name string, data []byte) error {
	return storage.Publish(ctx, c.Mem, name, data)
}

func (c *counted) DiscardCheckpoint(ctx context.Context, dir string) error {
	return storage.DiscardCheckpoint(ctx, c.Mem, dir)
}

func (c *counted) Files(ctx context.Context, dir string) ([]string, error) {
	infos, err := c.List(ctx, dir)
	var out []string
	for _, i := range infos {
		out = append(out, i.Path)
	}
	return out, err
}

// newArchive has every directory in one storage.
func newArchive(t *testing.T) (*archive.Archive, *counted) {
	s := &counted{Mem: storagetest.NewMem(), calls: map[storagetest.Kind]int{}}
	s.SetFaults(func(op storagetest.Op) storagetest.Fault {
		s.calls[op.Kind]++
		return storagetest.Fault{}
	})
	open := func(context.Context, string, bool) (archive.Storage, error) {
		return nil, errors.New("nothing else is there")
	}
	return &archive.Archive{Root: s, At: "/cp", Open: open}, s
}

// put writes a checkpoint of a job whose one task refers to shared files, which it makes if they are not there.
func put(t *testing.T, a *archive.Archive, s *counted, j job.ID, id checkpoint.ID, files ...string) string {
	t.Helper()
	k := &checkpoint.Keyed{Backend: "b", Range: job.KeyGroups(0, 1, 8)}
	for _, name := range files {
		k.Files = append(k.Files, checkpoint.SharedFile{Name: name, Path: checkpoint.SharedPath(name), Size: int64(len(name)), CRC32C: checkpoint.Checksum([]byte(name))})
		if err := s.WriteFile(t.Context(), checkpoint.SharedDir(j)+"/"+name, []byte(name), storage.Replace); err != nil {
			t.Fatal(err)
		}
	}
	md := &checkpoint.Metadata{Job: j, ID: id, Kind: checkpoint.Checkpoint, Vertices: []checkpoint.VertexState{{
		Vertex: "v", Parallelism: 1, MaxParallelism: 8, Operators: []job.Operator{{ID: "o"}},
		Subtasks: []checkpoint.SubtaskState{{Operators: []checkpoint.OperatorState{{Operator: "o", Keyed: k}}}},
	}}}
	if err := a.Write(t.Context(), checkpoint.Dir(j, id), md); err != nil {
		t.Fatal(err)
	}
	return checkpoint.Dir(j, id)
}

func file(id, n int) string { return fmt.Sprintf("v-0-a1-c%d-n%d.shared", id, n) }

func (c *counted) names(t *testing.T) []string {
	t.Helper()
	names, err := c.Files(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A checkpoint that was claimed goes with the files that no other checkpoint of its job refers to; one that cannot be read keeps them all.
func TestFault_B72_ClaimedCheckpoint_GoesWithoutTheFilesOfOthers(t *testing.T) {
	a, s := newArchive(t)
	put(t, a, s, "old", 4, file(3, 1), file(4, 1))
	claimed := put(t, a, s, "old", 5, file(3, 1), file(4, 1), file(5, 1))
	if err := a.DiscardClaimed(t.Context(), claimed); err != nil {
		t.Fatal(err)
	}
	want := []string{"old/chk-4/_metadata", "old/shared/" + file(3, 1), "old/shared/" + file(4, 1)}
	if diff := cmp.Diff(want, s.names(t)); diff != "" {
		t.Error(diff)
	}
	if _, err := a.Read(t.Context(), "old/chk-4"); err != nil {
		t.Errorf("what is left cannot be read: %v", err)
	}
	put(t, a, s, "old", 6, file(6, 1))
	if err := s.WriteFile(t.Context(), "old/chk-4/_metadata", []byte("damaged"), storage.Replace); err != nil {
		t.Fatal(err)
	}
	if err := a.DiscardClaimed(t.Context(), "old/chk-6"); err != nil || !slices.Contains(s.names(t), "old/shared/"+file(6, 1)) {
		t.Errorf("%v; files %v: the one that cannot be read may refer to all", err, s.names(t))
	}
}

// Files that checkpoints share are deleted one call each, without a look at directories.
func TestFault_B79_SharedFiles_AreDeletedWithoutAListing(t *testing.T) {
	a, s := newArchive(t)
	var names []string
	for n := range 20 {
		names = append(names, file(1, n))
	}
	put(t, a, s, "j", 1, names...)
	clear(s.calls)
	if err := a.Discard(t.Context(), "j/chk-1"); err != nil {
		t.Fatal(err)
	}
	if err := a.RemoveShared(t.Context(), "j", names); err != nil {
		t.Fatal(err)
	}
	want := map[storagetest.Kind]int{storagetest.Remove: 1 + len(names), storagetest.RemoveAll: 1}
	if diff := cmp.Diff(want, s.calls); diff != "" || len(s.names(t)) > 0 {
		t.Errorf("calls: %s; left %v", diff, s.names(t))
	}
}

func TestRead_SharedFiles_MustBeThere(t *testing.T) {
	a, s := newArchive(t)
	dir := put(t, a, s, "j", 7, file(6, 1), file(7, 1))
	clear(s.calls)
	if _, err := a.Read(t.Context(), dir); err != nil {
		t.Error(err)
	}
	if s.calls[storagetest.List] != 2 || s.calls[storagetest.Stat] > 0 {
		t.Errorf("calls %v, want one listing for each directory", s.calls)
	}
	if err := s.Remove(t.Context(), "j/shared/"+file(6, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Read(t.Context(), dir); err == nil || !strings.Contains(err.Error(), file(6, 1)+" is missing") {
		t.Errorf("a file is missing: %v", err)
	}
}

func TestDispose_SharedFiles_StayWhileTheJobRuns(t *testing.T) {
	a, s := newArchive(t)
	put(t, a, s, "j", 1, file(1, 1))
	if err := a.Dispose(t.Context(), "j/chk-1", false); err != nil || len(s.names(t)) != 1 {
		t.Errorf("%v %v", err, s.names(t))
	}
	put(t, a, s, "j", 2, file(2, 1))
	if err := a.Dispose(t.Context(), "j/chk-2", true); err != nil || len(s.names(t)) != 1 {
		t.Errorf("%v %v", err, s.names(t))
	}
	if err := a.Dispose(t.Context(), "j", true); !errors.Is(err, retention.ErrNotOurs) {
		t.Errorf("the directory of a job: %v", err)
	}
}

func TestCleanUp_KeepsWhatKeptCheckpointsReferTo(t *testing.T) {
	for _, keep := range []bool{true, false} {
		a, s := newArchive(t)
		put(t, a, s, "j", 5, file(3, 1), file(5, 1))
		for _, late := range []string{"j/shared/" + file(4, 9), "j/shared/" + file(6, 2), "j/chk-6/v-0-a1-c6.state", "other/shared/" + file(1, 1)} {
			if err := s.WriteFile(t.Context(), late, []byte("x"), storage.Replace); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.CleanUp(t.Context(), "j", keep); err != nil {
			t.Fatal(err)
		}
		want := []string{"other/shared/" + file(1, 1)}
		if keep {
			want = append([]string{"j/chk-5/_metadata", "j/shared/" + file(3, 1), "j/shared/" + file(5, 1)}, want...)
		}
		if diff := cmp.Diff(want, s.names(t)); diff != "" {
			t.Errorf("keep %t: %s", keep, diff)
		}
	}
}
