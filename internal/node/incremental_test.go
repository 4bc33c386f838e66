package node_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/harness/reference"
	"github.com/weirstream/weir/internal/inspect"
	"github.com/weirstream/weir/internal/job"
)

// Checkpoints of a job with state on disk share files. The job's directory is moved, and the job goes on from its latest checkpoint at another parallelism; from a
// native savepoint too; the output is exact, and nothing is left behind.
func TestCluster_IncrementalCheckpoints_AreSharedMovedAndRestored(t *testing.T) {
	input := reference.Data(t, "kjv.txt.gz")
	c := startCluster(t)
	c.executor("e1", 2)
	c.awaitSlots(2)
	out := filepath.Join(c.dir, "out")
	params := map[string]string{"input": input, "output": out, "rate": "20000"}
	options := job.Options{
		Parallelism: 1, Checkpoint: job.CheckpointOptions{Interval: -1, Retained: 2}, State: job.StateOptions{Backend: job.PebbleBackend},
	}
	id, err := c.jobs.Submit(c.ctx, gateway.Submission{JobName: "wordcount", Params: params, Options: options})
	if err != nil {
		t.Fatal(err)
	}
	paths, native := takeShared(t, c, id)
	check := func(at string) []string { return sharedOf(t, c, at) }
	third, fourth := check(paths[2]), check(paths[3])
	if !slices.ContainsFunc(fourth, func(f string) bool { return slices.Contains(third, f) }) {
		t.Errorf("the fourth checkpoint has nothing of the third: %v and %v", third, fourth)
	}
	if got := check(native); len(got) > 0 {
		t.Errorf("the savepoint shares %v", got)
	}
	jobDir := filepath.Dir(paths[3])
	onlyThose(t, filepath.Join(jobDir, checkpoint.SharedDirName), third, fourth)
	moved := filepath.Join(c.dir, "elsewhere", filepath.Base(jobDir))
	if err := os.MkdirAll(filepath.Dir(moved), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(jobDir, moved); err != nil {
		t.Fatal(err)
	}
	delete(params, "rate")
	options.Parallelism = 2
	for _, from := range []string{filepath.Join(moved, filepath.Base(paths[3])), native} {
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
		s := c.run(gateway.Submission{JobName: "wordcount", Params: params, RestorePath: from, Options: options})
		if s.State != job.Finished {
			t.Fatalf("job from %s is %s: %s", from, s.State, s.Detail)
		}
		if diff := reference.DiffRows(t, out, reference.Data(t, "expected/kjv-wordcount.csv.gz"), ""); diff != "" {
			t.Fatal(diff)
		}
	}
	// In memory nothing can be made of the backend's files, and it says what to do.
	options.State.Backend = job.MemoryBackend
	s := c.run(gateway.Submission{JobName: "wordcount", Params: params, RestorePath: native, Options: options})
	if s.State != job.Failed {
		t.Errorf("job with state in memory is %s: %s", s.State, s.Detail)
	}
}

// takeShared takes four checkpoints and a native savepoint while a job reads on, and cancels it.
func takeShared(t *testing.T, c *cluster, id job.ID) (paths []string, native string) {
	t.Helper()
	err := c.jobs.Watch(c.ctx, id, func(s gateway.JobStatus, _ []gateway.JobEvent) error {
		if native != "" || s.State != job.Running || readBySources(s) < int64(3000*(len(paths)+1)) {
			return nil
		}
		r, err := c.jobs.TriggerCheckpoint(c.ctx, id, 0)
		if paths = append(paths, r.Path); err != nil || len(paths) < 4 {
			return err
		}
		saved, err := c.jobs.TriggerSavepoint(c.ctx, gateway.TriggerSavepoint{Job: id, Directory: filepath.Join(c.dir, "saved"), Format: job.FormatNative})
		if native = saved.Path; err != nil {
			return err
		}
		_, err = c.jobs.Cancel(c.ctx, id)
		return err
	})
	if err != nil || native == "" {
		t.Fatalf("%d checkpoints and savepoint %q were taken: %v", len(paths), native, err)
	}
	return paths, native
}

// sharedOf gives the shared files of a checkpoint, which must be whole.
func sharedOf(t *testing.T, c *cluster, at string) []string {
	t.Helper()
	s, err := inspect.Read(c.ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := s.Verify(c.ctx); err != nil || len(v.Damage) > 0 {
		t.Errorf("%s: %v %v", at, v.Damage, err)
	}
	return s.Metadata.SharedFiles()
}

// onlyThose checks that nothing is in a directory but the files of some lists.
func onlyThose(t *testing.T, dir string, lists ...[]string) {
	t.Helper()
	there, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range there {
		if !slices.Contains(slices.Concat(lists...), f.Name()) {
			t.Errorf("%s is there, and no retained checkpoint refers to it", f.Name())
		}
	}
}
