package node_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/inspect"
	"github.com/weirstream/weir/internal/job"
)

// leased submits the job flights with a lease of its output directory.
func (c *cluster) leased(input, output, rate, from string) job.ID {
	c.t.Helper()
	id, err := c.jobs.Submit(c.ctx, gateway.Submission{
		JobName: "flights", Params: map[string]string{"input": input, "output": output, "rate": rate, "lease": "true"}, RestorePath: from,
		Options: job.Options{
			Checkpoint: job.CheckpointOptions{Interval: 50 * time.Millisecond},
			Restart:    job.RestartOptions{Strategy: job.FixedDelay, InitialDelay: 20 * time.Millisecond, Attempts: 1 << 20},
		},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return id
}

var errSeen = errors.New("seen")

// await watches a job until it has been seen in a state.
func (c *cluster) await(id job.ID, seen func(gateway.JobStatus) bool) (last gateway.JobStatus) {
	c.t.Helper()
	err := c.jobs.Watch(c.ctx, id, func(s gateway.JobStatus, _ []gateway.JobEvent) error {
		if last = s; seen(s) {
			return errSeen
		}
		return nil
	})
	if !seen(last) {
		c.t.Fatalf("job %s is %s (%s): %v", id, last.State, last.Detail, err)
	}
	return last
}

func TestCluster_LeaseOfTheOutput_IsWithOneJobAtATime(t *testing.T) {
	c := startCluster(t)
	c.executor("e1", 4)
	c.awaitSlots(4)
	input, output := filepath.Join(c.dir, "in"), filepath.Join(c.dir, "out")
	writeFlights(t, input, "1.csv", 3000)
	holds := func(s gateway.JobStatus) bool { return s.Completed >= 2 }
	first := c.leased(input, output, "1000", "")
	c.await(first, holds)
	second := c.leased(input, output, "0", "")
	refused := c.await(second, func(s gateway.JobStatus) bool { return s.Restarts >= 2 && strings.Contains(s.Detail, "leased to job") })
	if want := "master hook lease: directory " + output + " is leased to job " + string(first); !strings.Contains(refused.Detail, want) || refused.Completed != 0 {
		t.Errorf("%d checkpoints, detail %q, want %q", refused.Completed, refused.Detail, want)
	}
	if _, err := c.jobs.Cancel(c.ctx, first); err != nil {
		t.Fatal(err)
	}
	if s := c.wait(second); s.State != job.Finished {
		t.Errorf("the second job is %s: %s", s.State, s.Detail)
	}
	if _, err := os.Stat(filepath.Join(output, ".weir-lease")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the lease outlives its job: %v", err)
	}

	last := c.await(first, func(s gateway.JobStatus) bool { return s.Last != nil }).Last
	stored, err := inspect.Read(c.ctx, last.Path)
	if err != nil || len(stored.Metadata.MasterState("lease")) == 0 {
		t.Fatalf("the checkpoint of the first job holds no token (%v)", err)
	}
	if s := c.wait(c.leased(input, output, "0", last.Path)); s.State != job.Finished {
		t.Errorf("the job that goes on from it is %s: %s", s.State, s.Detail)
	}
}

func TestCluster_LeaseSurvivesALostExecutor(t *testing.T) {
	c := startCluster(t)
	stop := c.executor("e1", 1)
	c.awaitSlots(1)
	input, output := filepath.Join(c.dir, "in"), filepath.Join(c.dir, "out")
	writeFlights(t, input, "1.csv", 1500)
	id := c.leased(input, output, "1000", "")
	c.await(id, func(s gateway.JobStatus) bool { return s.Completed >= 2 })
	stop()
	c.executor("e2", 1)
	if s := c.wait(id); s.State != job.Finished || s.Restarts == 0 {
		t.Errorf("job is %s after %d restarts: %s", s.State, s.Restarts, s.Detail)
	}
}
