package taskexecutor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/cached"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/compression"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/localstate"
	"github.com/weirstream/weir/internal/segment"
	"github.com/weirstream/weir/stream"
)

// Config is what an executor is made of.
type Config struct {
	ID          job.ExecutorID
	Incarnation string // of this process
	Address     string // that it advertises
	Slots       int
	Version     string
	Jobs        []stream.Definition
	Log         *zap.Logger
	JobMaster   gateway.JobMaster
	Network     *exchange.Network
	// Local has copies of the state of the latest checkpoints; nil: none are kept.
	Local *localstate.Store
	// Dir is where tasks may have files of their own.
	Dir Dir
	// State is the backend for jobs that keep their state on disk.
	State *cached.Backend
	// OpenStorage opens a storage by URL or path. readOnly says that nothing will be written there, so that nothing has to be made or tried.
	OpenStorage func(ctx context.Context, location string, readOnly bool) (Storage, error)
	// RegistrationTimeout is how long the executor looks for a job master before it gives up; 0: for ever.
	RegistrationTimeout time.Duration
	// CancelTimeout is how long a canceled task may go on before the process ends; 0: 3 min.
	CancelTimeout time.Duration
}

// Dir gives each attempt a directory on a disk of the host; see package workdir.
type Dir interface {
	Task(job.AttemptID) (string, error)
	RemoveTask(job.AttemptID) error
}

// Executor is a task executor. Its methods are safe for concurrent use.
type Executor struct {
	cfg   Config
	log   *zap.Logger
	hangs chan error // a task that does not end
	tasks sync.WaitGroup

	written  snapshotCounts
	restored restoreCounts
	segments *segment.Set
	encoder  *compression.Encoder
	decoder  *compression.Decoder

	mu struct {
		sync.Mutex
		session *session      // nil while it is not registered
		opened  chan struct{} // closed with the next session
		tasks   map[job.AttemptID]*runningTask
	}
}

// New returns an executor that Run starts.
func New(cfg Config) *Executor {
	if cfg.CancelTimeout == 0 {
		cfg.CancelTimeout = 3 * time.Minute
	}
	e := &Executor{cfg: cfg, log: cfg.Log.Named("taskexecutor"), hangs: make(chan error, 1)}
	e.segments = segment.New(segment.Config{Log: e.log, Name: func(n segment.Number, id checkpoint.ID) string {
		return checkpoint.SegmentFile(cfg.ID, cfg.Incarnation, int64(n), id)
	}})
	e.encoder, e.decoder = compression.NewEncoder(), compression.NewDecoder()
	e.mu.tasks = map[job.AttemptID]*runningTask{}
	e.mu.opened = make(chan struct{})
	return e
}

// The reasons for which tasks are canceled.
var (
	errCanceled     = errors.New("canceled by the job master")
	errUnknown      = errors.New("the job master does not know the attempt")
	errSessionEnded = errors.New("the session at the job master has ended")
)

// Registered reports whether the executor has a session at a job master.
func (e *Executor) Registered() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.session != nil
}

// sessionWait is how long a request waits for the session: the job master may deploy before its answer to the registration is here.
const sessionWait = time.Second

// current returns the session if epoch is its.
func (e *Executor) current(ctx context.Context, epoch job.LeaderEpoch) (*session, error) {
	e.mu.Lock()
	s, opened := e.mu.session, e.mu.opened
	e.mu.Unlock()
	if s == nil {
		s = e.await(ctx, opened)
	}
	if s == nil {
		return nil, &gateway.Error{
			Code: gateway.Unavailable, Reason: gateway.ReasonNotRegistered,
			Message: fmt.Sprintf("executor %s is not registered at a job master", e.cfg.ID),
			Remedy:  "it registers by itself as soon as it reaches one",
		}
	}
	if epoch != s.epoch {
		return nil, gateway.StaleEpoch(epoch, s.epoch)
	}
	return s, nil
}

// await returns the next session if it comes soon, else nil.
func (e *Executor) await(ctx context.Context, opened <-chan struct{}) *session {
	timer := time.NewTimer(sessionWait)
	defer timer.Stop()
	select {
	case <-opened:
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.mu.session
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// each calls f for every attempt that runs here and returns the others.
func (e *Executor) each(attempts []job.AttemptID, f func(*runningTask)) (unknown []job.AttemptID) {
	for _, a := range attempts {
		e.mu.Lock()
		t := e.mu.tasks[a]
		e.mu.Unlock()
		if t == nil || t.stateNow().Terminal() {
			unknown = append(unknown, a)
			continue
		}
		f(t)
	}
	return unknown
}

// CancelTasks implements gateway.TaskExecutor.
func (e *Executor) CancelTasks(ctx context.Context, r gateway.CancelTasks) ([]job.AttemptID, error) {
	if _, err := e.current(ctx, r.Epoch); err != nil {
		return nil, err
	}
	return e.each(r.Attempts, func(t *runningTask) { e.cancel(t, errCanceled) }), nil
}

// cancel ends a task and watches that it does.
func (e *Executor) cancel(t *runningTask, cause error) {
	if !t.cancel(cause) {
		return // somebody else did, and watches
	}
	e.tasks.Go(func() {
		timer := time.NewTimer(e.cfg.CancelTimeout)
		defer timer.Stop()
		select {
		case <-t.ended:
		case <-timer.C:
			e.hang(fatalError{hangs: true, error: fmt.Errorf("task %s does not end %s after it was canceled: its code does not return; the process must be restarted",
				t.attempt, e.cfg.CancelTimeout)})
		}
	})
}

// hang says that a task does not end. The first one is enough.
func (e *Executor) hang(err error) {
	select {
	case e.hangs <- err:
	default:
	}
}

// snapshot returns the tasks in the order of their attempts.
func (e *Executor) snapshot() []*runningTask {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]*runningTask, 0, len(e.mu.tasks))
	for _, t := range e.mu.tasks {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *runningTask) int { return a.attempt.Compare(b.attempt) })
	return out
}

func (e *Executor) forget(t *runningTask) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.mu.tasks, t.attempt)
}
