package ha

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/storage/storagetest"
)

func testJob(id job.ID, order int) Job {
	return Job{
		ID: id, Order: order, Name: "flights", Params: map[string]string{"input": "in"},
		Options:   job.Options{Parallelism: 2, Checkpoint: job.CheckpointOptions{Interval: time.Second}},
		Graph:     &job.Graph{Name: "flights", Fingerprint: "f", Vertices: []job.Vertex{{ID: "a", Parallelism: 2, Splits: [][]byte{{1, 0}, {}}}}},
		Submitted: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Restore: "other/chk-3",
	}
}

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func reopen(t *testing.T, s *Store, dir string) *Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, dir)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpen_EachTimeAHigherEpoch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := open(t, dir)
	for want := job.LeaderEpoch(1); want < 5; want++ {
		if s.Epoch() != want {
			t.Fatalf("epoch %d, want %d", s.Epoch(), want)
		}
		s = reopen(t, s, dir)
	}
}

func TestOpen_OfADirectoryInUse_IsRefusedAndChangesNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	_, err := Open(t.Context(), dir)
	if want := "data directory " + dir + " is used by another job master; stop it, or give this one a directory of its own"; err == nil || err.Error() != want {
		t.Fatalf("second opening: %v", err)
	}
	if s = reopen(t, s, dir); s.Epoch() != 2 {
		t.Errorf("epoch %d after a refused opening, want 2", s.Epoch())
	}
}

func TestRecords_AreThereAfterReopening_InOrderOfSubmission(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	first, second := testJob("z", 1), testJob("a/b", 2)
	must(t, s.CreateJob(t.Context(), second))
	must(t, s.CreateJob(t.Context(), first))
	must(t, s.SetProgress(t.Context(), "z", Progress{Attempt: 1, Reserved: 100}))
	must(t, s.SetProgress(t.Context(), "z", Progress{Attempt: 2, Reserved: 200, Completed: 17, Stopped: "/save/savepoint-z-1"}))
	end := End{State: job.Failed, Failure: "why", At: first.Submitted, DeleteAll: true, Restarts: 3, Completed: 4, Failed: 5, StoppedWith: "/save/savepoint-a-1"}
	must(t, s.SetEnd(t.Context(), "a/b", end))
	end.Clean = true
	must(t, s.SetEnd(t.Context(), "a/b", end))
	replanned := *first.Graph
	replanned.Vertices = []job.Vertex{{ID: "a", Parallelism: 4, MaxParallelism: 8}}
	plan := Plan{Parallelism: 4, OperatorParallelism: map[string]int{"a": 4}, Graph: &replanned}
	must(t, s.SetPlan(t.Context(), "z", Plan{Parallelism: 3, Graph: first.Graph}))
	must(t, s.SetPlan(t.Context(), "z", plan))
	s = reopen(t, s, dir)
	first.Graph, first.Options.Parallelism, first.Options.OperatorParallelism = plan.Graph, 4, plan.OperatorParallelism
	want := []Record{{Job: first, Plan: &plan, Progress: Progress{2, 200, 17, "/save/savepoint-z-1"}}, {Job: second, End: &end}}
	if diff := cmp.Diff(want, s.Jobs()); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestCreateJob_ASecondTime_IsRefused(t *testing.T) {
	s := open(t, t.TempDir())
	must(t, s.CreateJob(t.Context(), testJob("a", 1)))
	if err := s.CreateJob(t.Context(), testJob("a", 2)); err == nil || !strings.Contains(err.Error(), "jobs/a/job") {
		t.Errorf("second creation: %v", err)
	}
}

// Whatever is damaged, the store does not open, names the file, and leaves the epoch alone: nothing is skipped in silence.
func TestFault_B91_DamagedRecord_FailsTheStartAndNamesTheFile(t *testing.T) {
	damage := map[string]func(path string) error{
		"cut":       func(p string) error { return os.Truncate(p, 5) },
		"emptied":   func(p string) error { return os.Truncate(p, 0) },
		"exchanged": func(p string) error { return copyOf(filepath.Join(filepath.Dir(p), "../../jobs/a", other(p)), p) },
		"flipped": func(p string) error {
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			data[len(data)-2] ^= 1
			return os.WriteFile(p, data, 0o644)
		},
	}
	for what, spoil := range damage {
		for _, file := range []string{"jobs/a/job", "jobs/a/plan", "jobs/a/progress", "jobs/a/end", "epoch"} {
			if what == "exchanged" && file == "epoch" {
				continue
			}
			t.Run(what+" "+strings.ReplaceAll(file, "/", " "), func(t *testing.T) {
				dir := t.TempDir()
				s := open(t, dir)
				must(t, s.CreateJob(t.Context(), testJob("a", 1)))
				must(t, s.SetPlan(t.Context(), "a", Plan{Parallelism: 1, Graph: testJob("a", 1).Graph}))
				must(t, s.SetProgress(t.Context(), "a", Progress{Attempt: 1}))
				must(t, s.SetEnd(t.Context(), "a", End{State: job.Finished}))
				must(t, s.Close())
				must(t, spoil(filepath.Join(dir, file)))
				if _, err := Open(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "record "+file+":") {
					t.Errorf("opened, or the error does not name %s: %v", file, err)
				}
			})
		}
	}
}

func other(path string) string {
	if filepath.Base(path) == jobFile {
		return progressFile
	}
	return jobFile
}

func copyOf(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}

func TestOpen_WithAFileMissing(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"jobs/a/job", "record jobs/a/job: it is missing"},
		{"epoch", "record epoch: it is missing, although there are jobs"},
	} {
		dir := t.TempDir()
		s := open(t, dir)
		must(t, s.CreateJob(t.Context(), testJob("a", 1)))
		must(t, s.SetProgress(t.Context(), "a", Progress{Attempt: 1}))
		must(t, s.Close())
		must(t, os.Remove(filepath.Join(dir, c.file)))
		if _, err := Open(t.Context(), dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("without %s: %v", c.file, err)
		}
	}
}

