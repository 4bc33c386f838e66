package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weirstream/weir/internal/harness"
	"github.com/weirstream/weir/internal/job"
)

// durableRate is the updates per second of the durable checkpoints: each of them is of another key, a tenth of all.
const durableShare = 10

// durable measures checkpoints of a job with much state, a tenth of which changes between two of them. Between the checkpoints as many bytes are
// written and synced by the measurement itself. Then it measures what checkpoints take from throughput and latency, in turn with times without any.
func (b *bench) durable(ctx context.Context) error {
	rate := b.keys / durableShare
	err := b.storing(ctx, rate, job.CheckpointOptions{Interval: -1}, func(c *harness.Cluster, id job.ID, probes string) error {
		var taken, disk, beyond []time.Duration
		var size int64
		for range b.durables {
			if err := pause(ctx, time.Second/2); err != nil {
				return err
			}
			r, err := c.Jobs.TriggerCheckpoint(ctx, id, 0)
			if err != nil {
				return err
			}
			s, err := c.Jobs.Checkpoint(ctx, id, r.ID)
			if err != nil {
				return err
			}
			if err := pause(ctx, time.Second/2); err != nil {
				return err
			}
			d, err := sameBytes(filepath.Join(c.Dir, "checkpoints"), s.StateBytes, 2)
			if err != nil {
				return err
			}
			size = s.StateBytes
			taken, disk, beyond = append(taken, r.Duration), append(disk, d), append(beyond, r.Duration-d)
		}
		fmt.Fprintf(b.out, "durable checkpoint, %s keys, %d%% dirty, every second, %.1f MB: p50 %s, p99 %s of %d\n",
			count(b.keys), 100/durableShare, float64(size)/1e6, short(percentile(taken, 50)), short(percentile(taken, 99)), len(taken))
		fmt.Fprintf(b.out, "    the disk alone for the same bytes, in turn:  p50 %s, p99 %s; beyond it p50 %s, p99 %s (limit 25ms)\n",
			short(percentile(disk, 50)), short(percentile(disk, 99)), short(percentile(beyond, 50)), short(percentile(beyond, 99)))
		return b.latency(ctx, c, id, probes)
	})
	return errors.Join(err, b.loss(ctx))
}

// latency compares how old records are at the sink with and without checkpoints.
func (b *bench) latency(ctx context.Context, c *harness.Cluster, id job.ID, probes string) error {
	var with, without reading
	err := b.inTurn(ctx, c, id, func(checkpoints bool, from, to time.Time) error {
		seen, err := between(probes, from, to)
		if checkpoints {
			with.add(seen)
		} else {
			without.add(seen)
		}
		return err
	})
	fmt.Fprintf(b.out, "    record latency without checkpoints: p50 %s, p99 %s, p99.9 %s; with one every second: p50 %s, p99 %s, p99.9 %s; added to p99.9: %s (limit 5ms)\n",
		short(without.age(500)), short(without.age(990)), short(without.age(999)), short(with.age(500)), short(with.age(990)), short(with.age(999)),
		short(with.age(999)-without.age(999)))
	return err
}

// loss compares records per CPU-second with and without checkpoints, the source as fast as it can.
func (b *bench) loss(ctx context.Context) error {
	return b.storing(ctx, 0, job.CheckpointOptions{Interval: -1}, func(c *harness.Cluster, id job.ID, probes string) error {
		var with, without []float64
		cpu := c.CPU()
		err := b.inTurn(ctx, c, id, func(checkpoints bool, from, to time.Time) error {
			seen, err := between(probes, from, to)
			now := c.CPU()
			rate := float64(seen.Count) / (now - cpu).Seconds() / 1e6
			cpu = now
			if checkpoints {
				with = append(with, rate)
			} else {
				without = append(without, rate)
			}
			return err
		})
		if err != nil {
			return err
		}
		losses := make([]float64, len(with))
		for i := range with {
			losses[i] = 100 * (1 - with[i]/without[i])
		}
		slices.Sort(losses)
		slices.Sort(with)
		slices.Sort(without)
		fmt.Fprintf(b.out, "    throughput, source unlimited: %.2f M records per CPU-second without checkpoints, %.2f with one every second; loss %.1f%% (%.1f to %.1f, limit 2%%)\n",
			median(without), median(with), median(losses), losses[0], losses[len(losses)-1])
		return nil
	})
}

// turns is how long the job runs with and without checkpoints in turn.
const turns = 5 * time.Second

