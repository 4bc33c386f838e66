package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/storage/schemes"
	"github.com/weirstream/weir/internal/taskexecutor"
	"github.com/weirstream/weir/stream"
)

// LocalConfig is what a cluster in one process is made of.
type LocalConfig struct {
	CheckpointDir string
	SavepointDir  string
	Slots         int
	Jobs          []stream.Definition
	Log           *zap.Logger
}

// localAddress is where the only executor of a local cluster is: nobody dials it.
const localAddress = "local"

// RunLocal runs a job master and an executor in this process, without sockets, calls use with the job master, and ends when use returns.
func RunLocal(ctx context.Context, cfg LocalConfig, use func(ctx context.Context, jobs gateway.Jobs) error) error {
	var executor *taskexecutor.Executor
	opener := schemes.New()
	defer opener.Close()
	jm, err := newJobMaster(ctx, JobMasterConfig{CheckpointDir: cfg.CheckpointDir, SavepointDir: cfg.SavepointDir, Jobs: cfg.Jobs, Log: cfg.Log}, nil, opener,
		func(string) (gateway.TaskExecutor, io.Closer, error) { return executor, nil, nil })
	if err != nil {
		return err
	}
	network := exchange.NewNetwork(exchange.Config{
		Address: localAddress, Frames: frames{},
		Dial: func(_ context.Context, address string) (exchange.FrameStream, error) {
			return nil, fmt.Errorf("no executor at %s in a local cluster", address)
		},
	})
	host := newHostState("", 0, cfg.Log)
	defer host.close()
	executor = newTaskExecutor(TaskExecutorConfig{ID: localAddress, Slots: cfg.Slots, Jobs: cfg.Jobs, Log: cfg.Log}, localAddress, jm, network, host, opener)

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return jm.Run(ctx) })
	g.Go(func() error { return executor.Run(ctx) })
	g.Go(func() error {
		if err := awaitRegistration(ctx, jm); err != nil {
			return err
		}
		if err := use(ctx, jm); err != nil {
			return err
		}
		return errDone
	})
	if err := g.Wait(); !errors.Is(err, errDone) {
		return err
	}
	return nil
}

var errDone = errors.New("done")

// awaitRegistration waits until the executor is known; it registers at once, but beside us.
func awaitRegistration(ctx context.Context, jobs gateway.Jobs) error {
	for {
		executors, err := jobs.TaskExecutors(ctx)
		if err != nil || len(executors) > 0 {
			return err
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