func TestOpen_WithAStrangeFile_IsRefused(t *testing.T) {
	dir := t.TempDir()
	must(t, open(t, dir).Close())
	must(t, os.MkdirAll(filepath.Join(dir, "jobs", "a"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "jobs", "a", "jobb"), nil, 0o644))
	if _, err := Open(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "jobs/a/jobb") {
		t.Errorf("opened: %v", err)
	}
}

// crash is a power failure between two writes, or after a write whose answer was lost: the store is opened again on what is durable.
func TestCrash_BetweenAnyTwoWrites_LosesNothingThatWasAnswered(t *testing.T) {
	for _, how := range []string{"before", "unsynced", "after"} {
		for at := 0; ; at++ {
			files, writes, died := storagetest.NewMem(), 0, errors.New("power failure")
			files.SetFaults(func(op storagetest.Op) storagetest.Fault {
				switch op.Kind {
				case storagetest.WriteFile, storagetest.Remove, storagetest.RemoveAll:
				default:
					return storagetest.Fault{}
				}
				writes++
				switch {
				case writes-1 < at:
					return storagetest.Fault{}
				case writes-1 > at || how == "before":
					return storagetest.Fault{Before: died}
				case how == "unsynced":
					return storagetest.Fault{Unsynced: true, After: died}
				}
				return storagetest.Fault{After: died}
			})
			w := &witness{}
			w.live(t.Context(), files)
			files.SetFaults(nil)
			files.Crash()
			s, err := OpenIn(t.Context(), files, "dir")
			if err != nil {
				t.Fatalf("%s write %d: %v", how, at, err)
			}
			if diff := w.check(s); diff != "" {
				t.Fatalf("%s write %d: %s", how, at, diff)
			}
			if writes <= at {
				break // the life was not interrupted
			}
		}
	}
}

// witness remembers what the store has answered.
type witness struct {
	epoch   job.LeaderEpoch
	created bool
	answer  Progress
	asked   Progress
	ended   bool
	removed bool // or it was tried
}

func (w *witness) live(ctx context.Context, files *storagetest.Mem) {
	for range 2 {
		s, err := OpenIn(ctx, files, "dir")
		if err != nil {
			return
		}
		w.epoch = s.epoch
		if !w.created {
			if s.CreateJob(ctx, testJob("a", 1)) != nil {
				return
			}
			w.created = true
		}
		for range 2 {
			w.asked.Attempt++
			if s.SetProgress(ctx, "a", w.asked) != nil {
				return
			}
			w.answer = w.asked
		}
		if w.asked.Attempt < 4 {
			continue
		}
		if s.SetEnd(ctx, "a", End{State: job.Finished}) != nil {
			return
		}
		w.ended, w.removed = true, true
		_ = s.RemoveJob(ctx, "a") // the check tolerates both
	}
}

func (w *witness) check(s *Store) string {
	if s.epoch <= w.epoch {
		return fmt.Sprintf("epoch %d after %d", s.epoch, w.epoch)
	}
	if len(s.Jobs()) == 0 {
		if w.created && !w.removed {
			return "the job is lost"
		}
		return ""
	}
	r := s.Jobs()[0]
	if diff := cmp.Diff(testJob("a", 1), r.Job); diff != "" {
		return diff
	}
	if (r.Progress.Attempt < w.answer.Attempt || r.Progress.Attempt > w.asked.Attempt) && !w.removed {
		return fmt.Sprintf("attempt %d, answered %d, asked %d", r.Progress.Attempt, w.answer.Attempt, w.asked.Attempt)
	}
	if w.ended && r.End == nil {
		return "the end is lost"
	}
	return ""
}
