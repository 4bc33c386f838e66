package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/localstate"
	"github.com/weirstream/weir/internal/metrics"
	"github.com/weirstream/weir/internal/rpc"
	"github.com/weirstream/weir/internal/storage/schemes"
	"github.com/weirstream/weir/internal/taskexecutor"
	"github.com/weirstream/weir/stream"
)

// TaskExecutorConfig is what a task executor process is made of.
type TaskExecutorConfig struct {
	ID                  string // empty: one that DataDir keeps, or without one the advertised address
	JobMaster           string // host:port
	Listen              string // host:port of the gRPC server
	Advertise           string // host that others reach it at; empty: the one that reaches the job master
	Slots               int
	DataDir             string // of this executor alone; empty: chosen when it is needed
	StateMemory         int64  // bytes for state on disk; 0: a quarter of what there is
	LocalRecovery       bool   // keep copies of the latest state in it
	Jobs                []stream.Definition
	RegistrationTimeout time.Duration
	HTTP                HTTPConfig
	Log                 *zap.Logger
	// Ready, when not nil, is called once with the address that the executor advertises.
	Ready func(address string)
}

// RunTaskExecutor runs a task executor until ctx ends.
func RunTaskExecutor(ctx context.Context, cfg TaskExecutorConfig) error {
	host := newHostState(cfg.DataDir, cfg.StateMemory, cfg.Log)
	defer host.close()
	if cfg.DataDir != "" {
		if err := host.dir.Open(); err != nil {
			return err
		}
	}
	lis, err := listen(cfg.Listen, "listen")
	if err != nil {
		return err
	}
	address, err := advertised(cfg, lis.Addr())
	if err != nil {
		_ = lis.Close()
		return err
	}
	conn, err := rpc.Dial(cfg.JobMaster)
	if err != nil {
		_ = lis.Close()
		return fmt.Errorf("job master: %w", err)
	}
	defer func() { _ = conn.Close() }()
	opener := schemes.New()
	defer opener.Close()
	peers := newConnections()
	defer peers.close()
	network := exchange.NewNetwork(exchange.Config{Address: address, Frames: frames{}, Dial: peers.openExchange})
	if cfg.ID == "" && cfg.DataDir != "" {
		name, _, _ := net.SplitHostPort(address) // it was joined a moment ago
		if cfg.ID, err = host.dir.ID(name + "-" + randomHex(4)); err != nil {
			_ = lis.Close()
			return err
		}
	}
	e := newTaskExecutor(cfg, address, rpc.NewJobMaster(conn), network, host, opener)

	web, err := newHTTPServer(cfg.HTTP, cfg.Log, processOf(e, cfg.JobMaster, opener, host))
	if err != nil {
		_ = lis.Close()
		return err
	}
	server := rpc.NewServer(cfg.Log)
	rpc.RegisterTaskExecutor(server, e)
	rpc.RegisterExchange(server, func(ctx context.Context, s rpc.FrameStream) error { return network.Serve(ctx, s) })
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return e.Run(ctx) })
	g.Go(func() error { return server.Serve(ctx, lis) })
	web.run(ctx, g)
	server.SetServing(true)
	cfg.Log.Info("task executor is ready", zap.String("address", address), zap.Int("slots", cfg.Slots), zap.String("jobmaster", cfg.JobMaster))
	if cfg.Ready != nil {
		cfg.Ready(address)
	}
	return g.Wait()
}

// processOf is what the HTTP server tells of an executor.
func processOf(e *taskexecutor.Executor, jobMaster string, opener *schemes.Opener, host *hostState) process {
	return process{
		measure: func(reg prometheus.Registerer) error {
			return errors.Join(
				metrics.RegisterTaskExecutor(reg, func() metrics.TaskExecutor { return metrics.TaskExecutor(e.Stats()) }),
				metrics.RegisterState(reg, func() metrics.State { return metrics.State(host.backend.Stats()) }), measureStorage(reg, opener))
		},
		ready: func(context.Context) error {
			if !e.Registered() {
				return fmt.Errorf("the executor is not registered at the job master at %s", jobMaster)
			}
			return nil
		},
	}
}

func newTaskExecutor(cfg TaskExecutorConfig, address string, jm gateway.JobMaster, network *exchange.Network, host *hostState, opener *schemes.Opener) *taskexecutor.Executor {
	id := cfg.ID
	if id == "" {
		id = address
	}
	var local *localstate.Store
	if cfg.LocalRecovery {
		local = localstate.New(cfg.Log.Named("local"), host.dir.Local)
	}
	return taskexecutor.New(taskexecutor.Config{
		Local: local,
		ID:    job.ExecutorID(id), Incarnation: randomHex(8), Address: address, Slots: cfg.Slots, Version: Version(), Jobs: cfg.Jobs,
		Log: cfg.Log, JobMaster: jm, Network: network, OpenStorage: newStorages(opener).open, RegistrationTimeout: cfg.RegistrationTimeout, Dir: host.dir, State: host.backend,
	})
}

// advertised is the address that others reach the executor at: the one it listens on, or, when that is every address of the machine, the one
// from which the job master is reached.
func advertised(cfg TaskExecutorConfig, bound net.Addr) (string, error) {
	host, port, err := net.SplitHostPort(bound.String())
	if err != nil {
		return "", fmt.Errorf("listen address %s: %w", bound, err)
	}
	if cfg.Advertise != "" {
		host = cfg.Advertise
	} else if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if host, err = hostTowards(cfg.JobMaster); err != nil {
			return "", err
		}
	}
	return net.JoinHostPort(host, port), nil
}

// hostTowards finds the local address of a route; no packet is sent.
func hostTowards(peer string) (string, error) {
	conn, err := net.Dial("udp", peer)
	if err != nil {
		return "", fmt.Errorf("job master %s cannot be resolved: %w; check --jobmaster, or name this host with --advertise", peer, err)
	}
	defer func() { _ = conn.Close() }()
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	return host, err
}
