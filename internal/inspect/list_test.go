package inspect

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/retention"
	"github.com/weirstream/weir/internal/storage"
)

func TestList_FindsAllAndSaysWhichAreWhole(t *testing.T) {
	dir := t.TempDir()
	md, files := sample()
	for _, name := range []string{"j/chk-7", "savepoint-2f6c-01", "savepoint-2f6c-02", "savepoint-2f6c-03", "savepoint-2f6c-04"} {
		store(t, filepath.Join(dir, name), md, files)
	}
	remove(t, filepath.Join(dir, "savepoint-2f6c-02", "sums-0-a1-c7.state"))
	write(t, filepath.Join(dir, "savepoint-2f6c-03", "sums-1-a1-c7.state"), []byte("keyed"))
	write(t, filepath.Join(dir, "savepoint-2f6c-04", checkpoint.MetadataFile), nil)
	write(t, filepath.Join(dir, "notes.txt"), nil)
	list, err := List(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []struct{ name, problem string }{
		{"j/chk-7", ""},
		{"savepoint-2f6c-01", ""},
		{"savepoint-2f6c-02", "state file sums-0-a1-c7.state is missing"},
		{"savepoint-2f6c-03", "state file sums-1-a1-c7.state is truncated: it has 5 of 9 bytes"},
		{"savepoint-2f6c-04", "metadata is truncated"},
	}
	if len(list) != len(want) {
		t.Fatalf("%d were found, want %d", len(list), len(want))
	}
	for i, l := range list {
		whole := want[i].problem == ""
		if l.Location != dir+"/"+want[i].name || (l.Problem == nil) != whole || !whole && !strings.Contains(l.Problem.Error(), want[i].problem) {
			t.Errorf("%s: %v, want %s", l.Location, l.Problem, want[i].problem)
		}
	}
	encoded, err := checkpoint.EncodeMetadata(md)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := list[0].Bytes, int64(len(encoded)+12+9); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}

func TestDispose_DeletesCheckpointsOnly(t *testing.T) {
	dir := t.TempDir()
	md, files := sample()
	for _, name := range []string{"saved", "mixed"} {
		store(t, filepath.Join(dir, name), md, files)
	}
	write(t, filepath.Join(dir, "mixed", "notes.txt"), nil)
	for _, name := range []string{"mixed", "", "."} {
		if err := Dispose(t.Context(), filepath.Join(dir, name)); !errors.Is(err, retention.ErrNotOurs) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := Dispose(t.Context(), filepath.Join(dir, "none")); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if err := Dispose(t.Context(), filepath.Join(dir, "saved", checkpoint.MetadataFile)); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "mixed" {
		t.Errorf("left are %v, %v", entries, err)
	}
}

// A savepoint is whole in its directory: it can be moved, and read where it is then.
func TestVerify_OfAMovedSavepoint_IsWhole(t *testing.T) {
	dir := t.TempDir()
	md, files := sample()
	md.Kind = checkpoint.Savepoint
	store(t, filepath.Join(dir, "before"), md, files)
	if err := os.Rename(filepath.Join(dir, "before"), filepath.Join(dir, "after")); err != nil {
		t.Fatal(err)
	}
	s, err := Read(t.Context(), filepath.Join(dir, "after"))
	if err != nil {
		t.Fatal(err)
	}
	if v, err := s.Verify(t.Context()); err != nil || len(v.Damage) > 0 {
		t.Errorf("%v, %v", v.Damage, err)
	}
}
