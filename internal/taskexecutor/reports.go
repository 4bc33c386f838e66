package taskexecutor

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/gateway"
)

// reports is what waits to be told to the job master, oldest first: a few states per task, and declines.
type reports struct {
	signal chan struct{}
	mu     struct {
		sync.Mutex
		queue []report
	}
}

// report is a task's state or a decline.
type report struct {
	task    *runningTask
	update  gateway.TaskUpdate
	decline *gateway.Decline
}

// maxDeclines bounds the declines that wait; more than that means that the job master is not there, and then they are of no use.
const maxDeclines = 4096

func newReports() *reports { return &reports{signal: make(chan struct{}, 1)} }

// add queues an update. One that still waits and tells of the same state gives way to it, so that however often a task changes its mind about
// its backlog, no more than a few wait.
func (r *reports) add(t *runningTask, u gateway.TaskUpdate) {
	if !r.replace(t, u) {
		r.push(report{task: t, update: u})
	}
}

func (r *reports) replace(t *runningTask, u gateway.TaskUpdate) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range slices.Backward(r.mu.queue) {
		if item := &r.mu.queue[i]; item.task == t {
			same := item.update.State == u.State
			if same {
				item.update = u
			}
			return same
		}
	}
	return false
}

func (r *reports) addDecline(d gateway.Decline) {
	r.mu.Lock()
	full := len(r.mu.queue) >= maxDeclines
	r.mu.Unlock()
	if !full {
		r.push(report{decline: &d})
	}
}

func (r *reports) push(item report) {
	r.mu.Lock()
	r.mu.queue = append(r.mu.queue, item)
	r.mu.Unlock()
	select {
	case r.signal <- struct{}{}:
	default:
	}
}

func (r *reports) take() []report {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.mu.queue
	r.mu.queue = nil
	return q
}

// reportRetry is the pause between two tries to report the same thing.
const reportRetry = 50 * time.Millisecond

// runReports tells the job master in order until ctx ends. What cannot be delivered is tried again: the job master waits for it.
func (e *Executor) runReports(ctx context.Context, s *session) {
	for {
		for _, item := range s.reports.take() {
			if !e.deliver(ctx, s, item) {
				return
			}
		}
		select {
		case <-s.reports.signal:
		case <-ctx.Done():
			return
		}
	}
}

// deliver reports whether the session goes on.
func (e *Executor) deliver(ctx context.Context, s *session, item report) bool {
	for {
		err := tell(ctx, s, item)
		if err == nil || !retryable(err) {
			if err != nil {
				s.log.Warn("report refused", zap.Error(err))
			}
			if item.task != nil && item.update.State.Terminal() {
				e.forget(item.task)
			}
			return true
		}
		select {
		case <-time.After(reportRetry):
		case <-ctx.Done():
			return false
		}
	}
}

func tell(ctx context.Context, s *session, item report) error {
	if item.decline != nil {
		return s.jobMaster.DeclineCheckpoint(ctx, *item.decline)
	}
	return s.jobMaster.UpdateTaskState(ctx, item.update)
}

// retryable tells errors of the way from answers of the job master.
func retryable(err error) bool {
	switch gateway.CodeOf(err) {
	case gateway.Unavailable, gateway.DeadlineExceeded, gateway.Canceled, gateway.Internal:
		return true
	default:
		return errors.Is(err, context.DeadlineExceeded)
	}
}
