package node_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"
	"golang.org/x/sync/errgroup"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/harness/reference"
	"github.com/weirstream/weir/internal/inspect/inspecttest"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/node"
	"github.com/weirstream/weir/internal/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is a job master and executors in this process, with real sockets between them.
type cluster struct {
	t       *testing.T
	ctx     context.Context
	stop    context.CancelFunc
	group   *errgroup.Group
	address string
	jobs    gateway.Jobs
	dir     string
	broken  bool // a process was lost on purpose
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // it lives until it is asked at the end
	c := &cluster{t: t, ctx: ctx, stop: cancel, group: &errgroup.Group{}, dir: t.TempDir()}
	ready := make(chan string, 1)
	c.group.Go(func() error {
		return node.RunJobMaster(ctx, node.JobMasterConfig{
			Listen: "127.0.0.1:0", CheckpointDir: filepath.Join(c.dir, "checkpoints"),
			Jobs: testJobs(), Log: zaptest.NewLogger(t).Named("jm"), Ready: func(a string) { ready <- a },
		})
	})
	c.address = <-ready
	conn, err := rpc.Dial(c.address)
	if err != nil {
		t.Fatal(err)
	}
	c.jobs = rpc.NewJobs(conn)
	t.Cleanup(func() {
		facts, asked := inspecttest.Ask(ctx, c.jobs)
		cancel()
		if err := c.group.Wait(); err != nil {
			t.Errorf("cluster: %v", err)
		}
		_ = conn.Close()
		facts.Sweep = c.broken
		for _, dir := range []string{"checkpoints", "saved", "elsewhere"} {
			if err := errors.Join(asked, inspecttest.AuditDir(context.WithoutCancel(ctx), filepath.Join(c.dir, dir), facts)); err != nil {
				t.Error(err)
			}
		}
	})
	return c
}

// executor starts an executor and returns what stops it.
func (c *cluster) executor(id string, slots int) (stop func()) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.ctx)
	ready, done := make(chan string, 1), make(chan error, 1)
	go func() {
		done <- node.RunTaskExecutor(ctx, node.TaskExecutorConfig{
			ID: id, JobMaster: c.address, Listen: "127.0.0.1:0", Slots: slots, Jobs: testJobs(),
			Log: zaptest.NewLogger(c.t).Named(id), Ready: func(a string) { ready <- a },
		})
	}()
	<-ready
	stop = sync.OnceFunc(func() { cancel(); <-done })
	c.t.Cleanup(stop)
	return stop
}

// awaitSlots waits until executors with that many slots are registered.
func (c *cluster) awaitSlots(n int) {
	c.t.Helper()
	for {
		executors, err := c.jobs.TaskExecutors(c.ctx)
		if err != nil {
			c.t.Fatal(err)
		}
		have := 0
		for _, e := range executors {
			have += e.Slots
		}
		if have >= n {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
}

// run submits a job and waits until it is terminal.
func (c *cluster) run(s gateway.Submission) gateway.JobStatus {
	c.t.Helper()
	id, err := c.jobs.Submit(c.ctx, s)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.wait(id)
}

func (c *cluster) wait(id job.ID) (last gateway.JobStatus) {
	c.t.Helper()
	err := c.jobs.Watch(c.ctx, id, func(s gateway.JobStatus, events []gateway.JobEvent) error {
		last = s
		for _, e := range events {
			c.t.Log(e.Text)
		}
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return last
}

func TestCluster_WordcountIsExact(t *testing.T) {
	input := reference.Data(t, "kjv.txt.gz")
	c := startCluster(t)
	c.executor("e1", 2)
	c.executor("e2", 2)
	c.awaitSlots(4)
	out := filepath.Join(c.dir, "out")
	s := c.run(gateway.Submission{
		JobName: "wordcount", Params: map[string]string{"input": input, "output": out},
		Options: job.Options{Parallelism: 4, Checkpoint: job.CheckpointOptions{Interval: 100 * time.Millisecond}},
	})
	if s.State != job.Finished {
		t.Fatalf("job is %s: %s", s.State, s.Detail)
	}
	if diff := reference.DiffRows(t, out, reference.Data(t, "expected/kjv-wordcount.csv.gz"), ""); diff != "" {
		t.Fatal(diff)
	}
}

func TestCluster_FlightsSurviveLostExecutors(t *testing.T) {
	input := reference.Data(t, "flights-100k.csv.gz")
	c := startCluster(t)
	c.executor("e1", 2) // together just enough: a lost executor always takes tasks of the job along
	stop := c.executor("e2", 2)
	c.awaitSlots(4)
	out := filepath.Join(c.dir, "out")
	id, err := c.jobs.Submit(c.ctx, gateway.Submission{
		JobName: "flights", Params: map[string]string{"input": input, "output": out, "rate": "40000"},
		Options: job.Options{Parallelism: 4, Checkpoint: job.CheckpointOptions{Interval: 100 * time.Millisecond}},
	})
	if err != nil {
		t.Fatal(err)
	}
	kills := 0
	err = c.jobs.Watch(c.ctx, id, func(s gateway.JobStatus, events []gateway.JobEvent) error {
		for _, e := range events {
			t.Log(e.Text)
		}
		if s.Completed >= 3*(kills+1) && kills < 4 && s.State == job.Running {
			kills++
			c.broken = true
			stop()
			stop = c.executor(fmt.Sprintf("e2-%d", kills), 2)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := c.wait(id)
	if s.State != job.Finished || kills == 0 || s.Restarts < kills {
		t.Fatalf("job is %s after %d restarts and %d lost executors: %s", s.State, s.Restarts, kills, s.Detail)
	}
	if diff := reference.DiffRows(t, out, reference.Data(t, "expected/flights-100k-by-origin.csv.gz"), "origin,flights,delay_sum,delay_min,delay_max"); diff != "" {
		t.Fatal(diff)
	}
}
