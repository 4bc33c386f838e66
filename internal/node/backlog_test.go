package node_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

func TestCluster_NoCheckpointsDuringABacklog_AndSomeAfterIt(t *testing.T) {
	c := startCluster(t)
	c.executor("e1", 1)
	c.awaitSlots(1)
	input := filepath.Join(c.dir, "in")
	writeFlights(t, input, "1.csv", 1000)
	writeFlights(t, input, "2.csv", 3000)
	id, err := c.jobs.Submit(c.ctx, gateway.Submission{
		JobName: "flights", Params: map[string]string{"input": input, "output": filepath.Join(c.dir, "out"), "rate": "2500", "backlog": "true"},
		Options: job.Options{Checkpoint: job.CheckpointOptions{Interval: 50 * time.Millisecond, IntervalDuringBacklog: -1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := ""
	err = c.jobs.Watch(c.ctx, id, func(s gateway.JobStatus, _ []gateway.JobEvent) error {
		if s.Backlog != "" && s.Completed > 0 {
			return fmt.Errorf("%d checkpoints completed although %s", s.Completed, s.Backlog)
		}
		seen += s.Backlog
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(seen, "flights[0] works off a backlog; no periodic checkpoints until it is done") {
		t.Errorf("nobody heard of the backlog: %q", seen)
	}
	s := c.wait(id)
	if s.State != job.Finished || s.Backlog != "" || s.Completed < 3 {
		t.Errorf("job is %s with %d checkpoints, backlog %q: %s", s.State, s.Completed, s.Backlog, s.Detail)
	}
}

func writeFlights(t *testing.T, dir, name string, rows int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text := "origin,delay\n" + strings.Repeat("AAA,1\n", rows)
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
