package file

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirstream/weir/stream"
)

// holder is the hook of a job, as its job master has it.
func holder(t *testing.T, dir, job string, epoch uint64) *lease {
	t.Helper()
	h, err := Lease(dir)(stream.HookEnv{Job: "flights", JobID: job, LeaderEpoch: epoch})
	if err != nil {
		t.Fatal(err)
	}
	return h.(*lease)
}

func token(t *testing.T, l *lease) []byte {
	t.Helper()
	state, err := l.Trigger(t.Context(), 1, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func refused(t *testing.T, err error, want ...string) {
	t.Helper()
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%v, want %s", err, w)
		}
	}
}

func fine(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func onlyLease(t *testing.T, dir string, want int) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != want {
		t.Errorf("%d entries %v, want %d (%v)", len(entries), entries, want, err)
	}
}

func TestLease_OneJobAtATime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	a, b := holder(t, dir, "job-a", 1), holder(t, dir, "job-b", 1)
	fine(t, a.Reset(t.Context()))
	refused(t, b.Reset(t.Context()), "leased to job job-a (flights) since", "cancel it", "delete "+filepath.Join(dir, ".weir-lease"))
	refused(t, b.Restore(t.Context(), 3, nil), "leased to job job-a")
	refused(t, b.Restore(t.Context(), 3, []byte("an old token")), "leased to job job-a")
	fine(t, b.JobEnded(t.Context())) // it had nothing to give up
	if len(token(t, a)) < 16 {
		t.Error("the token can be guessed")
	}
	onlyLease(t, dir, 1)
	fine(t, a.JobEnded(t.Context()))
	onlyLease(t, dir, 0)
	fine(t, a.JobEnded(t.Context()))
	fine(t, b.Reset(t.Context()))
	_, err := a.Trigger(t.Context(), 2, time.Now())
	refused(t, err, "the lease of the directory is lost", "leased to job job-b")
}

func TestLease_TheSameJobTakesItBack(t *testing.T) {
	dir := t.TempDir()
	first := holder(t, dir, "job-a", 1)
	fine(t, first.Reset(t.Context()))
	state := token(t, first)
	fine(t, first.Restore(t.Context(), 1, state)) // a restart
	next := holder(t, dir, "job-a", 2)            // another job master
	fine(t, next.Restore(t.Context(), 1, state))
	if string(token(t, next)) != string(state) {
		t.Error("the token of a job has changed: its checkpoints could not be started from")
	}
	refused(t, first.Restore(t.Context(), 1, state), "leader epoch 2 holds the lease of the job, this is 1")
	again := holder(t, dir, "job-a", 3) // it has heard of nothing when the job ends
	fine(t, again.JobEnded(t.Context()))
	onlyLease(t, dir, 0)
}

func TestLease_AJobThatStartsFromACheckpointOfTheHolder_TakesItOver(t *testing.T) {
	dir := t.TempDir()
	a, b, c := holder(t, dir, "job-a", 1), holder(t, dir, "job-b", 1), holder(t, dir, "job-c", 1)
	fine(t, a.Reset(t.Context()))
	state := token(t, a)
	fine(t, b.Restore(t.Context(), 7, state))
	_, err := a.Trigger(t.Context(), 8, time.Now())
	refused(t, err, "is lost", "leased to job job-b")
	refused(t, a.Restore(t.Context(), 7, state), "leased to job job-b")
	refused(t, c.Restore(t.Context(), 7, state), "leased to job job-b") // the token is of no use twice
	fine(t, a.JobEnded(t.Context()))
	token(t, b)

	fine(t, b.JobEnded(t.Context()))
	fine(t, c.Restore(t.Context(), 7, state)) // nobody has it
	token(t, c)
}

func TestLease_LostOrDamaged_SaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	a := holder(t, dir, "job-a", 1)
	fine(t, a.Reset(t.Context()))
	path := filepath.Join(dir, leaseName)
	fine(t, os.Remove(path))
	_, err := a.Trigger(t.Context(), 1, time.Now())
	refused(t, err, path+" is gone", "takes it anew when it restarts")
	for _, text := range []string{"", "{", `{"job_id":"x"}`} {
		fine(t, os.WriteFile(path, []byte(text), 0o644))
		_, err := a.Trigger(t.Context(), 1, time.Now())
		refused(t, err, "the lease in "+path+" cannot be read: if no job writes to the directory, delete it")
		refused(t, a.Reset(t.Context()), "delete it")
		refused(t, a.JobEnded(t.Context()), "delete it")
	}
	fine(t, os.Remove(path))
	fine(t, os.WriteFile(path+"-job-a", []byte("left by a crash"), 0o644))
	fine(t, a.Restore(t.Context(), 1, nil))
	onlyLease(t, dir, 1)
	token(t, a)

	_, err = Lease("out")(stream.HookEnv{JobID: "job-a"})
	refused(t, err, `the directory "out" is relative`, "absolute path")
}

func TestLease_OfManyThatClaimAtOnce_OneHasIt(t *testing.T) {
	for range 20 {
		dir := t.TempDir()
		var all sync.WaitGroup
		var have atomic.Int32
		for _, job := range []string{"a", "b", "c", "d", "e", "f"} {
			l := holder(t, dir, job, 1)
			all.Go(func() {
				if l.Reset(t.Context()) == nil {
					have.Add(1)
				}
			})
		}
		all.Wait()
		if have.Load() != 1 {
			t.Fatalf("%d jobs have the lease", have.Load())
		}
		onlyLease(t, dir, 1)
	}
}

func TestLease_IsNoInput(t *testing.T) {
	dir := t.TempDir()
	fine(t, holder(t, dir, "job-a", 1).Reset(t.Context()))
	fine(t, os.WriteFile(filepath.Join(dir, "x.txt"), []byte("x\n"), 0o644))
	files, err := find(dir)
	if err != nil || len(files) != 1 || filepath.Base(files[0]) != "x.txt" {
		t.Errorf("input files are %v (%v)", files, err)
	}
}
