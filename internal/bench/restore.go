package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/harness"
	"github.com/weirstream/weir/internal/job"
)

// restoreRate is the updates per second while the state is restored again and again.
const restoreRate = 20_000

// restores is how often an executor is killed for each way of restoring.
const restores = 3

// restore measures how long a job with much state stands after kill -9 of one of its executors, which is started again at once: with the state that the
// executors have kept themselves, and with that of the checkpoint directory alone.
func (b *bench) restore(ctx context.Context) error {
	for _, way := range []struct {
		name, limit string
		flags       []string
	}{
		{"from the executors' own copies", "2s", nil},
		{"from the checkpoint directory", "5s", []string{"--local-recovery=false"}},
	} {
		err := b.storingRows(ctx, way.flags, func(c *harness.Cluster, id job.ID, _ string) error {
			var took []time.Duration
			var size int64
			for n := range restores {
				r, err := c.Jobs.TriggerCheckpoint(ctx, id, 0)
				if err != nil {
					return err
				}
				s, err := c.Jobs.Checkpoint(ctx, id, r.ID)
				if err != nil {
					return err
				}
				size = s.StateBytes
				d, err := killAndRestart(ctx, c, id, n)
				if err != nil {
					return err
				}
				took = append(took, d)
			}
			slices.Sort(took)
			fmt.Fprintf(b.out, "kill -9 with %.2f GB of state, started again at once, restored %s, until all tasks run: p50 %s, max %s of %d (limit %s)\n",
				float64(size)/1e9, way.name, short(took[len(took)/2]), short(took[len(took)-1]), len(took), way.limit)
			return nil
		}, 1, 1)
		if err != nil {
			return err
		}
	}
	return nil
}

// killAndRestart kills an executor that runs a part of the job, starts it again, and returns after how long all tasks run again.
func killAndRestart(ctx context.Context, c *harness.Cluster, id job.ID, restartsBefore int) (time.Duration, error) {
	victim, err := executorOf(ctx, c, id)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := c.KillExecutor(victim); err != nil {
		return 0, err
	}
	if err := c.StartExecutor(victim, 1); err != nil {
		return 0, err
	}
	err = awaitRunning(ctx, c, id, restartsBefore+1)
	return time.Since(start), err
}

// rescaleTo are the parallelisms that the job goes through, from 2.
var rescaleTo = []int{4, 1, 3}

// rescale measures how long a job with much state stands when its parallelism is changed.
func (b *bench) rescale(ctx context.Context) error {
	return b.storingRows(ctx, nil, func(c *harness.Cluster, id job.ID, _ string) error {
		from := 2
		for _, to := range rescaleTo {
			r, err := c.Jobs.Rescale(ctx, gateway.RescaleJob{Job: id, Parallelism: to})
			if err != nil {
				return fmt.Errorf("rescale from %d to %d: %w", from, to, err)
			}
			fmt.Fprintf(b.out, "rescale %d -> %d with %.2f GB of state: all tasks run again after %s (limit 3s, estimated %s); the checkpoint before took %s; moved %.2f GB, stayed %.2f GB\n",
				from, to, float64(r.Report.Moved+r.Report.Stayed)/1e9, short(r.Report.Pause), short(r.Estimate.Pause), short(r.Report.CheckpointDuration),
				float64(r.Report.Moved)/1e9, float64(r.Report.Stayed)/1e9)
			from = to
		}
		return nil
	}, 2, 2)
}
