package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/harness"
	"github.com/weirstream/weir/internal/harness/reference"
	"github.com/weirstream/weir/internal/job"
)

// A job is stopped with a savepoint again and again, and goes on from it as another job, while executors and the job master are killed at random,
// also in the middle of a stop. The last of these jobs must have the exact answer, and one sweep must leave no file that nothing refers to.
func TestKill9_StoppedAndResumed_IsExact(t *testing.T) {
	input, want := reference.Data(t, "flights-3m.csv.gz"), reference.Data(t, filepath.Join("expected", "flights-3m-by-origin.csv.gz"))
	c := startCluster(t, binaries, t.TempDir(), 2, 4)
	seed := uint64(time.Now().UnixNano())
	t.Logf("by seed %d", seed)
	n := kills(t, 10)
	r := &relay{
		t: t, c: c, random: rand.New(rand.NewPCG(seed, 0)),
		submission: gateway.Submission{
			JobName: "flights",
			Params:  map[string]string{"input": input, "output": filepath.Join(c.Dir, "output"), "rate": fmt.Sprint(3_000_000 / int(1.25*float64(n+4)*killPause.Seconds()))},
			Options: job.Options{Parallelism: 4, Checkpoint: job.CheckpointOptions{Interval: 500 * time.Millisecond}},
		},
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute+time.Duration(n)*3*killPause)
	defer cancel()
	r.submit(ctx)
	kills := r.run(ctx, n)
	for r.stops == 0 && r.stop(ctx, job.StopSuspend) { // few kills may have left no room for one
	}
	if s := r.end(ctx); s.State != job.Finished || s.StoppedWith != "" {
		t.Fatalf("the last job is %s, stopped with %q: %s", s.State, s.StoppedWith, s.Detail)
	}
	if diff := reference.DiffRows(t, r.submission.Params["output"], want, "origin,flights,delay_sum,delay_min,delay_max"); diff != "" {
		t.Fatalf("after %d kills and %d stops: %s", kills, r.stops, diff)
	}
	if r.stops == 0 {
		t.Fatal("the job was never stopped")
	}
	t.Logf("exact after %d kills; stopped and resumed %d times, %d stops failed", kills, r.stops, r.failed)
	audit(t, c)
}

// relay is a job that is stopped and resumed.
type relay struct {
	t             *testing.T
	c             *harness.Cluster
	random        *rand.Rand
	submission    gateway.Submission
	id            job.ID
	stops, failed int
}

// run kills n times and stops the job in between; some kills fall into a stop.
func (r *relay) run(ctx context.Context, n int) (kills int) {
	for kills < n && ctx.Err() == nil {
		pause := time.After(time.Duration((0.25 + 1.5*r.random.Float64()) * float64(killPause)))
		var stopped chan struct{}
		mode := []job.StopMode{job.StopSuspend, job.StopSuspend, job.StopCancel}[r.random.IntN(3)]
		switch r.random.IntN(4) {
		case 0:
			savepoint(r.t, r.c)
		case 1:
			if !r.stop(ctx, mode) {
				return kills
			}
		case 2: // and kill into it
			stopped = make(chan struct{})
			go func() {
				defer close(stopped)
				r.stop(ctx, mode)
			}()
			pause = time.After(time.Duration(r.random.Float64() * float64(200*time.Millisecond)))
		}
		<-pause
		kills += r.strike()
		if stopped != nil {
			<-stopped
		}
		if s := r.status(ctx); s.State == job.Finished {
			return kills
		}
	}
	return kills
}

// strike kills the job master, an executor, or both, and starts them again.
func (r *relay) strike() (kills int) {
	must := func(err error) {
		if err != nil {
			r.t.Error(err)
		}
	}
	master, victim := r.random.IntN(3), fmt.Sprintf("e%d", 1+r.random.IntN(2))
	if master > 0 { // two of three times
		kills++
		must(r.c.KillJobMaster())
	}
	if master < 2 {
		kills++
		must(r.c.KillExecutor(victim))
		must(r.c.StartExecutor(victim, 4))
	}
	if master > 0 {
		must(r.c.StartJobMaster())
	}
	return kills
}

// stop stops the job and resumes it; false: it had reached its end. A stop that fails must leave the job running, unless the savepoint had completed:
// then the job ends with it all the same.
func (r *relay) stop(ctx context.Context, mode job.StopMode) bool {
	limited, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	r.awaitTasks(limited)
	got, err := r.c.Jobs.Stop(limited, gateway.StopJob{Job: r.id, Directory: filepath.Join(r.c.Dir, "savepoints"), Mode: mode})
	path := got.Savepoint.Path
	if err != nil {
		if gateway.CodeOf(err) == gateway.DeadlineExceeded {
			r.t.Errorf("a stop was neither done nor refused: %v", err)
		}
		if s := r.status(ctx); s.StoppedWith == "" {
			r.failed++
			r.t.Logf("not stopped: %v", err)
			return s.State != job.Finished
		}
		s := r.end(ctx)
		path = s.StoppedWith
	}
	r.stops++
	r.submission.RestorePath = path
	r.submit(ctx)
	return true
}

func (r *relay) submit(ctx context.Context) {
	r.retry(ctx, "submit", func(ctx context.Context) (err error) {
		r.id, err = r.c.Jobs.Submit(ctx, r.submission)
		return err
	})
}

func (r *relay) status(ctx context.Context) (s gateway.JobStatus) {
	r.retry(ctx, "look at the job", func(ctx context.Context) (err error) {
		s, err = r.c.Jobs.Get(ctx, r.id)
		return err
	})
	return s
}

// end waits for the end of the job.
func (r *relay) end(ctx context.Context) (last gateway.JobStatus) {
	r.retry(ctx, "wait for the job", func(ctx context.Context) error {
		return r.c.Jobs.Watch(ctx, r.id, func(s gateway.JobStatus, _ []gateway.JobEvent) error { last = s; return nil })
	})
	return last
}

// awaitTasks waits until all tasks of the job run, for as long as ctx allows.
func (r *relay) awaitTasks(ctx context.Context) {
	run := errors.New("all run")
	_ = r.c.Jobs.Watch(ctx, r.id, func(s gateway.JobStatus, _ []gateway.JobEvent) error {
		for _, v := range s.Vertices {
			for _, t := range v.Tasks {
				if t.State != job.TaskRunning && t.State != job.TaskFinished {
					return nil
				}
			}
		}
		return run
	})
}

// retry calls until it works: the job master may be dead for the moment.
func (r *relay) retry(ctx context.Context, what string, call func(context.Context) error) {
	for {
		err := call(ctx)
		if err == nil {
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			r.t.Errorf("%s: %v", what, err)
			return
		}
	}
}
