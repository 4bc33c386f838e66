package node_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/harness/reference"
	"github.com/weirstream/weir/internal/inspect"
	"github.com/weirstream/weir/internal/job"
)

// A savepoint with state in files is moved to another directory and restored from there, at another parallelism; the output is exact.
func TestCluster_MovedSavepoint_IsRestored(t *testing.T) {
	input := reference.Data(t, "kjv.txt.gz")
	c := startCluster(t)
	c.executor("e1", 2)
	c.awaitSlots(2)
	out := filepath.Join(c.dir, "out")
	params := map[string]string{"input": input, "output": out, "rate": "20000"}
	id, err := c.jobs.Submit(c.ctx, gateway.Submission{
		JobName: "wordcount", Params: params, Options: job.Options{Parallelism: 1, Checkpoint: job.CheckpointOptions{Interval: -1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var at string
	err = c.jobs.Watch(c.ctx, id, func(s gateway.JobStatus, _ []gateway.JobEvent) error {
		if at != "" || s.State != job.Running || readBySources(s) < 10_000 {
			return nil
		}
		r, err := c.jobs.TriggerSavepoint(c.ctx, gateway.TriggerSavepoint{Job: id, Directory: filepath.Join(c.dir, "saved")})
		if err != nil {
			return err
		}
		at = r.Path
		_, err = c.jobs.Cancel(c.ctx, id)
		return err
	})
	if err != nil || at == "" {
		t.Fatalf("no savepoint was taken: %v", err)
	}
	moved := filepath.Join(c.dir, "elsewhere", "of-friday")
	if err := os.MkdirAll(filepath.Dir(moved), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(at, moved); err != nil {
		t.Fatal(err)
	}
	stored, err := inspect.Read(c.ctx, moved)
	if err != nil {
		t.Fatal(err)
	}
	if r := inspect.NewReport(stored.Metadata); r.Files == 0 {
		t.Errorf("the savepoint has no state in files: %+v", r)
	}
	delete(params, "rate")
	s := c.run(gateway.Submission{
		JobName: "wordcount", Params: params, RestorePath: moved,
		Options: job.Options{Parallelism: 2, Checkpoint: job.CheckpointOptions{Interval: -1}},
	})
	if s.State != job.Finished {
		t.Fatalf("job is %s: %s", s.State, s.Detail)
	}
	if diff := reference.DiffRows(t, out, reference.Data(t, "expected/kjv-wordcount.csv.gz"), ""); diff != "" {
		t.Fatal(diff)
	}
	if v, err := stored.Verify(c.ctx); err != nil || len(v.Damage) > 0 {
		t.Errorf("the savepoint is not whole after the restore: %v, %v", v.Damage, err)
	}
}

func readBySources(s gateway.JobStatus) (n int64) {
	for _, v := range s.Vertices {
		if v.Source {
			for _, t := range v.Tasks {
				n += t.RecordsIn
			}
		}
	}
	return n
}
