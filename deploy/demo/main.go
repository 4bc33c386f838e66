// Command demo shows Weir losing an executor: a job master and two task executors as processes of this machine, the flights job on the sample data,
// kill -9 in the middle, and the answer compared with a count made another way.
//
// Owns: the story that it tells.
//
// Promises: it ends with PASS and exit code 0, or with the reason and exit code 1; either way its processes are gone and its files are removed,
// also after Ctrl-C.
//
// Goroutines: none but those of package harness.
//
// Not here: starting and killing processes (package harness), the right answer (package answer).
//
// Start at: main.go, then show.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/weirstream/weir/deploy/answer"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/harness"
	"github.com/weirstream/weir/internal/job"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

// settings are the flags.
type settings struct {
	bin, input string
	rate       int
	interval   time.Duration
	limit      time.Duration
}

// parallelism is one task of each vertex per executor. Each executor has as many slots, so that one alone can run the whole job.
const parallelism = 2

func run(ctx context.Context, args []string, out io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.StringVar(&s.bin, "bin", "bin", "folder of the binaries; make build fills it")
	flags.StringVar(&s.input, "input", "examples/data/flights-20k.csv", "flights, as CSV")
	flags.IntVar(&s.rate, "rate", 1400, "flights per second of a source; the sample is small enough to be one split, which one source reads")
	flags.DurationVar(&s.interval, "interval", time.Second, "time between checkpoints")
	flags.DurationVar(&s.limit, "limit", 2*time.Minute, "how long the demo may take")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.limit, fmt.Errorf("the job has not finished within %s", s.limit))
	defer cancel()

	input, err := filepath.Abs(s.input)
	if err != nil {
		return err
	}
	want, err := answer.Count(input)
	if err != nil {
		return fmt.Errorf("input: %w", err)
	}
	dir, err := os.MkdirTemp("", "weir-demo-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	sh := &show{out: out, began: time.Now(), flights: want.Flights}
	end, err := play(ctx, s, input, dir, sh)
	if err != nil {
		return err
	}
	output := filepath.Join(dir, "output")
	if err := want.Check(output); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nPASS  %d flights from %d origins counted exactly once: %d checkpoints, none left behind, %d restart, all tasks running again %s after kill -9.\n",
		want.Flights, len(want.Rows), end.Completed, end.Restarts, sh.recovery())
	return nil
}

// play runs the job in a cluster of its own and kills an executor half-way.
func play(ctx context.Context, s settings, input, dir string, sh *show) (gateway.JobStatus, error) {
	bin := s.binaries()
	c, err := harness.Start(bin, dir)
	if err != nil {
		return gateway.JobStatus{}, err
	}
	defer c.Stop()
	sh.say("job master on %s", c.Address)
	for _, id := range []string{"executor-1", "executor-2"} {
		if err := c.StartExecutor(id, parallelism); err != nil {
			return gateway.JobStatus{}, err
		}
	}
	if err := c.AwaitSlots(ctx, 2*parallelism); err != nil {
		return gateway.JobStatus{}, err
	}
	sh.say("executor-1 and executor-2 have registered, with %d slots each", parallelism)

	id, err := c.Jobs.Submit(ctx, gateway.Submission{
		JobName: "flights",
		Params:  map[string]string{"input": input, "output": filepath.Join(dir, "output"), "rate": fmt.Sprint(s.rate)},
		Options: job.Options{Parallelism: parallelism, Checkpoint: job.CheckpointOptions{Interval: s.interval}},
	})
	if err != nil {
		return gateway.JobStatus{}, err
	}
	sh.say("job flights %s submitted: %d flights at %d per second, a checkpoint every %s", id, sh.flights, s.rate, s.interval)
	end, err := watch(ctx, c, id, sh)
	if err != nil {
		return end, err
	}
	return end, c.Audit(ctx, true)
}

func (s settings) binaries() harness.Binaries {
	return harness.Binaries{
		JobMaster: []string{filepath.Join(s.bin, "jobmaster")}, TaskExecutor: []string{filepath.Join(s.bin, "taskexecutor")},
	}
}

// watch shows the job to its end, and kills an executor when half of the flights have been read.
func watch(ctx context.Context, c *harness.Cluster, id job.ID, sh *show) (gateway.JobStatus, error) {
	var last gateway.JobStatus
	err := c.Jobs.Watch(ctx, id, func(status gateway.JobStatus, _ []gateway.JobEvent) error {
		last = status
		sh.status(status)
		if sh.killed.IsZero() && sh.read(status) >= sh.flights/2 && status.Completed > 0 {
			sh.kill("executor-2", status)
			return c.KillExecutor("executor-2")
		}
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return last, context.Cause(ctx)
	case err != nil:
		return last, err
	case last.State != job.Finished:
		return last, fmt.Errorf("the job is %s: %s", last.State, last.Detail)
	case sh.killed.IsZero():
		return last, errors.New("the job finished before an executor was killed: lower -rate")
	case last.Restarts == 0:
		return last, errors.New("the job was not restarted, although one of its executors was killed")
	}
	return last, nil
}
