package node_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rpc"
	"github.com/weirstream/weir/internal/storage/schemes"
	"github.com/weirstream/weir/internal/taskexecutor"
	"github.com/weirstream/weir/internal/workdir"
	"github.com/weirstream/weir/stream"
)

// Tests named TestFault_Bn_ are those of the table in docs/faults.md.

// heavy is a source that waits, and whose position has size bytes: little enough to travel in the ack.
type heavy struct{ size int }

func (heavy) Splits(context.Context, int) ([][]byte, error) { return [][]byte{[]byte("all")}, nil }

func (s heavy) Open(stream.SourceEnv) (stream.Reader[int], error) { return s, nil }

func (heavy) Read(stream.Collector[int], int) (stream.Next, error) { return stream.WaitForWake, nil }

func (s heavy) Positions() ([][]byte, error) { return [][]byte{bytes.Repeat([]byte("p"), s.size)}, nil }

func (heavy) Close() error { return nil }

// drop is a sink that keeps nothing.
type drop struct{}

func (drop) Open(stream.SinkEnv) (stream.Writer[int], error) { return drop{}, nil }
func (drop) Write(stream.Timestamp, int) error               { return nil }
func (drop) Flush() error                                    { return nil }
func (drop) Close() error                                    { return nil }

type frames struct{}

func (frames) Get(size int) *[]byte { return rpc.GetFrame(size) }
func (frames) Put(b *[]byte)        { rpc.PutFrame(b) }

// limitedExecutor starts an executor with one slot that sends the job master no message over limit bytes.
func (c *cluster) limitedExecutor(limit int, jobs ...stream.Definition) {
	c.t.Helper()
	log := zaptest.NewLogger(c.t).Named("limited")
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	conn, err := rpc.Dial(c.address, grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(limit)))
	if err != nil {
		c.t.Fatal(err)
	}
	address := lis.Addr().String()
	e := taskexecutor.New(taskexecutor.Config{
		Dir: workdir.New(c.t.TempDir()),
		ID:  "limited", Incarnation: "1", Address: address, Slots: 1, Jobs: jobs, Log: log, JobMaster: rpc.NewJobMaster(conn),
		Network: exchange.NewNetwork(exchange.Config{Address: address, Frames: frames{}}), // one task: nobody is dialed
		OpenStorage: func(ctx context.Context, location string, _ bool) (taskexecutor.Storage, error) {
			return schemes.New().Open(ctx, location)
		},
	})
	server := rpc.NewServer(log)
	rpc.RegisterTaskExecutor(server, e)
	ctx, cancel := context.WithCancel(c.ctx)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return e.Run(ctx) })
	g.Go(func() error { return server.Serve(ctx, lis) })
	c.t.Cleanup(func() {
		cancel()
		if err := g.Wait(); err != nil {
			c.t.Errorf("executor: %v", err)
		}
		_ = conn.Close()
	})
}

// An ack of twice the message limit: the executor learns of it and declines at once with the size, long before the checkpoint would expire.
func TestFault_B21_AckOverTheMessageLimit_IsDeclinedWithItsSize(t *testing.T) {
	const limit = 12 << 10
	c := startCluster(t)
	c.limitedExecutor(limit, stream.Define("heavy", "", func(j *stream.Job) error {
		stream.To(stream.From(j, "src", stream.Source[int](heavy{2 * limit})), "out", stream.Sink[int](drop{}))
		return nil
	}))
	c.awaitSlots(1)
	id, err := c.jobs.Submit(c.ctx, gateway.Submission{JobName: "heavy", Options: job.Options{
		Parallelism: 1, Checkpoint: job.CheckpointOptions{Interval: -1, Timeout: time.Hour, TolerableFailures: 10},
	}})
	if err != nil {
		t.Fatal(err)
	}
	c.until(id, func(s gateway.JobStatus) bool {
		return len(s.Vertices) == 1 && s.Vertices[0].Tasks[0].State == job.TaskRunning
	})
	_, err = c.jobs.TriggerCheckpoint(c.ctx, id, 0)
	for _, want := range []string{string(checkpoint.AckTooLarge), "src[0]#1", "larger than max", "vs. 12288"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("checkpoint with an ack over the limit: %v, want %q in it", err, want)
		}
	}
	h, err := c.jobs.Checkpoints(c.ctx, id)
	if list := h.Checkpoints; err != nil || len(list) != 1 || list[0].State != gateway.CheckpointAborted || list[0].Acknowledged != 0 {
		t.Errorf("checkpoints %+v (%v), want one that was aborted without an ack", h.Checkpoints, err)
	}
	if _, err := c.jobs.Cancel(c.ctx, id); err != nil {
		t.Error(err)
	}
}

// until watches a job until ok.
func (c *cluster) until(id job.ID, ok func(gateway.JobStatus) bool) {
	c.t.Helper()
	found := false
	err := c.jobs.Watch(c.ctx, id, func(s gateway.JobStatus, _ []gateway.JobEvent) error {
		if found = ok(s); found {
			return context.Canceled
		}
		return nil
	})
	if !found {
		c.t.Fatalf("job %s did not get there: %v", id, err)
	}
}
