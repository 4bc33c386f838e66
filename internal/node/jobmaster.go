package node

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/weirstream/weir/internal/archive"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/ha"
	"github.com/weirstream/weir/internal/inspect"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/jobmaster"
	"github.com/weirstream/weir/internal/metrics"
	"github.com/weirstream/weir/internal/retention"
	"github.com/weirstream/weir/internal/rpc"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/storage/schemes"
	"github.com/weirstream/weir/stream"
)

// JobMasterConfig is what a job master process is made of.
type JobMasterConfig struct {
	Listen            string // host:port of the gRPC server
	CheckpointDir     string
	SavepointDir      string
	DataDir           string // records of jobs for the next job master; empty: jobs end with this one
	HeartbeatInterval time.Duration
	HeartbeatTimeout  time.Duration
	CheckpointHistory int           // checkpoints of each job that are remembered; 0: job.DefaultCheckpointHistory
	SweepInterval     time.Duration // between sweeps of the checkpoint directory; 0: never
	SweepAge          time.Duration // how old a file must be that a sweep deletes
	// Fallback: a job whose latest checkpoint cannot be read when this job master takes it over goes on from the next older one.
	Fallback bool
	// IntervalDuringBacklog is that of jobs that choose none; 0: their interval; negative: no periodic checkpoints during a backlog.
	IntervalDuringBacklog time.Duration
	Jobs                  []stream.Definition // whose master hooks it can run
	HTTP                  HTTPConfig
	Log                   *zap.Logger
	// Ready, when not nil, is called once with the address that the server listens on.
	Ready func(address string)
}

// RunJobMaster runs a job master until ctx ends.
func RunJobMaster(ctx context.Context, cfg JobMasterConfig) error {
	var store *ha.Store
	if cfg.DataDir != "" {
		var err error
		if store, err = ha.Open(ctx, cfg.DataDir); err != nil {
			return err
		}
		defer func() { _ = store.Close() }() // the end of the process gives the lock back all the same
	}
	opener := schemes.New()
	defer opener.Close()
	jm, err := newJobMaster(ctx, cfg, store, opener, dialExecutor)
	if err != nil {
		return err
	}
	lis, err := listen(cfg.Listen, "listen")
	if err != nil {
		return err
	}
	server := rpc.NewServer(cfg.Log)
	web, err := newHTTPServer(cfg.HTTP, cfg.Log, process{
		measure: func(reg prometheus.Registerer) error {
			return errors.Join(metrics.RegisterJobMaster(ctx, reg, jm), measureStorage(reg, opener))
		},
		ready: server.Check,
	})
	if err != nil {
		_ = lis.Close()
		return err
	}
	if store == nil {
		cfg.Log.Info("jobs end with this job master, because it has no --data-dir")
	} else {
		cfg.Log.Info("data directory is open", zap.String("dir", cfg.DataDir), zap.Uint64("epoch", uint64(store.Epoch())), zap.Int("jobs", len(store.Jobs())))
	}
	rpc.RegisterJobMaster(server, jm, jm)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return jm.Run(ctx) })
	g.Go(func() error { return server.Serve(ctx, lis) })
	web.run(ctx, g)
	server.SetServing(true)
	cfg.Log.Info("job master is ready", zap.String("listen", lis.Addr().String()), zap.String("checkpoints", cfg.CheckpointDir))
	if cfg.Ready != nil {
		cfg.Ready(lis.Addr().String())
	}
	return g.Wait()
}

