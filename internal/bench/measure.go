package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/harness"
	"github.com/weirstream/weir/internal/job"
)

type bench struct {
	bin                    harness.Binaries
	out                    io.Writer
	records, rounds, kills int
	checkpoints            int
	sustained              time.Duration
	keys, rows, durables   int
	turn                   time.Duration // with and without checkpoints, each
}

// with runs f on a cluster whose executors have the given slots.
func (b *bench) with(ctx context.Context, f func(c *harness.Cluster) error, slots ...int) error {
	return b.withSettings(ctx, harness.Settings{}, f, slots...)
}

func (b *bench) withSettings(ctx context.Context, settings harness.Settings, f func(c *harness.Cluster) error, slots ...int) error {
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c, err := harness.StartWith(b.bin, dir, settings)
	if err != nil {
		return err
	}
	defer c.Stop()
	total := 0
	for i, n := range slots {
		if err := c.StartExecutor(fmt.Sprintf("e%d", i+1), n); err != nil {
			return err
		}
		total += n
	}
	wait, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := c.AwaitSlots(wait, total); err != nil {
		return err
	}
	if err := f(c); err != nil {
		return err
	}
	return c.Audit(ctx, true)
}

// recovery measures the time from kill -9 of an executor until all tasks run again, with spare slots elsewhere.
func (b *bench) recovery(ctx context.Context) error {
	return b.with(ctx, func(c *harness.Cluster) error {
		id, err := submit(ctx, c, "keyed", 2, map[string]string{"rate": "50000"}, job.CheckpointOptions{Interval: time.Second})
		if err != nil {
			return err
		}
		var took []time.Duration
		for n := range b.kills {
			if err := awaitRunning(ctx, c, id, n); err != nil {
				return err
			}
			// A job that is killed before it gets anywhere restarts ever later, on purpose; this one gets somewhere.
			if _, err := c.Jobs.TriggerCheckpoint(ctx, id, 0); err != nil {
				return err
			}
			victim, err := executorOf(ctx, c, id)
			if err != nil {
				return err
			}
			start := time.Now()
			if err := c.KillExecutor(victim); err != nil {
				return err
			}
			if err := awaitRunning(ctx, c, id, n+1); err != nil {
				return err
			}
			took = append(took, time.Since(start))
			if err := c.StartExecutor(victim, 1); err != nil {
				return err
			}
			if err := c.AwaitSlots(ctx, 3); err != nil {
				return err
			}
		}
		slices.Sort(took)
		fmt.Fprintf(b.out, "kill -9 of an executor until all tasks run again, restart delay included: p50 %s, max %s of %d (limit 1s)\n",
			short(took[len(took)/2]), short(took[len(took)-1]), len(took))
		_, err = c.Jobs.Cancel(ctx, id)
		return err
	}, 1, 1, 1)
}

// throughput measures records per CPU-second of the whole cluster, the cases in turn.
func (b *bench) throughput(ctx context.Context) error {
	cases := []struct {
		name, job   string
		parallelism int
		slots       []int
	}{
		{"chain of source, map, filter, map, sink in one task", "chain", 1, []int{1}},
		{"keyed exchange in one process, 2 senders, 2 receivers", "keyed", 2, []int{2}},
		{"keyed exchange between two processes, half of the records cross", "keyed", 2, []int{1, 1}},
	}
	rates := make([][]float64, len(cases))
	for range b.rounds {
		for i, k := range cases {
			rate, err := b.rate(ctx, k.job, k.parallelism, k.slots)
			if err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			rates[i] = append(rates[i], rate)
		}
	}
	for i, k := range cases {
		slices.Sort(rates[i])
		fmt.Fprintf(b.out, "%-66s %6.2f M records per CPU-second (min %.2f, max %.2f, %d rounds of %d records, checkpoint every second)\n",
			k.name+":", median(rates[i]), rates[i][0], rates[i][len(rates[i])-1], b.rounds, b.records)
	}
	return nil
}

// rate runs a job over the records once and returns millions of records per CPU-second.
func (b *bench) rate(ctx context.Context, name string, parallelism int, slots []int) (rate float64, err error) {
	err = b.with(ctx, func(c *harness.Cluster) error {
		before := c.CPU()
		id, err := submit(ctx, c, name, parallelism, map[string]string{"records": strconv.Itoa(b.records)}, job.CheckpointOptions{Interval: time.Second})
		if err != nil {
			return err
		}
		err = c.Jobs.Watch(ctx, id, func(gateway.JobStatus, []gateway.JobEvent) error { return nil })
		if err != nil {
			return err
		}
		s, err := c.Jobs.Get(ctx, id)
		if err != nil {
			return err
		}
		if s.State != job.Finished {
			return fmt.Errorf("job is %s: %s", s.State, s.Detail)
		}
		rate = float64(b.records) / (c.CPU() - before).Seconds() / 1e6
		return nil
	}, slots...)
	return rate, err
}

func submit(ctx context.Context, c *harness.Cluster, name string, parallelism int, params map[string]string, o job.CheckpointOptions) (job.ID, error) {
	return c.Jobs.Submit(ctx, gateway.Submission{JobName: name, Params: params, Options: job.Options{Parallelism: parallelism, Checkpoint: o}})
}

var errFound = errors.New("found")

// awaitRunning waits until all tasks run after that many restarts.
func awaitRunning(ctx context.Context, c *harness.Cluster, id job.ID, restarts int) error {
	err := c.Jobs.Watch(ctx, id, func(s gateway.JobStatus, _ []gateway.JobEvent) error {
		if s.Restarts < restarts {
			return nil
		}
		for _, v := range s.Vertices {
			for _, t := range v.Tasks {
				if t.State != job.TaskRunning {
					return nil
				}
			}
		}
		return errFound
	})
	switch {
	case errors.Is(err, errFound):
		return nil
	case err == nil:
		return errors.New("the job ended")
	}
	return err
}

// executorOf names an executor on which a task of the job runs.
func executorOf(ctx context.Context, c *harness.Cluster, id job.ID) (string, error) {
	s, err := c.Jobs.Get(ctx, id)
	if err != nil {
		return "", err
	}
	return string(s.Vertices[0].Tasks[0].Executor), nil
}

func median(sorted []float64) float64 { return sorted[len(sorted)/2] }

func short(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
