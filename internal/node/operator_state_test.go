package node_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// A job with every kind of keyed and operator state, in several tasks on two executors, loses one of them when its state is in a checkpoint: what it gives out at
// its end is what the model says.
func TestCluster_OperatorState_SurvivesALostExecutor(t *testing.T) {
	c := startCluster(t)
	c.executor("e1", 1)
	stop := c.executor("e2", 1)
	c.awaitSlots(2)
	out, until := filepath.Join(c.dir, "out"), filepath.Join(c.dir, "end")
	id, err := c.jobs.Submit(c.ctx, gateway.Submission{
		JobName: "golden", Params: map[string]string{"output": out, "until": until},
		Options: job.Options{Parallelism: 2, Checkpoint: job.CheckpointOptions{Interval: -1, InlineLimit: 200}},
	})
	if err != nil {
		t.Fatal(err)
	}
	lost := false
	err = c.jobs.Watch(c.ctx, id, func(s gateway.JobStatus, _ []gateway.JobEvent) error {
		switch {
		case !lost && s.State == job.Running && readBySources(s) == 2*goldenEvents+goldenMarks:
			if _, err := c.jobs.TriggerCheckpoint(c.ctx, id, 0); err != nil {
				return err
			}
			lost, c.broken = true, true
			stop()
			c.executor("e3", 1)
		case lost && s.Restarts > 0 && s.State == job.Running:
			return os.WriteFile(until, nil, 0o600)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := c.wait(id)
	if s.State != job.Finished || s.Restarts == 0 {
		t.Fatalf("job is %s after %d restarts: %s", s.State, s.Restarts, s.Detail)
	}
	got, err := goldenOutput(out)
	if err != nil {
		t.Fatal(err)
	}
	want := goldenListModel(goldenModel())
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the job gives out something else (-want +got):\n%s", diff)
	}
}
