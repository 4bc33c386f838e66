package storage

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLeftovers_AreWhatACrashLeavesBehind(t *testing.T) {
	dir := t.TempDir()
	l, err := NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.WriteFile(t.Context(), "j/chk-1/whole", []byte("x"), Replace); err != nil {
		t.Fatal(err)
	}
	if err := l.MkdirAll(t.Context(), "j/chk-2"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Create(t.Context(), "j/chk-3/never"); err != nil { // as if the process were killed now
		t.Fatal(err)
	}
	found, err := l.Leftovers(t.Context())
	if err != nil || len(found) != 2 || found[0].Path != "j/chk-2" || !found[0].Dir || filepath.Dir(found[1].Path) != "j/chk-3" || found[1].Dir {
		t.Fatalf("%+v, %v", found, err)
	}
	if err := l.WriteFile(t.Context(), "j/chk-2/late", nil, Replace); err != nil {
		t.Fatal(err)
	}
	for _, o := range found {
		for range 2 { // the second time it is gone
			if err := l.RemoveLeftover(t.Context(), o); err != nil {
				t.Error(err)
			}
		}
	}
	if err := l.RemoveLeftover(t.Context(), Leftover{Path: "../x"}); err == nil {
		t.Error("something beside the root may be removed")
	}
	infos, err := l.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, info := range infos {
		names = append(names, info.Path)
	}
	if diff := cmp.Diff([]string{"j/chk-1/whole", "j/chk-2/late"}, names); diff != "" {
		t.Error(diff)
	}
	// A directory that was taken away is made again by the next writer, though this process had made it before.
	if err := l.RemoveLeftover(t.Context(), Leftover{Path: "j/chk-3", Dir: true}); err != nil {
		t.Error(err)
	}
	if err := l.WriteFile(t.Context(), "j/chk-3/again", nil, Replace); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "j", "chk-3", "again")); err != nil {
		t.Error(err)
	}
}
