package taskexecutor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/task"
)

// session is one registration at a job master.
type session struct {
	epoch         job.LeaderEpoch
	interval      time.Duration
	checkpointDir string
	jobMaster     gateway.JobMaster
	log           *zap.Logger
	reports       *reports
	written       *snapshotCounts // of the executor
	tasks         context.Context // ends with the session; tasks live in it
}

// defaultHeartbeat is for a job master that does not say how often it wants to hear of its executors.
const defaultHeartbeat = time.Second

// The pauses between two tries to register, and between two lines of the log about it.
const (
	registerMinPause = 50 * time.Millisecond
	registerMaxPause = time.Second
	registerLogPause = 10 * time.Second
)

// Run registers at the job master and serves it until ctx ends. It returns nil then, or an error when the executor cannot go on: no job master is
// found in time, another process has taken over its id, or a task does not end.
func (e *Executor) Run(ctx context.Context) error {
	err := e.run(ctx)
	if f := (fatalError{}); errors.As(err, &f) && f.hangs {
		return err // the process must end now, whatever still runs
	}
	e.tasks.Wait()
	e.segments.Wait()
	return err
}

func (e *Executor) run(ctx context.Context) error {
	pause, lost := registerMinPause, time.Now()
	var logged time.Time
	for {
		registered, err := e.serve(ctx)
		if fatal(err) {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		if registered {
			pause, lost, logged = registerMinPause, time.Now(), time.Time{}
		}
		if t := e.cfg.RegistrationTimeout; t > 0 && time.Since(lost) > t {
			return fmt.Errorf("no job master for %s: %w", t, err)
		}
		if time.Since(logged) > registerLogPause {
			logged = time.Now()
			e.log.Warn("no job master, trying again", zap.Error(err))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
		pause = min(2*pause, registerMaxPause)
	}
}

// fatalError is a reason for which this process cannot go on.
type fatalError struct {
	error
	hangs bool // a task does not end: nothing can wait for it
}

func (e fatalError) Unwrap() error { return e.error }

func fatal(err error) bool {
	return gateway.ReasonOf(err) == gateway.ReasonReplaced || errors.As(err, &fatalError{})
}

// serve lives one session. It returns when the session has ended and all its tasks with it.
func (e *Executor) serve(ctx context.Context) (registered bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	err = e.cfg.JobMaster.RegisterTaskExecutor(ctx, gateway.Registration{
		Executor: e.cfg.ID, Incarnation: e.cfg.Incarnation, Address: e.cfg.Address,
		Slots: e.cfg.Slots, Jobs: e.jobNames(), Version: e.cfg.Version,
	}, func(r gateway.Registered) {
		if err := e.checkStorage(ctx, r.CheckpointDir); err != nil {
			cancel(err)
			return
		}
		registered = true
		e.open(ctx, cancel, &wg, r)
	})
	cancel(errSessionEnded)
	wg.Wait()
	if hang := e.close(); hang != nil {
		return registered, hang
	}
	if cause := context.Cause(ctx); fatal(cause) || errors.Is(cause, storage.ErrUnreachable) {
		err = cause
	}
	return registered, err
}

// checkStorage refuses to serve a job master whose checkpoints this process cannot reach: every task would fail. Only a storage that is away for now
// is worth another try.
func (e *Executor) checkStorage(ctx context.Context, dir string) error {
	_, err := e.cfg.OpenStorage(ctx, dir, false)
	switch {
	case errors.Is(err, storage.ErrUnreachable):
		return fmt.Errorf("executor %s: %w", e.cfg.ID, err)
	case err != nil:
		return fatalError{error: fmt.Errorf("executor %s cannot use the checkpoint directory %s of the job master: %w; give every executor the same storage at the same path",
			e.cfg.ID, dir, err)}
	}
	return nil
}

func (e *Executor) open(ctx context.Context, cancel context.CancelCauseFunc, wg *sync.WaitGroup, r gateway.Registered) {
	if r.HeartbeatInterval <= 0 {
		r.HeartbeatInterval = defaultHeartbeat
	}
	s := &session{
		epoch: r.Epoch, interval: r.HeartbeatInterval, checkpointDir: r.CheckpointDir, jobMaster: e.cfg.JobMaster,
		log: e.log, reports: newReports(), written: &e.written, tasks: context.WithoutCancel(ctx), // close cancels them with a cause and waits
	}
	e.mu.Lock()
	e.mu.session = s
	close(e.mu.opened)
	e.mu.opened = make(chan struct{})
	e.mu.Unlock()
	e.log.Info("registered", zap.String("executor", string(e.cfg.ID)), zap.Uint64("epoch", uint64(r.Epoch)), zap.String("checkpoints", r.CheckpointDir))
	wg.Go(func() { e.runReports(ctx, s) })
	wg.Go(func() { e.runHeartbeats(ctx, s, cancel) })
	wg.Go(func() {
		select {
		case err := <-e.hangs:
			cancel(err)
			e.hang(err) // close asks, too
		case <-ctx.Done():
		}
	})
}

// close ends the session: every task is canceled and has ended when it returns, or it answers which one does not.
func (e *Executor) close() error {
	e.mu.Lock()
	s := e.mu.session
	e.mu.session = nil
	e.mu.Unlock()
	if s == nil {
		return nil
	}
	e.log.Warn("session at the job master has ended, canceling its tasks")
	tasks := e.snapshot()
	for _, t := range tasks {
		e.cancel(t, errSessionEnded)
	}
	for _, t := range tasks {
		select {
		case <-t.ended:
			e.forget(t)
		case err := <-e.hangs:
			return err
		}
	}
	return nil
}

// runHeartbeats repeats what the job master may have missed, until ctx ends or the job master no longer knows the executor.
func (e *Executor) runHeartbeats(ctx context.Context, s *session, cancel context.CancelCauseFunc) {
	ticker := time.NewTicker(s.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		hb := gateway.Heartbeat{Executor: e.cfg.ID, Incarnation: e.cfg.Incarnation, Epoch: s.epoch}
		for _, t := range e.snapshot() {
			hb.Tasks = append(hb.Tasks, t.inHeartbeat())
		}
		answer, err := s.jobMaster.Heartbeat(ctx, hb)
		switch reason := gateway.ReasonOf(err); {
		case reason == gateway.ReasonNotRegistered || reason == gateway.ReasonStaleEpoch:
			cancel(err)
			return
		case err != nil:
			s.log.Warn("heartbeat not answered", zap.Error(err))
			continue
		}
		e.each(answer.Unknown, func(t *runningTask) { e.cancel(t, errUnknown) })
		e.catchUp(answer)
	}
}

// catchUp tells tasks of completed checkpoints whose notification they have missed. An attempt that the job master does not know must not be told:
// what it prepared for a checkpoint that was aborted since has come again in the attempt after it.
func (e *Executor) catchUp(answer gateway.HeartbeatAnswer) {
	for _, t := range e.snapshot() {
		if slices.Contains(answer.Unknown, t.attempt) {
			continue
		}
		id := answer.Completed[t.attempt.Job]
		if e.cfg.Local != nil {
			e.cfg.Local.Completed(t.attempt.Job, id)
		}
		if r := t.inHeartbeat(); id > r.NotifiedCheckpoint && r.State == job.TaskRunning {
			if err := t.mail.Post(task.Completed{ID: id}); err != nil {
				t.log.Warn("notification not taken", zap.Error(err))
			}
		}
	}
}
