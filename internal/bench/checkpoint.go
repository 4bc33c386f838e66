package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/harness"
	"github.com/weirstream/weir/internal/job"
)

// The idle job counts flights of which hardly any come.
const (
	idleFlights = 100_000
	idleRate    = 10 // per second and source
)

// idleJob starts the flights job, 4 tasks on 2 executors, and returns when all run.
func idleJob(ctx context.Context, c *harness.Cluster, o job.CheckpointOptions) (job.ID, error) {
	input := filepath.Join(c.Dir, "flights.csv")
	rows := bytes.NewBufferString("origin,delay\n")
	for i := range idleFlights {
		fmt.Fprintf(rows, "A%02d,%d\n", i%97, i%60)
	}
	if err := os.WriteFile(input, rows.Bytes(), 0o600); err != nil {
		return "", err
	}
	params := map[string]string{"input": input, "output": filepath.Join(c.Dir, "output"), "rate": strconv.Itoa(idleRate)}
	id, err := submit(ctx, c, "flights", 2, params, o)
	if err != nil {
		return "", err
	}
	return id, awaitRunning(ctx, c, id, 0)
}

// idle measures checkpoints of a job that has little state and nothing to do, and what the disk takes for one small file in between.
func (b *bench) idle(ctx context.Context) error {
	return b.with(ctx, func(c *harness.Cluster) error {
		id, err := idleJob(ctx, c, job.CheckpointOptions{Interval: -1})
		if err != nil {
			return err
		}
		var taken, renames []time.Duration
		split := map[string][]time.Duration{}
		for range b.checkpoints {
			took, phases, err := oneCheckpoint(ctx, c, id)
			if err != nil {
				return err
			}
			taken = append(taken, took)
			for _, p := range phases {
				split[p.name] = append(split[p.name], p.took)
			}
			rename, err := durableRename(filepath.Join(c.Dir, "checkpoints"))
			if err != nil {
				return err
			}
			renames = append(renames, rename)
		}
		disk := percentile(renames, 50)
		fmt.Fprintf(b.out, "idle checkpoint, 4 tasks on 2 executors, durable, trigger to complete: p50 %s, p99 %s of %d (limit 10ms)\n",
			short(percentile(taken, 50)), short(percentile(taken, 99)), len(taken))
		for _, name := range phaseNames {
			fmt.Fprintf(b.out, "    %-40s p50 %8s, p99 %8s\n", name, short(percentile(split[name], 50)), short(percentile(split[name], 99)))
		}
		fmt.Fprintf(b.out, "one durable rename there, 4 KiB: p50 %s, p99 %s; an idle checkpoint takes %.1f of them\n",
			short(disk), short(percentile(renames, 99)), float64(percentile(taken, 50))/float64(disk))
		_, err = c.Jobs.Cancel(ctx, id)
		return err
	}, 1, 1)
}

// phase is a part of the way from the trigger to the end, along the task that was waited for longest.
type phase struct {
	name string
	took time.Duration
}

// The phases, in their order. The first ends when the barriers are sent to the executors; the last is after the end, when nobody waits any more.
var phaseNames = []string{
	"directory made, barriers sent", "start delay", "alignment", "sync", "async write", "ack", "metadata write", "notify (after the end)",
}

// oneCheckpoint takes a checkpoint and asks where its time went.
func oneCheckpoint(ctx context.Context, c *harness.Cluster, id job.ID) (time.Duration, []phase, error) {
	r, err := c.Jobs.TriggerCheckpoint(ctx, id, 0)
	if err != nil {
		return 0, nil, err
	}
	s, err := c.Jobs.Checkpoint(ctx, id, r.ID)
	for err == nil && s.Notified == 0 {
		select {
		case <-time.After(time.Millisecond):
			s, err = c.Jobs.Checkpoint(ctx, id, r.ID)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		return 0, nil, err
	}
	last := slices.MaxFunc(s.Subtasks, func(a, b gateway.SubtaskCheckpoint) int { return cmp.Compare(a.Latency, b.Latency) })
	m := last.Metrics
	took := []time.Duration{
		s.Sent, m.StartDelay - s.Sent, m.Alignment, m.Sync, m.Async,
		last.Latency - m.StartDelay - m.Alignment - m.Sync - m.Async, s.Duration - last.Latency, s.Notified - s.Duration,
	}
	phases := make([]phase, len(took))
	for i, t := range took {
		phases[i] = phase{phaseNames[i], max(t, 0)}
	}
	return r.Duration, phases, nil
}

// durableRename writes a small file as metadata is written.
func durableRename(dir string) (time.Duration, error) {
	const name = ".probe"
	start := time.Now()
	if err := durableFile(dir, name, 4<<10); err != nil {
		return 0, err
	}
	took := time.Since(start)
	return took, os.Remove(filepath.Join(dir, name))
}

// sustainedInterval is how often checkpoints are taken by every.
const sustainedInterval = 100 * time.Millisecond

// every takes periodic checkpoints for a while. All must complete. One is left out when the one before took longer than the interval.
func (b *bench) every(ctx context.Context) error {
	return b.with(ctx, func(c *harness.Cluster) error {
		id, err := idleJob(ctx, c, job.CheckpointOptions{Interval: sustainedInterval, TolerableFailures: 1000})
		if err != nil {
			return err
		}
		start := time.Now()
		select {
		case <-time.After(b.sustained):
		case <-ctx.Done():
			return ctx.Err()
		}
		elapsed := time.Since(start)
		triggered, h, err := counts(ctx, c, id)
		if err != nil {
			return err
		}
		planned := int(elapsed / sustainedInterval)
		fmt.Fprintf(b.out, "a checkpoint every %s for %s: %d planned, %d left out, %d triggered, %d completed, %d failed; p50 %s, p99 %s\n",
			sustainedInterval, b.sustained, planned, max(planned-triggered, 0), triggered, h.Completed, h.Failed,
			short(h.Summary.Duration.P50), short(h.Summary.Duration.P99))
		if h.Failed > 0 || h.Completed < triggered {
			return fmt.Errorf("%d of %d checkpoints have failed, and %d have completed", h.Failed, triggered, h.Completed)
		}
		if triggered == 0 {
			return errors.New("no checkpoint was triggered")
		}
		_, err = c.Jobs.Cancel(ctx, id)
		return err
	}, 1, 1)
}

// counts returns how many checkpoints have been triggered now, and what has become of them when the last of them is over.
func counts(ctx context.Context, c *harness.Cluster, id job.ID) (triggered int, h gateway.CheckpointHistory, err error) {
	for {
		if h, err = c.Jobs.Checkpoints(ctx, id); err != nil {
			return 0, h, err
		}
		if triggered == 0 && len(h.Checkpoints) > 0 {
			triggered = int(h.Checkpoints[0].ID) // ids are drawn in turn, from 1
		}
		pending := func(s gateway.CheckpointStatus) bool { return int(s.ID) <= triggered && s.Duration == 0 }
		if !slices.ContainsFunc(h.Checkpoints, pending) {
			return triggered, h, nil
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return 0, h, ctx.Err()
		}
	}
}

// percentile returns the value that so many per cent of the values do not exceed; 0 of none.
func percentile(values []time.Duration, percent int) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)*percent/100]
}
