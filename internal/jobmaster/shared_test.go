package jobmaster

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// Executors hear of the base of each checkpoint and of the format of each savepoint.
func TestTrigger_SaysTheBaseAndTheFormat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		type said struct {
			ID, Base checkpoint.ID
			Format   job.SavepointFormat
		}
		var mu sync.Mutex
		heard := map[said]bool{}
		c.start("a", 2, script{noAck: func(r gateway.TriggerCheckpoint, _ job.AttemptID) bool {
			mu.Lock()
			defer mu.Unlock()
			heard[said{r.ID, r.Base, r.Format}] = true
			return false
		}})
		id := c.submit(1, func(s *gateway.Submission) { s.Options.Checkpoint.Interval = -1 })
		c.expect(id, job.Running)
		checkpointNow := func() error { _, err := c.m.TriggerCheckpoint(t.Context(), id, 0); return err }
		save := func(f job.SavepointFormat) error {
			_, err := c.m.TriggerSavepoint(t.Context(), gateway.TriggerSavepoint{Job: id, Directory: "/save", Format: f})
			return err
		}
		for i, do := range []func() error{
			checkpointNow, func() error { return save(job.FormatNone) }, func() error { return save(job.FormatNative) }, checkpointNow,
			func() error {
				_, err := c.m.Stop(t.Context(), gateway.StopJob{Job: id, Directory: "/save", Mode: job.StopSuspend, Format: job.FormatNative})
				return err
			},
		} {
			if err := do(); err != nil {
				t.Fatalf("%d: %v", i+1, err)
			}
		}
		want := map[said]bool{{1, 0, 0}: true, {2, 0, job.FormatCanonical}: true, {3, 0, job.FormatNative}: true, {4, 1, 0}: true, {5, 0, job.FormatNative}: true}
		if diff := cmp.Diff(want, heard); diff != "" {
			t.Error(diff)
		}
	})
}
