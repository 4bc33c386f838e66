package inspect

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/storage"
)

func sharedName(id, n int) string { return fmt.Sprintf("sums-0-a1-c%d-n%d.shared", id, n) }

// storeShared writes a checkpoint of a job whose keyed state is in shared files, which are made if they are not there; dir is that of the job.
func storeShared(t *testing.T, dir string, id checkpoint.ID, names ...string) string {
	t.Helper()
	md, files := sample()
	md.ID = id
	k := &checkpoint.Keyed{Range: job.KeyGroups(0, 2, 4), Backend: "pebble", States: md.Vertices[1].Subtasks[0].Operators[0].Keyed.States}
	for _, name := range names {
		data := []byte("content of " + name)
		k.Files = append(k.Files, checkpoint.SharedFile{Name: name, Path: checkpoint.SharedPath(name), Size: int64(len(data)), CRC32C: checkpoint.Checksum(data)})
		if err := os.MkdirAll(filepath.Join(dir, "shared"), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "shared", name), data)
	}
	md.Vertices[1].Subtasks[0].Operators[0].Keyed = k
	at := filepath.Join(dir, fmt.Sprintf("chk-%d", id))
	store(t, at, md, files)
	return at
}

func TestVerify_SharedFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "2f6c")
	at := storeShared(t, dir, 7, sharedName(5, 1), sharedName(7, 2))
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	at = filepath.Join(moved, filepath.Base(at))
	verify := func() string {
		s, err := Read(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		v, err := s.Verify(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(v.Damage) == 0 {
			return ""
		}
		return v.Damage[0].String()
	}
	if got := verify(); got != "" {
		t.Errorf("moved with its job's directory: %s", got)
	}
	t.Chdir(at)
	s, err := Read(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	if v, err := s.Verify(t.Context()); err != nil || len(v.Damage) > 0 {
		t.Errorf("by a relative path: %v %v", v.Damage, err)
	}
	file := filepath.Join(moved, "shared", sharedName(5, 1))
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{"changed": {[]byte(strings.Repeat("x", len(whole))), "is damaged"}, "short": {whole[1:], "recorded were"}, "missing": {nil, "is missing"}} {
		write(t, file, c.data)
		if c.data == nil {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
		if got := verify(); !strings.Contains(got, c.want) || !strings.Contains(got, "operator sums subtask 0") {
			t.Errorf("%s: %q", name, got)
		}
		if _, _, err := Choose(t.Context(), at, false); name != "changed" && err == nil {
			t.Errorf("%s: it would be started from", name)
		}
		list, err := List(t.Context(), moved)
		if err != nil || len(list) != 1 || name != "changed" && list[0].Problem == nil {
			t.Errorf("%s: list: %+v %v", name, list, err)
		}
	}
}

func TestDispose_KeepsSharedFilesOfOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "2f6c")
	at := storeShared(t, dir, 6, sharedName(5, 1), sharedName(6, 1))
	other := storeShared(t, dir, 7, sharedName(5, 1), sharedName(7, 1))
	if err := Dispose(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Join(dir, "shared"))
	if err != nil || len(left) != 2 {
		t.Errorf("left: %v %v", left, err)
	}
	s, err := Read(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := s.Verify(t.Context()); err != nil || len(v.Damage) > 0 {
		t.Errorf("the other one: %v %v", v.Damage, err)
	}
}

func TestSweep_SharedFiles(t *testing.T) {
	root := t.TempDir()
	storeShared(t, filepath.Join(root, "2f6c"), 7, sharedName(5, 1), sharedName(7, 1))
	write(t, filepath.Join(root, "2f6c", "shared", sharedName(6, 9)), []byte("of a checkpoint that was aborted"))
	files, err := storage.NewLocal(root)
	if err != nil {
		t.Fatal(err)
	}
	removed, err := Sweep(t.Context(), files, Sweeping{Now: time.Now().Add(time.Hour)})
	if err != nil || len(removed) != 1 || removed[0] != "2f6c/shared/"+sharedName(6, 9) {
		t.Errorf("removed %v, %v", removed, err)
	}
}

// moving is a storage in which a job completes a checkpoint, and deletes the one before it, while it is looked at.
type moving struct {
	storage.Storage
	lists int
	move  func()
}

func (m *moving) List(ctx context.Context, dir string) ([]storage.Info, error) {
	infos, err := m.Storage.List(ctx, dir)
	if m.lists++; m.lists == 1 {
		m.move()
	}
	return infos, err
}

// A sweep that knows no jobs must not take a file for an orphan that goes from one checkpoint to the next behind its back.
func TestSweep_SharedFiles_OfAJobThatItDoesNotKnow(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "2f6c")
	old := storeShared(t, dir, 7, sharedName(5, 1))
	local, err := storage.NewLocal(root)
	if err != nil {
		t.Fatal(err)
	}
	files := &moving{Storage: local, move: func() {
		storeShared(t, dir, 8, sharedName(5, 1))
		if err := os.RemoveAll(old); err != nil {
			t.Error(err)
		}
	}}
	removed, err := Sweep(t.Context(), files, Sweeping{Now: time.Now().Add(time.Hour)})
	if err != nil || strings.Contains(fmt.Sprint(removed), "shared/") {
		t.Errorf("removed %v, %v", removed, err)
	}
	if removed, err = Sweep(t.Context(), files, Sweeping{Now: time.Now().Add(time.Hour)}); err != nil || len(removed) > 0 {
		t.Errorf("removed %v, %v", removed, err)
	}
}
