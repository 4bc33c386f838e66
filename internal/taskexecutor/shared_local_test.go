package taskexecutor

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/localstate"
	"github.com/weirstream/weir/internal/storage/storagetest"
)

// copiesIn gives a rig local copies in a directory, which is that of a process of its own.
func (r *sharedRig) copiesIn(dir string) *sharedRig {
	r.files.local = localstate.New(zap.NewNop(), func() (string, error) { return dir, nil })
	return r
}

// copyNames are the copies in a directory, by checkpoint.
func copyNames(t *testing.T, dir string) map[string]int {
	t.Helper()
	out := map[string]int{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out[filepath.Base(filepath.Dir(path))]++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Each checkpoint has copies of all files that it refers to, also of those that its base has uploaded, so that those of the base can go.
func TestLocal_SharedFiles_AreKeptForEachCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, dir := storagetest.NewMem(), t.TempDir()
		r := newSharedRig(t, mem, 1, nil).copiesIn(dir)
		r.hold(5)
		r.start()
		r.trigger(1, 0, job.FormatNone)
		r.op.holds["000009.sst"] = "new"
		delete(r.op.holds, "000000.sst")
		r.trigger(2, 1, job.FormatNone)
		r.trigger(3, 2, job.FormatNative) // a savepoint has none
		if diff := cmp.Diff(map[string]int{"chk-1": 5, "chk-2": 5}, copyNames(t, dir)); diff != "" {
			t.Error(diff)
		}
		r.files.local.Completed(sharedJob, 2)
		_ = r.stop()

		next := newSharedRig(t, mem, 2, r.restoreOf(2)).copiesIn(dir).start()
		if diff := cmp.Diff(r.op.holds, next.op.holds); diff != "" {
			t.Errorf("restored: %s", diff)
		}
		if c := next.files.restored; c.storage.Load() != 0 || c.local.Load() != 4*100+3 || c.damaged.Load() != 0 {
			t.Errorf("%d bytes from the storage, %d from copies, %d damaged", c.storage.Load(), c.local.Load(), c.damaged.Load())
		}
		_ = next.stop()
		if diff := cmp.Diff(map[string]int{"chk-2": 5}, copyNames(t, dir)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestLocal_SharedFilesThatAreNotWhole_AreFetchedFromTheStorage(t *testing.T) {
	for name, content := range map[string]string{"changed": strings.Repeat("x", 100), "cut": "0"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, dir := storagetest.NewMem(), t.TempDir()
				r := newSharedRig(t, mem, 1, nil).copiesIn(dir)
				r.hold(3)
				r.start()
				r.trigger(1, 0, job.FormatNone)
				_ = r.stop()
				damaged, ok := r.files.local.Path(sharedJob, 1, r.keyed(1).Files[0].Path)
				if !ok {
					t.Fatal("there is no copy")
				}
				if err := os.Remove(damaged); err != nil { // it is the backend's own file
					t.Fatal(err)
				}
				if err := os.WriteFile(damaged, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
				next := newSharedRig(t, mem, 2, r.restoreOf(1)).copiesIn(dir).start()
				if diff := cmp.Diff(r.op.holds, next.op.holds); diff != "" {
					t.Errorf("restored: %s", diff)
				}
				if c := next.files.restored; c.storage.Load() != 100 || c.local.Load() != 200 || c.damaged.Load() != 1 {
					t.Errorf("%d bytes from the storage, %d from copies, %d damaged", c.storage.Load(), c.local.Load(), c.damaged.Load())
				}
				if diff := cmp.Diff(map[string]int{"chk-1": 2}, copyNames(t, dir)); diff != "" {
					t.Error(diff)
				}
				_ = next.stop()
			})
		})
	}
}

// What a snapshot has uploaded in vain has no copies either.
func TestLocal_UploadsOfASnapshotThatCameTooLate_HaveNoCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, dir := storagetest.NewMem(), t.TempDir()
		r := newSharedRig(t, mem, 1, nil).copiesIn(dir)
		r.verdict = checkpoint.TooLate
		r.hold(3)
		r.start()
		r.trigger(1, 0, job.FormatNone)
		_ = r.stop()
		if got := copyNames(t, dir); len(got) > 0 || len(there(t, mem)) > 0 {
			t.Errorf("copies %v, files %v", got, there(t, mem))
		}
	})
}
