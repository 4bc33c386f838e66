package coordinator

import (
	"slices"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// The limits of a coordinator.
const (
	// maxPending is how many checkpoints may be pending at a time with the savepoints that do not wait for Options.MaxConcurrent: a task
	// writes no more snapshots at a time, and declines what is beyond.
	maxPending = job.MaxConcurrentCheckpoints
	// maxRequests is how many requests may wait.
	maxRequests = 1000
	// maxMissingNamed is how many tasks the message of an expired checkpoint names.
	maxMissingNamed = 5
	// minInterval is the shortest interval and timeout, maxInterval the longest; what is outside is moved to the limit.
	minInterval = 10 * time.Millisecond
	maxInterval = 365 * 24 * time.Hour

	defaultNotifyRetry = time.Second
)

// Core is the coordinator of one job under one leader epoch. It is not safe for concurrent use: one loop owns it.
type Core struct {
	cfg     Config
	plan    plan
	now     time.Time // of the Step that runs
	effects []Effect  // of the Step that runs

	exec     *execution // nil: no task runs; partial: some do not; nothing may be triggered then, see triggering
	queue    queue
	pending  []*pending // ascending by id, at most maxPending; FINALIZING ones included
	nextID   checkpoint.ID
	store    store
	cleaning cleaning
	failures failures
	stats    history
	stale    int
	closed   bool
	doomed   bool // closed, and checkpoints are deleted
}

// New makes the coordinator of a job. Zero options mean their defaults.
func New(cfg Config) *Core {
	cfg.Options = job.Options{Checkpoint: cfg.Options}.Normalize().Checkpoint
	o := &cfg.Options
	o.MinPause = min(max(o.MinPause, 0), maxInterval)
	if o.Interval > 0 {
		o.Interval = min(max(o.Interval, o.MinPause, minInterval), maxInterval)
	}
	if o.IntervalDuringBacklog >= 0 { // it may only be longer
		o.IntervalDuringBacklog = min(max(o.IntervalDuringBacklog, o.Interval), maxInterval)
	}
	o.MaxConcurrent = min(max(o.MaxConcurrent, 1), maxPending)
	o.Timeout = min(max(o.Timeout, minInterval), maxInterval)
	if cfg.History <= 0 {
		cfg.History = job.DefaultCheckpointHistory
	}
	cfg.History = min(cfg.History, job.MaxCheckpointHistory)
	if cfg.NotifyRetry <= 0 {
		cfg.NotifyRetry = defaultNotifyRetry
	}
	c := &Core{cfg: cfg, plan: newPlan(cfg.Graph), nextID: max(cfg.FirstID, 1), stats: newHistory(cfg.History)}
	if r := cfg.Restored; r != nil {
		c.nextID = max(c.nextID, r.Metadata.ID+1)
		c.store = newStore(cfg.Job, r)
	}
	c.store.older = slices.Clone(cfg.Older)
	c.holdStored()
	return c
}

// Step takes one event in and returns what is to be done about it, in order. Time never goes back from one Step to the next.
func (c *Core) Step(now time.Time, ev Event) []Effect {
	c.now = now
	c.handle(ev)
	c.choose()
	out := c.effects
	c.effects = nil
	return out
}

func (c *Core) handle(ev Event) {
	switch ev := ev.(type) {
	case TasksRunning:
		c.tasksRunning(ev)
	case TasksStopped:
		c.tasksStopped(ev)
	case Tick:
		c.tick()
	case TriggerRequested:
		c.triggerRequested(ev)
	case EndOfDataReached:
		c.endOfDataReached()
	case TaskFinished:
		c.taskFinished(ev)
	case BacklogChanged:
		c.backlogChanged(ev)
	case LocationReady:
		c.locationReady(ev)
	case HooksCalled:
		c.hooksCalled(ev)
	case TriggerFailed:
		c.triggerFailed(ev)
	case Ack:
		c.ack(ev)
	case Decline:
		c.decline(ev)
	case MetadataWritten:
		c.metadataWritten(ev)
	case Discarded:
		c.discarded(ev)
	case SharedRemoved:
		c.sharedRemoved()
	case NotifyConfirmed:
		c.notifyConfirmed(ev)
	case Restored:
		c.stats.restored(ev, c.now)
	case AbortConfirmed:
		c.abortConfirmed(ev)
	case Replanned:
		c.replanned(ev)
	case Closed:
		c.close(ev)
	default:
		c.stale++
	}
}

// tick does everything whose time has come. Expiry comes first, so that a slot is free for what is triggered next.
func (c *Core) tick() {
	c.expire()
	c.retryDoubts()
	c.checkAlarm()
	if c.exec == nil {
		return
	}
	if c.triggering() {
		c.firePeriodic()
		c.retryFinal()
	}
	c.repeatNotify()
}

// Deadline is when the next Tick is wanted; false: only another event can change anything.
func (c *Core) Deadline() (time.Time, bool) {
	var next time.Time
	earlier := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, p := range c.pending {
		if p.phase != finalizing {
			earlier(p.expires)
		}
	}
	earlier(c.alarmAt())
	for _, d := range c.store.doubts {
		earlier(d.retryAt)
	}
	if e := c.exec; e != nil {
		if c.triggering() {
			earlier(e.timer)
			earlier(e.final.retryAt)
		}
		earlier(e.notify.retryAt)
		earlier(e.resume.retryAt)
	}
	return next, !next.IsZero()
}

// Stale is the number of events that were ignored because they are late, of another incarnation, or impossible.
func (c *Core) Stale() int { return c.stale }

func (c *Core) emit(e Effect) { c.effects = append(c.effects, e) }

// lookup finds a pending checkpoint. There are at most maxPending of them.
func (c *Core) lookup(id checkpoint.ID) *pending {
	for _, p := range c.pending {
		if p.id == id {
			return p
		}
	}
	return nil
}
