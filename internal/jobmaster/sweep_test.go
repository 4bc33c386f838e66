package jobmaster

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/retention"
)

func TestSweep_RunsAtTheIntervalAndKnowsWhatIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sweeps := make(chan map[job.ID]retention.Activity, 10)
		c := newCluster(t, func(cfg *Config) {
			cfg.Sweeping = Sweeping{Interval: 10 * time.Minute, Sweep: func(_ context.Context, live func() map[job.ID]retention.Activity) ([]string, error) {
				sweeps <- live()
				return []string{"j/chk-1/x.state"}, errors.New("not everything")
			}}
		})
		defer c.close()
		var hang atomic.Bool
		c.start("a", 4, script{noAck: func(gateway.TriggerCheckpoint, job.AttemptID) bool { return hang.Load() }})
		first := c.submit(1, func(s *gateway.Submission) { s.Options.Checkpoint.Interval = -1 })
		second := c.submit(1, func(s *gateway.Submission) { s.Options.Checkpoint.Interval = -1 })
		c.expect(first, job.Running)
		for range 3 {
			if _, err := c.m.TriggerCheckpoint(t.Context(), first, 0); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(9*time.Minute + 59*time.Second)
		hang.Store(true)
		pending := make(chan error, 1)
		go func() {
			_, err := c.m.TriggerCheckpoint(t.Context(), first, 0)
			pending <- err
		}()
		time.Sleep(2 * time.Second)
		if diff := cmp.Diff(map[job.ID]retention.Activity{first: {Lowest: 4, Bases: []checkpoint.ID{3}}, second: {}}, <-sweeps); diff != "" || len(sweeps) > 0 {
			t.Errorf("at first: %s", diff)
		}
		for _, id := range []job.ID{first, second} {
			if _, err := c.m.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		<-pending
		time.Sleep(10 * time.Minute)
		if diff := cmp.Diff(map[job.ID]retention.Activity{}, <-sweeps); diff != "" || len(sweeps) > 0 {
			t.Errorf("with jobs that have ended: %s", diff)
		}
	})
}
