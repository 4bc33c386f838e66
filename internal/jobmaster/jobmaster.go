package jobmaster

import (
	"cmp"
	"context"
	"errors"
	"runtime/pprof"
	"slices"
	"sync"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/inbox"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/slotpool"
)

// JobMaster runs the jobs of one leader epoch. It implements gateway.JobMaster and gateway.Jobs.
type JobMaster struct {
	cfg      Config
	registry *slotpool.Registry
	starts   chan *jobLoop
	stopped  chan struct{} // closed when no job can be started any more
	mu       struct {
		sync.Mutex
		jobs  map[job.ID]*jobLoop
		order int // of the latest submission
	}
}

var (
	_ gateway.JobMaster = (*JobMaster)(nil)
	_ gateway.Jobs      = (*JobMaster)(nil)
)

// New makes a job master. Nothing runs before Run.
func New(cfg Config) *JobMaster {
	m := &JobMaster{cfg: cfg.withDefaults(), registry: slotpool.New(), starts: make(chan *jobLoop), stopped: make(chan struct{})}
	m.mu.jobs = map[job.ID]*jobLoop{}
	for _, r := range cfg.Recovered {
		m.mu.jobs[r.Job.ID] = m.recall(r)
		m.mu.order = max(m.mu.order, r.Job.Order)
	}
	return m
}

// Run serves until ctx ends, and returns when every loop, call and registration has ended. Jobs that run are left as they are: their
// executors notice that the registration has ended and cancel the tasks. Deletions that a job's end has begun are brought to their end.
func (m *JobMaster) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	run := func(l *jobLoop, f func(context.Context)) {
		loops.Go(func() { pprof.Do(ctx, pprof.Labels("loop", "job", "job", string(l.id)), f) })
	}
	for _, l := range m.loops() {
		switch r := l.recovered; {
		case r == nil: // it was submitted just now
		case r.End == nil:
			run(l, l.run)
		case !r.End.Clean:
			run(l, l.cleanUpAfter)
		}
	}
	if m.cfg.Sweeping.Interval > 0 {
		loops.Go(func() { pprof.Do(ctx, pprof.Labels("loop", "sweep"), m.sweep) })
	}
	for {
		select {
		case l := <-m.starts:
			run(l, l.run)
		case <-ctx.Done():
			close(m.stopped)
			m.registry.Close()
			loops.Wait()
			return nil
		}
	}
}

// start hands a job over to Run. When it returns the job has asked for its slots, so that jobs get them in the order of submission.
func (m *JobMaster) start(ctx context.Context, l *jobLoop) error {
	m.forget(ctx, m.add(l))
	select {
	case m.starts <- l:
		<-l.inbox.Begun()
		return nil
	case <-m.stopped:
		m.remove(l.id)
		return gateway.ShuttingDown()
	case <-ctx.Done():
		m.remove(l.id)
		return context.Cause(ctx)
	}
}

// add remembers a job and takes out the oldest of too many that have ended.
func (m *JobMaster) add(l *jobLoop) (forgotten []job.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.jobs[l.id] = l
	var over []*jobLoop
	for _, l := range m.mu.jobs {
		if l.hasEnded() {
			over = append(over, l)
		}
	}
	slices.SortFunc(over, func(a, b *jobLoop) int { return cmp.Compare(a.order, b.order) })
	for len(over) > maxHistory {
		delete(m.mu.jobs, over[0].id)
		forgotten = append(forgotten, over[0].id)
		over = over[1:]
	}
	return forgotten
}

func (l *jobLoop) hasEnded() bool {
	select {
	case <-l.inbox.Ended():
		return true
	default:
		return false
	}
}

func (m *JobMaster) remove(id job.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.mu.jobs, id)
}

func (m *JobMaster) nextOrder() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.order++
	return m.mu.order
}

// loop finds a job, running or ended; nil: there is none.
func (m *JobMaster) loop(id job.ID) *jobLoop {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.jobs[id]
}

// loops lists all jobs in order of submission.
func (m *JobMaster) loops() []*jobLoop {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*jobLoop, 0, len(m.mu.jobs))
	for _, l := range m.mu.jobs {
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b *jobLoop) int { return cmp.Compare(a.order, b.order) })
	return out
}

// fence finds the loop that a message of an executor is for.
func (m *JobMaster) fence(epoch job.LeaderEpoch, id job.ID) (*jobLoop, error) {
	if epoch != m.cfg.Epoch {
		return nil, gateway.StaleEpoch(epoch, m.cfg.Epoch)
	}
	l := m.loop(id)
	if l == nil {
		return nil, gateway.JobNotFound(id)
	}
	return l, nil
}

// UpdateTaskState implements gateway.JobMaster. An update of an attempt that is not the present one is refused, so that its sender drops it.
func (m *JobMaster) UpdateTaskState(ctx context.Context, r gateway.TaskUpdate) error {
	l, err := m.fence(r.Epoch, r.Attempt.Job)
	if err != nil {
		return err
	}
	return m.known(ctx, l, r.Attempt, func(answer chan<- bool) message { return taskUpdate{r, answer} })
}

// DeclineCheckpoint implements gateway.JobMaster.
func (m *JobMaster) DeclineCheckpoint(ctx context.Context, r gateway.Decline) error {
	l, err := m.fence(r.Epoch, r.Attempt.Job)
	if err != nil {
		return err
	}
	return m.known(ctx, l, r.Attempt, func(answer chan<- bool) message { return refusal{r, answer} })
}

func (m *JobMaster) known(ctx context.Context, l *jobLoop, a job.AttemptID, message func(chan<- bool) message) error {
	known, err := inbox.Ask(ctx, l.inbox, message)
	switch {
	case errors.Is(err, inbox.ErrEnded) && !l.board.Read().Status.State.Terminal():
		return gateway.ShuttingDown()
	case errors.Is(err, inbox.ErrEnded):
		return gateway.UnknownAttempt(a)
	case err != nil:
		return err
	case !known:
		return gateway.UnknownAttempt(a)
	}
	return nil
}

// AcknowledgeCheckpoint implements gateway.JobMaster.
func (m *JobMaster) AcknowledgeCheckpoint(ctx context.Context, r gateway.Ack) (checkpoint.Verdict, error) {
	if r.Epoch != m.cfg.Epoch {
		return checkpoint.StaleEpoch, nil
	}
	l := m.loop(r.Attempt.Job)
	if l == nil {
		return checkpoint.Unknown, nil
	}
	v, err := inbox.Ask(ctx, l.inbox, func(answer chan<- checkpoint.Verdict) message { return acknowledgement{r, answer} })
	if errors.Is(err, inbox.ErrEnded) {
		view := l.board.Read()
		if !view.Status.State.Terminal() {
			return 0, gateway.ShuttingDown()
		}
		return lateVerdict(view.Checkpoints, r.ID), nil
	}
	return v, err
}

// lateVerdict answers an ack for a job that has ended. Nothing is deleted on a guess: the metadata of a checkpoint that ended while it was
// written may be durable.
func lateVerdict(checkpoints []coordinator.Stats, id checkpoint.ID) checkpoint.Verdict {
	for _, s := range checkpoints {
		if s.ID == id && s.State == coordinator.StateAborted && s.Reason != checkpoint.FinalizeFailure {
			return checkpoint.TooLate
		}
	}
	return checkpoint.Duplicate
}