// inTurn runs b.rounds rounds of a time without and a time with a checkpoint every second, and tells f of each.
func (b *bench) inTurn(ctx context.Context, c *harness.Cluster, id job.ID, f func(checkpoints bool, from, to time.Time) error) error {
	for range b.rounds {
		for _, checkpoints := range []bool{false, true} {
			from := time.Now()
			next := from
			for time.Since(from) < b.turn {
				if next = next.Add(time.Second); checkpoints {
					if _, err := c.Jobs.TriggerCheckpoint(ctx, id, 0); err != nil {
						return err
					}
				}
				if err := pause(ctx, time.Until(next)); err != nil {
					return err
				}
			}
			if err := f(checkpoints, from, time.Now()); err != nil {
				return err
			}
		}
	}
	return nil
}

// storing runs f with the job store on two executors, when its state of small values is filled.
func (b *bench) storing(ctx context.Context, rate int, o job.CheckpointOptions, f func(c *harness.Cluster, id job.ID, probes string) error) error {
	return b.with(ctx, func(c *harness.Cluster) error {
		return b.store(ctx, c, b.keys, map[string]string{"rate": strconv.Itoa(rate), "small": "true"}, o, f)
	}, 1, 1)
}

// storingRows runs f with the job store at parallelism 2, when its state of rows is filled.
func (b *bench) storingRows(ctx context.Context, flags []string, f func(c *harness.Cluster, id job.ID, probes string) error, slots ...int) error {
	return b.withSettings(ctx, harness.Settings{ExecutorFlags: flags}, func(c *harness.Cluster) error {
		return b.store(ctx, c, b.rows, map[string]string{"rate": strconv.Itoa(restoreRate)}, job.CheckpointOptions{Interval: -1}, f)
	}, slots...)
}

func (b *bench) store(ctx context.Context, c *harness.Cluster, keys int, params map[string]string, o job.CheckpointOptions,
	f func(c *harness.Cluster, id job.ID, probes string) error,
) error {
	probes := filepath.Join(c.Dir, "probes")
	if err := os.Mkdir(probes, 0o700); err != nil {
		return err
	}
	params["keys"], params["window"], params["probes"] = strconv.Itoa(keys), strconv.Itoa(max(keys/durableShare, 1)), probes
	id, err := submit(ctx, c, "store", 2, params, o)
	if err != nil {
		return err
	}
	if err := awaitCount(ctx, probes, int64(keys)); err != nil {
		return err
	}
	if err := f(c, id, probes); err != nil {
		return err
	}
	_, err = c.Jobs.Cancel(ctx, id)
	return err
}

// awaitCount waits until the probes have seen so many records.
func awaitCount(ctx context.Context, probes string, n int64) error {
	for {
		if seen, err := readProbes(probes, time.Now()); err == nil && seen.Count >= n-readEvery*8 {
			return nil
		}
		if err := pause(ctx, probePause); err != nil {
			return err
		}
	}
}

// between is what the probes have seen from one time to another.
func between(probes string, from, to time.Time) (reading, error) {
	before, err := readProbes(probes, from)
	if err != nil {
		return reading{}, err
	}
	after, err := readProbes(probes, to)
	return after.since(before), err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sameBytes measures what the disk takes for the bytes of a checkpoint: a file for each executor, side by side, then one for the metadata.
func sameBytes(dir string, size int64, executors int) (time.Duration, error) {
	start := time.Now()
	var g errgroup.Group
	for i := range executors {
		g.Go(func() error { return durableFile(dir, fmt.Sprintf(".probe-%d", i), size/int64(executors)) })
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	err := durableFile(dir, ".probe-metadata", 4<<10)
	took := time.Since(start)
	for i := range executors {
		err = errors.Join(err, os.Remove(filepath.Join(dir, fmt.Sprintf(".probe-%d", i))))
	}
	return took, errors.Join(err, os.Remove(filepath.Join(dir, ".probe-metadata")))
}

// durableFile writes a file as a checkpoint does: synced, renamed, and its directory synced.
func durableFile(dir, name string, size int64) error {
	f, err := os.Create(filepath.Join(dir, name+".tmp"))
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(f, io.LimitReader(&pattern{}, size), make([]byte, 1<<20))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, name)); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// pattern reads as bytes that do not compress to nothing.
type pattern struct{ block []byte }

func (p *pattern) Read(b []byte) (int, error) {
	if p.block == nil {
		p.block = bytes.Repeat([]byte("weir "), 1<<10)
	}
	return copy(b, p.block), nil
}

// count writes a number of keys as people say it.
func count(n int) string {
	switch {
	case n >= 1_000_000 && n%100_000 == 0:
		return fmt.Sprintf("%g M", float64(n)/1e6)
	case n >= 1000 && n%100 == 0:
		return fmt.Sprintf("%g K", float64(n)/1e3)
	}
	return strconv.Itoa(n)
}
