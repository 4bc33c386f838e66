package chaos

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/harness/reference"
	"github.com/weirstream/weir/internal/job"
)

// A job is rescaled again and again, to one to four subtasks, while executors and the job master are killed at random, also in the middle of a rescale.
// Its input is split among its sources, so that near the end some of them have ended and others have not. It must have the exact answer, and nothing
// of its checkpoints may be left.
func TestKill9_Rescaled_IsExact(t *testing.T) {
	n := kills(t, 5)
	rows, name := 100_000, "flights-100k"
	if n >= 10 {
		rows, name = 3_000_000, "flights-3m"
	}
	want := reference.Data(t, filepath.Join("expected", name+"-by-origin.csv.gz"))
	c := startCluster(t, binaries, t.TempDir(), 2, 4)
	seed := uint64(time.Now().UnixNano())
	t.Logf("by seed %d", seed)
	r := &rescales{relay: relay{
		t: t, c: c, random: rand.New(rand.NewPCG(seed, 0)),
		submission: gateway.Submission{
			JobName: "flights",
			Params: map[string]string{
				"input": unpacked(t, reference.Data(t, name+".csv.gz"), c.Dir), "output": filepath.Join(c.Dir, "output"), "rate": fmt.Sprint(rows / (8 + 6*n)),
			},
			Options: job.Options{Parallelism: 4, Checkpoint: job.CheckpointOptions{Interval: 500 * time.Millisecond}},
		},
	}, parallelism: 4}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute+time.Duration(n)*8*killPause)
	defer cancel()
	r.submit(ctx)
	killed := r.run(ctx, n)
	s := r.end(ctx)
	if s.State != job.Finished {
		t.Fatalf("the job is %s: %s", s.State, s.Detail)
	}
	if diff := reference.DiffRows(t, r.submission.Params["output"], want, "origin,flights,delay_sum,delay_min,delay_max"); diff != "" {
		t.Fatalf("after %d kills and %d rescales: %s", killed, r.done, diff)
	}
	if r.done == 0 {
		t.Fatal("the job was never rescaled")
	}
	t.Logf("exact after %d kills and %d restarts; rescaled %d times, not %d times; the longest pause was %s", killed, s.Restarts, r.done, r.failed, r.longest)
	audit(t, c)
}

// unpacked is a copy of a file that is read in parts: a compressed one is not.
func unpacked(t *testing.T, file, dir string) string {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }() // it was only read
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "input.csv")
	out, err := os.Create(path)
	if err == nil {
		_, err = io.Copy(out, z)
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// rescales is a job that is rescaled.
type rescales struct {
	relay
	parallelism  int
	done, failed int
	longest      time.Duration
}

// run rescales the job n times, and kills in between, and half of the times into it.
func (r *rescales) run(ctx context.Context, n int) (killed int) {
	for (r.done < n || killed < n) && ctx.Err() == nil {
		r.awaitTasks(ctx)
		s := r.status(ctx)
		if s.State.Terminal() {
			return killed
		}
		asked := make(chan struct{})
		to := 1 + (r.parallelism+r.random.IntN(3))%4 // another one than it has
		go func() {
			defer close(asked)
			r.rescale(ctx, to)
		}()
		if r.random.IntN(2) == 0 {
			<-asked
			<-time.After(time.Duration(r.random.Float64() * float64(killPause)))
		} else {
			<-time.After(time.Duration(r.random.Float64() * float64(100*time.Millisecond)))
		}
		if r.random.IntN(4) > 0 {
			killed += r.strike()
		}
		<-asked
	}
	return killed
}

// rescale asks for another parallelism. Whatever comes of it, the job goes on, by the old plan or by the new one.
func (r *rescales) rescale(ctx context.Context, to int) {
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	got, err := r.c.Jobs.Rescale(limited, gateway.RescaleJob{Job: r.id, Parallelism: to, Wait: 5 * time.Second})
	switch {
	case err == nil:
		r.done++
		r.longest = max(r.longest, got.Report.Pause)
	case gateway.CodeOf(err) == gateway.DeadlineExceeded:
		r.t.Errorf("a rescale was neither done nor refused: %v", err)
	default:
		r.failed++
		r.t.Logf("not rescaled: %v", err)
	}
	s := r.status(ctx)
	for _, v := range s.Vertices {
		if v.Parallelism != s.Vertices[0].Parallelism || err == nil && !s.State.Terminal() && v.Parallelism != to {
			r.t.Errorf("asked for %d, and the vertices run at %d and %d: a mix of two plans", to, s.Vertices[0].Parallelism, v.Parallelism)
		}
	}
	r.parallelism = s.Vertices[0].Parallelism
}
