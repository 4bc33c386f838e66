package jobmaster

import (
	"context"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/masterhook"
	"github.com/weirstream/weir/internal/scheduler"
)

// hookCalls is what the loop knows of the job's master hooks. They are called beside it.
type hookCalls struct {
	set    *masterhook.Set            // nil: not opened
	number int                        // of the latest call
	stops  map[int]context.CancelFunc // of calls that are under way
	// restore is the call before the tasks of the execution that is prepared start; 0: it is still to be made.
	restore  int
	restored bool // it has succeeded
	told     bool // of the end of the job
}

// openHooks makes the hooks of a job.
func (c *Config) openHooks(ctx context.Context, s spec) (*masterhook.Set, error) {
	return masterhook.Open(ctx, c.Rules.OpenHooks, masterhook.Request{Job: s.id, Epoch: c.Epoch, Graph: s.graph, Options: s.options})
}

// callHooks makes a call of the hooks beside the loop. It ends with the job, and with the job master.
func (l *jobLoop) callHooks(ctx context.Context, f func(context.Context) message) {
	h := &l.calling.hooks
	h.number++
	n := h.number
	ctx, h.stops[n] = context.WithCancel(ctx)
	l.work.Go(func() { l.inbox.Post(hooksAnswered{n, f(ctx)}) })
}

// hooksAnswered: a call of the hooks has ended.
type hooksAnswered struct {
	number int
	message
}

func (m hooksAnswered) apply(l *jobLoop) {
	l.calling.hooks.stops[m.number]()
	delete(l.calling.hooks.stops, m.number)
	m.message.apply(l)
}

func (h *hookCalls) stop() {
	for _, stop := range h.stops {
		stop()
	}
}

func (l *jobLoop) triggerHooks(ctx context.Context, e coordinator.CallHooks) {
	set := l.calling.hooks.set
	l.callHooks(ctx, func(ctx context.Context) message {
		states, err := set.Trigger(ctx, e.ID, e.Timestamp)
		return fed{coordinator.HooksCalled{ID: e.ID, States: states, Err: text(err)}}
	})
}

// restoreHooks calls the hooks before the tasks of an execution are sent out, with the checkpoint that they will start from.
func (l *jobLoop) restoreHooks(ctx context.Context) {
	h := &l.calling.hooks
	if h.restore != 0 || h.restored || l.running.deploying == nil || !l.coord.Settled() || !l.attemptRecorded() {
		return
	}
	if h.set.Empty() {
		h.restored = true
		return
	}
	var md *checkpoint.Metadata
	if from := l.coord.Latest(); from != nil {
		md = from.Metadata
	}
	h.restore = h.number + 1
	set, n := h.set, h.restore
	l.callHooks(ctx, func(ctx context.Context) message { return hooksRestored{n, set.Restore(ctx, md)} })
}

// hooksRestored: the hooks are ready for the tasks to start, or are not; then the job fails as if a task had.
type hooksRestored struct {
	number int
	err    error
}

func (m hooksRestored) apply(l *jobLoop) {
	h := &l.calling.hooks
	if h.restore != m.number || l.running.deploying == nil {
		return // it was for an execution that is over
	}
	l.changed = true
	if m.err == nil {
		h.restored = true
		return
	}
	l.feed(scheduler.JobFailed{Failure: job.Failure{Class: job.FailureTask, Message: "restore: " + m.err.Error()}})
	l.feed(scheduler.TasksUnknown{Attempts: attemptsOf(l.running.deploying)}) // they were never sent
	l.running.deploying = nil
}

// endHooks tells the hooks that the job has ended, once that is durable. Those who wait for the end of the job wait for it too.
func (l *jobLoop) endHooks(ctx context.Context) {
	h := &l.calling.hooks
	if h.told || len(l.graph.MasterHooks) == 0 {
		return
	}
	h.told = true
	l.calling.open++
	set := h.set
	l.work.Go(func() {
		l.tellHooks(context.WithoutCancel(ctx), set)
		l.inbox.Post(stored{})
	})
}

// tellHooks opens the hooks if the job ended before they were.
func (l *jobLoop) tellHooks(ctx context.Context, set *masterhook.Set) {
	var err error
	if set == nil {
		set, err = l.cfg.openHooks(ctx, l.spec)
	}
	if err == nil {
		err = set.JobEnded(ctx)
	}
	if err != nil {
		l.log.Warn("tell the master hooks that the job has ended", zap.Error(err))
	}
}
