package scheduler

import (
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/job"
)

// jobTransitions are the legal transitions of a job; the diagram is in the package comment.
var jobTransitions = map[job.State][]job.State{
	job.Created:    {job.Running, job.Failing, job.Cancelling},
	job.Running:    {job.Restarting, job.Finished, job.Failing, job.Cancelling},
	job.Restarting: {job.Running, job.Failing, job.Cancelling},
	job.Failing:    {job.Failed, job.Cancelling},
	job.Cancelling: {job.Canceled},
}

// taskTransitions are the legal transitions of an attempt. Reports may be lost or overtake each other on their way, so an attempt
// may skip states, but never go back.
var taskTransitions = map[job.TaskState][]job.TaskState{
	job.TaskCreated:      {job.TaskScheduled, job.TaskCanceled},
	job.TaskScheduled:    {job.TaskDeploying},
	job.TaskDeploying:    {job.TaskInitializing, job.TaskRunning, job.TaskFinished, job.TaskCanceling, job.TaskCanceled, job.TaskFailed},
	job.TaskInitializing: {job.TaskRunning, job.TaskFinished, job.TaskCanceling, job.TaskCanceled, job.TaskFailed},
	job.TaskRunning:      {job.TaskFinished, job.TaskCanceling, job.TaskCanceled, job.TaskFailed},
	job.TaskCanceling:    {job.TaskFinished, job.TaskCanceled, job.TaskFailed},
}

// enter moves the job to a state. Events never name a job state, so an illegal one is a fault of this package.
func (c *Core) enter(to job.State, failure job.Failure, detail string) {
	if !slices.Contains(jobTransitions[c.state], to) {
		panic(fmt.Sprintf("scheduler: illegal transition of the job from %s to %s", c.state, to))
	}
	c.emit(JobStatusChanged{From: c.state, To: to, Failure: failure, Detail: detail})
	c.state, c.detail = to, detail
}

// legal reports whether an attempt in state from may be reported in state to.
func legal(from, to job.TaskState) bool { return slices.Contains(taskTransitions[from], to) }

// move moves an attempt to a state that the core itself has chosen; what executors report is checked with legal before.
func (t *execution) move(to job.TaskState) {
	if !legal(t.state, to) {
		panic(fmt.Sprintf("scheduler: illegal transition of %s from %s to %s", t.attempt, t.state, to))
	}
	t.state = to
}
