package cli_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weirstream/weir/examples"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/inspect/inspecttest"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/node"
	"github.com/weirstream/weir/internal/rpc"
)

// cluster is a job master and task executors in this process, on real sockets.
type cluster struct {
	ctx     context.Context
	address string
	jobs    gateway.Jobs
	log     *notedLog
	stop    func() error
	group   sync.WaitGroup
	mu      struct {
		sync.Mutex
		err error
	}
}

func startCluster(dir string) (*cluster, error) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &cluster{ctx: ctx, log: newNotedLog()}
	ready := make(chan string, 1)
	c.run(func() error {
		defer cancel()
		return node.RunJobMaster(ctx, node.JobMasterConfig{
			Listen: "127.0.0.1:0", CheckpointDir: filepath.Join(dir, "checkpoints"), SavepointDir: filepath.Join(dir, "savepoints"),
			Jobs: examples.Jobs(), Log: c.log.logger(), Ready: func(a string) { ready <- a },
		})
	})
	select {
	case c.address = <-ready:
	case <-ctx.Done():
		c.group.Wait()
		return nil, c.mu.err
	}
	conn, err := rpc.Dial(c.address)
	if err != nil {
		cancel()
		return nil, err
	}
	c.jobs = rpc.NewJobs(conn)
	c.stop = func() error {
		facts, asked := inspecttest.Ask(ctx, c.jobs)
		cancel()
		c.group.Wait()
		audit := func(name string) error {
			return inspecttest.AuditDir(context.WithoutCancel(ctx), filepath.Join(dir, name), facts)
		}
		return errors.Join(c.mu.err, asked, conn.Close(), audit("checkpoints"), audit("savepoints"))
	}
	return c, nil
}

func (c *cluster) run(f func() error) {
	c.group.Go(func() {
		err := f()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.mu.err = errors.Join(c.mu.err, err)
	})
}

// startExecutor returns when the executor is registered.
func (c *cluster) startExecutor(id string, slots int) {
	log := newNotedLog()
	c.run(func() error {
		return node.RunTaskExecutor(c.ctx, node.TaskExecutorConfig{
			ID: id, JobMaster: c.address, Listen: "127.0.0.1:0", Slots: slots, Jobs: examples.Jobs(), Log: log.logger(),
		})
	})
	log.wait("registered", 1)
}

// await watches a job until its status is as wanted. It answers false when the job ends before.
func (c *cluster) await(ctx context.Context, id job.ID, wanted func(gateway.JobStatus) bool) (bool, error) {
	errSeen := errors.New("seen")
	err := c.jobs.Watch(ctx, id, func(s gateway.JobStatus, _ []gateway.JobEvent) error {
		if wanted(s) {
			return errSeen
		}
		return nil
	})
	if errors.Is(err, errSeen) {
		return true, nil
	}
	return false, err
}

func testCluster(t *testing.T) *cluster {
	t.Helper()
	c, err := startCluster(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Errorf("cluster: %v", err)
		}
	})
	return c
}

// notedLog is a log that a test can wait for.
type notedLog struct {
	lines *observer.ObservedLogs
	core  zapcore.Core
	more  *sync.Cond
}

func newNotedLog() *notedLog {
	core, lines := observer.New(zap.InfoLevel)
	return &notedLog{lines, core, sync.NewCond(&sync.Mutex{})}
}

func (l *notedLog) logger() *zap.Logger {
	return zap.New(l.core, zap.Hooks(func(zapcore.Entry) error {
		l.more.L.Lock()
		defer l.more.L.Unlock()
		l.more.Broadcast()
		return nil
	}))
}

// wait returns the fields of the nth line with a message, once there is one.
func (l *notedLog) wait(message string, n int) map[string]any {
	l.more.L.Lock()
	defer l.more.L.Unlock()
	for {
		if lines := l.lines.FilterMessage(message).All(); len(lines) >= n {
			return lines[n-1].ContextMap()
		}
		l.more.Wait()
	}
}

// serveJobs serves jobs on an address of its own, until stop.
func serveJobs(t *testing.T, jobs gateway.Jobs) (address string, stop func()) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := rpc.NewServer(zap.NewNop())
	rpc.RegisterJobMaster(server, nil, jobs)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, lis) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-served; err != nil {
				t.Errorf("front: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return lis.Addr().String(), stop
}