// newJobMaster makes a job master; without a store its epoch is 1.
func newJobMaster(ctx context.Context, cfg JobMasterConfig, store *ha.Store, opener *schemes.Opener, dial func(string) (gateway.TaskExecutor, io.Closer, error)) (*jobmaster.JobMaster, error) {
	dir, err := absolute(cfg.CheckpointDir)
	if err != nil {
		return nil, err
	}
	files, err := opener.Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	savepoints := cfg.SavepointDir
	if savepoints != "" {
		if savepoints, err = absolute(savepoints); err != nil {
			return nil, err
		}
		if _, err := opener.Find(ctx, savepoints); err != nil && !errors.Is(err, storage.ErrNotFound) { // one that does not exist is made when it is needed
			return nil, err
		}
	}
	config := jobmaster.Config{
		Log: cfg.Log, Epoch: 1, Archive: archive.Archive{Root: masterStorage{files}, At: dir, Open: masterStorages{opener}.open}, SavepointDir: savepoints,
		HeartbeatInterval: cfg.HeartbeatInterval, HeartbeatTimeout: cfg.HeartbeatTimeout,
		Rules:    jobmaster.Rules{IntervalDuringBacklog: cfg.IntervalDuringBacklog, CheckpointHistory: cfg.CheckpointHistory, Fallback: cfg.Fallback, OpenHooks: hookOpener(cfg.Jobs)},
		Sweeping: sweeping(files, cfg),
		Dial:     dial, NewID: newID, Random: mathrand.Float64,
	}
	if store != nil {
		config.Epoch, config.Store, config.Recovered = store.Epoch(), store, store.Jobs()
	}
	return jobmaster.New(config), nil
}

// sweeping sweeps the checkpoint directory for the job master.
func sweeping(files storage.Storage, cfg JobMasterConfig) jobmaster.Sweeping {
	return jobmaster.Sweeping{
		Interval: cfg.SweepInterval,
		Sweep: func(ctx context.Context, live func() map[job.ID]retention.Activity) ([]string, error) {
			return inspect.Sweep(ctx, files, inspect.Sweeping{SafeAge: cfg.SweepAge, Now: time.Now(), Live: live})
		},
	}
}

// absolute makes a plain path absolute, because executors have other working directories.
func absolute(location string) (string, error) {
	if location == "" || strings.Contains(location, "://") {
		return location, nil
	}
	abs, err := filepath.Abs(location)
	if err != nil {
		return "", fmt.Errorf("directory %s: %w", location, err)
	}
	return abs, nil
}

func dialExecutor(address string) (gateway.TaskExecutor, io.Closer, error) {
	conn, err := rpc.Dial(address)
	if err != nil {
		return nil, nil, err
	}
	return rpc.NewTaskExecutor(conn), conn, nil
}

func newID() job.ID { return job.ID(randomHex(8)) }

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails, says its documentation
	return hex.EncodeToString(b)
}

// listen opens a TCP listener at the address of a flag, with an error that says what to do.
func listen(address, flag string) (net.Listener, error) {
	lis, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("address %s is in use by another process; stop it or choose another with --%s", address, flag)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w; choose another address with --%s", address, err, flag)
	}
	return lis, nil
}

// masterStorage is a storage.Storage as the job master needs it.
type masterStorage struct{ storage.Storage }

// masterStorages opens the directories that are not the checkpoint directory.
type masterStorages struct{ opener *schemes.Opener }

func (m masterStorages) open(ctx context.Context, location string, mustExist bool) (archive.Storage, error) {
	open := m.opener.Open
	if mustExist {
		open = m.opener.Find
	}
	s, err := open(ctx, location)
	if err != nil {
		return nil, err
	}
	return masterStorage{s}, nil
}

func (s masterStorage) CreateFile(ctx context.Context, name string, data []byte) error {
	err := storage.Publish(ctx, s.Storage, name, data)
	if errors.Is(err, storage.ErrUncertain) {
		return uncertain{err}
	}
	return err
}

// uncertain says storage.ErrUncertain in the words of the job master.
type uncertain struct{ error }

func (e uncertain) Is(target error) bool { return target == archive.ErrUncertain }

func (e uncertain) Unwrap() error { return e.error }

func (s masterStorage) DiscardCheckpoint(ctx context.Context, dir string) error {
	return storage.DiscardCheckpoint(ctx, s.Storage, dir)
}

func (s masterStorage) Files(ctx context.Context, dir string) ([]string, error) {
	infos, err := s.List(ctx, dir)
	names := make([]string, len(infos))
	for i, info := range infos {
		names[i] = info.Path
	}
	return names, err
}
