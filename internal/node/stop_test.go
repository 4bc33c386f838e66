package node_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/harness/reference"
	"github.com/weirstream/weir/internal/job"
)

// A job that is stopped in each way that can be resumed, and goes on from its savepoint at another parallelism: what all of them have written into one
// directory is what one run would have.
func TestCluster_StoppedAndResumed_IsExact(t *testing.T) {
	c := startCluster(t)
	input := parts(t, reference.Data(t, "kjv.txt.gz"), filepath.Join(c.dir, "in"))
	c.executor("e1", 1)
	c.executor("e2", 2)
	c.awaitSlots(3)
	out := filepath.Join(c.dir, "out")
	from := ""
	for i, mode := range []job.StopMode{job.StopSuspend, job.StopCancel, job.StopSuspend} {
		r := gateway.Submission{
			JobName: "wordcount", Params: map[string]string{"input": input, "output": out, "emit": "updates", "rate": "1000"}, RestorePath: from,
			Options: job.Options{Parallelism: 1 + i, MaxParallelism: 8, Checkpoint: job.CheckpointOptions{Interval: 50 * time.Millisecond}},
		}
		id, err := c.jobs.Submit(c.ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		c.stopWhen(t, id, gateway.StopJob{Job: id, Directory: filepath.Join(c.dir, "saved"), Mode: mode}, func(s gateway.JobStatus) bool {
			return s.Completed >= 2 && s.State == job.Running
		}, &from)
	}
	s := c.run(gateway.Submission{
		JobName: "wordcount", Params: map[string]string{"input": input, "output": out, "emit": "updates"}, RestorePath: from,
		Options: job.Options{Parallelism: 2, MaxParallelism: 8, Checkpoint: job.CheckpointOptions{Interval: -1}},
	})
	if s.State != job.Finished {
		t.Fatalf("job is %s: %s", s.State, s.Detail)
	}
	if diff := reference.DiffUpdates(t, out, reference.Data(t, "expected/kjv-wordcount.csv.gz")); diff != "" {
		t.Fatal(diff)
	}
}

// parts deals the lines of a text out to four files, so that four subtasks have something to read.
func parts(t *testing.T, text, dir string) string {
	t.Helper()
	f, err := os.Open(text)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var out [4]bytes.Buffer
	lines := bufio.NewScanner(r)
	for i := 0; lines.Scan(); i++ {
		fmt.Fprintln(&out[i%len(out)], lines.Text())
	}
	for i := range out {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.txt", i)), out[i].Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// stopWhen stops a job when it is as wanted, and gives the path of the savepoint.
func (c *cluster) stopWhen(t *testing.T, id job.ID, r gateway.StopJob, wanted func(gateway.JobStatus) bool, path *string) {
	t.Helper()
	done := false
	err := c.jobs.Watch(c.ctx, id, func(s gateway.JobStatus, _ []gateway.JobEvent) error {
		if done || !wanted(s) {
			return nil
		}
		done = true
		got, err := c.jobs.Stop(c.ctx, r)
		*path = got.Savepoint.Path
		return err
	})
	if err != nil || !done {
		t.Fatalf("%s: done %t, %v", r.Mode, done, err)
	}
}

// A job that is drained has written what its operators held, and nothing twice.
func TestCluster_Drained_HasWrittenWhatItHeld(t *testing.T) {
	input := reference.Data(t, "kjv.txt.gz")
	c := startCluster(t)
	c.executor("e1", 2)
	c.awaitSlots(2)
	out := filepath.Join(c.dir, "out")
	id, err := c.jobs.Submit(c.ctx, gateway.Submission{
		JobName: "wordcount", Params: map[string]string{"input": input, "output": out, "rate": "20000"},
		Options: job.Options{Parallelism: 2, Checkpoint: job.CheckpointOptions{Interval: 100 * time.Millisecond}},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := ""
	c.stopWhen(t, id, gateway.StopJob{Job: id, Directory: filepath.Join(c.dir, "saved"), Mode: job.StopDrain}, func(s gateway.JobStatus) bool {
		return s.Completed >= 2 && readBySources(s) > 5_000 && s.State == job.Running
	}, &path)
	if s := c.wait(id); s.State != job.Finished || s.StoppedWith != path {
		t.Fatalf("job is %s, stopped with %q, want %q", s.State, s.StoppedWith, path)
	}
	// The counts are emitted at the end of the input only, so there is output only if they were.
	if rows, err := reference.OutputRows(out, ""); err != nil || len(rows) == 0 {
		t.Errorf("a drained job has written %d rows of what it held, %v", len(rows), err)
	}
}
