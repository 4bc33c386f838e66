package scheduler

import (
	"fmt"
	"time"

	"github.com/weirstream/weir/internal/job"
)

const (
	defaultCancelTimeout = 30 * time.Second
	// cancelRetry is how long CancelTasks may stay without effect before it is sent again.
	cancelRetry = time.Second
)

// Core is the scheduler of one job. It is not safe for concurrent use: one loop owns it.
type Core struct {
	cfg     Config
	state   job.State
	failure job.Failure
	detail  string

	tasks   []*execution // the present attempt of each task, in graph order
	byTask  map[job.TaskID]*execution
	regions []*region

	seats   seats
	waiting string // why the slots do not come; empty: they were not refused

	said struct {
		running, endOfData bool // TasksRunning and EndOfDataReached were sent for the present attempts
	}
	replanning replanning

	restarts struct {
		strategy strategy
		count    int
		at       time.Time // when the latest planned restart may begin
	}
	cancelAgain time.Time // when CancelTasks is to be repeated

	dropped struct{ stale, illegal int }
	out     []Effect
}

// execution is the present attempt of a task.
type execution struct {
	attempt   job.AttemptID
	region    *region
	state     job.TaskState
	executor  job.ExecutorID
	address   string
	endOfData bool
	announced bool // it was part of a TasksRunning, and of no TasksStopped since

	cancelSent bool
	giveUp     time.Time   // when an attempt that was told to end is given up
	failure    job.Failure // the task's latest, kept over attempts
}

// live reports whether the attempt may be running on an executor.
func (t *execution) live() bool { return t.state >= job.TaskDeploying && !t.state.Terminal() }

func (t *execution) placement() job.Placement {
	return job.Placement{Attempt: t.attempt, Executor: t.executor, Address: t.address}
}

// New makes the scheduler of a job in state CREATED; nothing happens before Start.
func New(cfg Config) *Core {
	cfg.Restart = job.Options{Restart: cfg.Restart}.Normalize().Restart
	if cfg.CancelTimeout == 0 {
		cfg.CancelTimeout = defaultCancelTimeout
	}
	c := &Core{cfg: cfg, state: job.Created}
	c.restarts.strategy = newStrategy(cfg.Restart, cfg.Job)
	c.populate(cfg.Graph, max(cfg.FirstAttempt, 1))
	c.seats = newSeats(cfg.Graph)
	return c
}

// populate makes the tasks of a graph, to be deployed.
func (c *Core) populate(g *job.Graph, attempt int) {
	c.cfg.Graph, c.tasks, c.byTask = g, nil, map[job.TaskID]*execution{}
	for _, id := range g.Tasks() {
		t := &execution{attempt: job.AttemptID{Job: c.cfg.Job, Task: id, Attempt: attempt}, state: job.TaskCreated}
		c.tasks = append(c.tasks, t)
		c.byTask[id] = t
	}
	c.regions = c.newRegions()
}

// Step takes an event and returns what is to be done about it, in this order. The slice is the caller's.
func (c *Core) Step(now time.Time, ev Event) []Effect {
	c.dispatch(now, ev)
	c.chaseCanceled(now)
	c.settle(now)
	out := c.out
	c.out = nil
	return out
}

func (c *Core) dispatch(now time.Time, ev Event) {
	switch ev := ev.(type) {
	case Start:
		c.start()
	case SlotsAllocated:
		c.slotsAllocated(now, ev)
	case SlotsShort:
		c.slotsShort(ev)
	case TaskStateChanged:
		c.taskStateChanged(now, ev)
	case ExecutorLost:
		c.executorLost(now, ev)
	case DeployFailed:
		c.deployFailed(now, ev)
	case TasksUnknown:
		c.tasksUnknown(now, ev)
	case JobFailed:
		c.jobFailed(now, ev)
	case CheckpointCompleted:
		c.restarts.strategy.progressed()
	case CancelRequested:
		c.cancelJob(now)
	case Replan:
		c.replan(now, ev)
	case Tick:
		c.restarts.strategy.stir(ev.Random)
	default:
		panic(fmt.Sprintf("scheduler: unknown event %T", ev))
	}
}

// settle does what becomes possible when the last attempt has ended or a delay has passed, whichever event that was.
func (c *Core) settle(now time.Time) {
	if c.state == job.Created || c.state == job.Restarting {
		c.resume(now)
	}
	switch c.state {
	case job.Running:
		if c.liveTasks() == 0 {
			c.finish()
			return
		}
	case job.Failing:
		if c.liveTasks() == 0 {
			c.end(job.Failed, c.failure)
		}
	case job.Cancelling:
		if c.liveTasks() == 0 {
			c.end(job.Canceled, job.Failure{})
		}
	default: // has no attempts yet, restarts, or has ended
	}
	c.announce(now)
}

// Deadline is when the core needs the next Tick, if at all.
func (c *Core) Deadline() (time.Time, bool) {
	var next time.Time
	earlier := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	for _, t := range c.tasks {
		if t.ending() {
			earlier(t.giveUp)
			earlier(c.cancelAgain)
		}
	}
	switch {
	case c.state != job.Restarting || c.replanning.held:
	case c.replanning.next != nil:
		if c.liveTasks() == 0 {
			earlier(c.delayed())
		}
	default:
		for _, r := range c.regions {
			if r.phase == stopping && !r.live() {
				earlier(r.at)
			}
		}
	}
	return next, !next.IsZero()
}

// fence returns the present attempt of the task if it is the one that is meant and is live; everything else is counted as stale.
func (c *Core) fence(id job.AttemptID) *execution {
	if t := c.byTask[id.Task]; t != nil && t.attempt == id && t.live() {
		return t
	}
	c.dropped.stale++
	return nil
}

func (c *Core) liveTasks() int { return c.count((*execution).live) }

func (c *Core) count(is func(*execution) bool) int {
	n := 0
	for _, t := range c.tasks {
		if is(t) {
			n++
		}
	}
	return n
}

func (c *Core) emit(e Effect) { c.out = append(c.out, e) }
