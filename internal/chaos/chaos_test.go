package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/harness"
	"github.com/weirstream/weir/internal/harness/reference"
	"github.com/weirstream/weir/internal/job"
)

// killPause is the mean time between two kills; they fall at random around it.
const killPause = 2 * time.Second

var binaries harness.Binaries

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == programArgument {
		program()
		return
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "weir-chaos-")
		if err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		root, err := harness.Root()
		if err == nil {
			binaries, err = harness.Build(context.Background(), root, dir)
		}
		if err != nil {
			panic(err)
		}
		return m.Run()
	}())
}

// kills is how often an executor is killed; WEIR_CHAOS_KILLS changes it.
func kills(t *testing.T, def int) int {
	text := os.Getenv("WEIR_CHAOS_KILLS")
	if text == "" {
		return def
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("WEIR_CHAOS_KILLS=%q is not a number", text)
	}
	return n
}

// scenario is one job on real input with a known answer.
type scenario struct {
	job, input, want, header string
	params                   map[string]string
	interval                 time.Duration
	kills                    int
	backend                  job.Backend
}

func TestKill9_Flights_IsExact(t *testing.T) {
	run(t, scenario{
		job: "flights", input: "flights-3m.csv.gz", want: "flights-3m-by-origin.csv.gz", header: "origin,flights,delay_sum,delay_min,delay_max",
		params: map[string]string{"rate": "80000"}, interval: time.Second, kills: kills(t, 20),
	})
}

func TestKill9_Wordcount_IsExact(t *testing.T) {
	run(t, scenario{
		job: "wordcount", input: "kjv.txt.gz", want: "kjv-wordcount.csv.gz",
		params: map[string]string{"rate": "1000"}, interval: time.Second, kills: kills(t, 12),
	})
}

func TestKill9_ShortInterval_IsExact(t *testing.T) {
	run(t, scenario{
		job: "flights", input: "flights-3m.csv.gz", want: "flights-3m-by-origin.csv.gz", header: "origin,flights,delay_sum,delay_min,delay_max",
		params: map[string]string{"rate": "160000"}, interval: 100 * time.Millisecond, kills: kills(t, 8),
	})
}

// State on disk: what is in memory is far less than all of it, checkpoints share files, and what was killed starts from them.
func TestKill9_StateOnDisk_IsExact(t *testing.T) {
	t.Setenv("WEIR_STATE_MEMORY", "8MiB") // of the executors
	t.Run("wordcount", func(t *testing.T) {
		run(t, scenario{
			job: "wordcount", input: "kjv.txt.gz", want: "kjv-wordcount.csv.gz",
			params: map[string]string{"rate": "1500"}, interval: 300 * time.Millisecond, kills: kills(t, 8), backend: job.PebbleBackend,
		})
	})
	t.Run("flights", func(t *testing.T) {
		run(t, scenario{
			job: "flights", input: "flights-3m.csv.gz", want: "flights-3m-by-origin.csv.gz", header: "origin,flights,delay_sum,delay_min,delay_max",
			params: map[string]string{"rate": "160000"}, interval: 200 * time.Millisecond, kills: kills(t, 6), backend: job.PebbleBackend,
		})
	})
}

func TestNoFailure_IsExact(t *testing.T) {
	for _, s := range []scenario{
		{job: "flights", input: "flights-3m.csv.gz", want: "flights-3m-by-origin.csv.gz", header: "origin,flights,delay_sum,delay_min,delay_max", interval: time.Second},
		{job: "wordcount", input: "kjv.txt.gz", want: "kjv-wordcount.csv.gz", interval: 100 * time.Millisecond},
	} {
		t.Run(s.job, func(t *testing.T) { run(t, s) })
	}
}

// startCluster starts a job master and executors e1 to e<n> with some slots each.
func startCluster(t *testing.T, bin harness.Binaries, dir string, executors, slots int, s ...harness.Settings) *harness.Cluster {
	t.Helper()
	c, err := harness.StartWith(bin, dir, append(s, harness.Settings{})[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	for i := range executors {
		if err := c.StartExecutor(fmt.Sprintf("e%d", 1+i), slots); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.AwaitSlots(t.Context(), executors*slots); err != nil {
		t.Fatal(err)
	}
	return c
}

// run runs the job at parallelism 4 on two executors and kills one of them again and again.
func run(t *testing.T, s scenario) {
	input, want := reference.Data(t, s.input), reference.Data(t, filepath.Join("expected", s.want))
	c := startCluster(t, binaries, t.TempDir(), 2, 4)
	output := filepath.Join(c.Dir, "output")
	params := map[string]string{"input": input, "output": output}
	for k, v := range s.params {
		params[k] = v
	}
	id, err := c.Jobs.Submit(t.Context(), gateway.Submission{
		JobName: s.job, Params: params,
		Options: job.Options{Parallelism: 4, Checkpoint: job.CheckpointOptions{Interval: s.interval}, State: job.StateOptions{Backend: s.backend}},
	})
	if err != nil {
		t.Fatal(err)
	}
	killed := killAtRandom(t, c, id, s.kills)
	status := await(t, c, id)
	if status.State != job.Finished {
		t.Fatalf("job is %s after %d kills: %s", status.State, killed, status.Detail)
	}
	if killed < min(s.kills, 3) {
		t.Fatalf("only %d kills before the job was over", killed)
	}
	if diff := reference.DiffRows(t, output, want, s.header); diff != "" {
		t.Fatalf("after %d kills and %d restarts: %s", killed, status.Restarts, diff)
	}
	t.Logf("exact after %d kills, %d restarts, %d checkpoints", killed, status.Restarts, status.Completed)
	audit(t, c)
}

// killAtRandom kills an executor at random moments, and starts it again, until the job has ended or n are killed.
func killAtRandom(t *testing.T, c *harness.Cluster, id job.ID, n int) (killed int) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("kills by seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		ended <- c.Jobs.Watch(ctx, id, func(gateway.JobStatus, []gateway.JobEvent) error { return nil })
	}()
	defer func() { cancel(); <-ended }()
	for killed < n {
		pause := time.Duration((0.25 + 1.5*random.Float64()) * float64(killPause))
		select {
		case err := <-ended:
			ended <- err
			return killed
		case <-time.After(pause):
		}
		victim := fmt.Sprintf("e%d", 1+random.IntN(2))
		if err := c.KillExecutor(victim); err != nil {
			t.Fatal(err)
		}
		killed++
		if err := c.StartExecutor(victim, 4); err != nil {
			t.Fatal(err)
		}
	}
	return killed
}

func await(t *testing.T, c *harness.Cluster, id job.ID) (last gateway.JobStatus) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	err := c.Jobs.Watch(ctx, id, func(s gateway.JobStatus, _ []gateway.JobEvent) error {
		last = s
		return nil
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatalf("watch: %v; the job is %s: %s", err, last.State, last.Detail)
	}
	return last
}

// audit finds nothing left of the checkpoints of jobs that have FINISHED, and every savepoint whole.
func audit(t *testing.T, c *harness.Cluster) {
	t.Helper()
	if err := c.Audit(t.Context(), true); err != nil {
		t.Error(err)
	}
}
