package scheduler

import (
	"fmt"

	"github.com/weirstream/weir/internal/job"
)

// Execution is the present attempt of a task, for status.
type Execution struct {
	Task        job.TaskID
	Attempt     int
	State       job.TaskState
	Executor    job.ExecutorID // empty before the attempt is placed
	Address     string
	LastFailure job.Failure // of this attempt or of an earlier one of the task
}

// State is the state of the job.
func (c *Core) State() job.State { return c.state }

// Failure is the cause of the latest restart, or of the end of a job that FAILED; empty if there was none.
func (c *Core) Failure() job.Failure { return c.failure }

// Restarts is how many times the job has begun to restart.
func (c *Core) Restarts() int { return c.restarts.count }

// Stale is how many messages of old or ended attempts were dropped.
func (c *Core) Stale() int { return c.dropped.stale }

// Illegal is how many events were dropped because they cannot follow on what came before.
func (c *Core) Illegal() int { return c.dropped.illegal }

// Detail says what the job does or waits for, in addition to its state; it may be empty.
func (c *Core) Detail() string {
	live := c.count((*execution).ending)
	switch {
	case c.waiting != "":
		return c.waiting
	case c.seats.opened:
		return "asks for " + plural(len(c.seats.asked), "slot")
	case c.state == job.Running && !c.said.running:
		return fmt.Sprintf("%d of %d tasks are running", c.count((*execution).isRunning), len(c.tasks))
	case c.state != job.Running && live > 0:
		return "waits for " + plural(live, "task") + " to end"
	}
	return c.detail
}

// Executions lists the present attempt of each task, in graph order.
func (c *Core) Executions() []Execution {
	out := make([]Execution, 0, len(c.tasks))
	for _, t := range c.tasks {
		out = append(out, Execution{
			Task: t.attempt.Task, Attempt: t.attempt.Attempt, State: t.state,
			Executor: t.executor, Address: t.address, LastFailure: t.failure,
		})
	}
	return out
}
