package scheduler

import (
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// Effect is what the scheduler wants done. The loop does it after Step has returned. Every effect has a stable one-line String.
type Effect interface {
	effect()
	String() string
}

// RequestSlots: allocate this many slots on executors that have the job; answer with SlotsAllocated or SlotsShort, unless none is wanted. It takes the place of an open
// request. What the job has and does not keep is given back; but it may be allocated again at once, and is if it is preferred.
type RequestSlots struct {
	Count  int
	Keep   []job.ExecutorID // one entry for each slot that the job keeps
	Prefer []job.ExecutorID // one entry for each slot that is wanted first of all: the tasks ran there before
}

// ReleaseSlots: give back every slot of the job, and withdraw an open request.
type ReleaseSlots struct{}

// Deploy: restore state from the latest completed checkpoint and start these tasks where they are placed, one call per executor. They are all
// tasks of one or more regions; those of other regions run on.
type Deploy struct{ Placements []job.Placement }

// CancelTasks: cancel these attempts on their executors; each ends with TaskStateChanged, TasksUnknown or ExecutorLost. If the
// executor is no longer registered the answer is TasksUnknown. The effect comes again, once a second, for attempts that have not ended.
type CancelTasks struct{ Placements []job.Placement }

// DropExecutor: the executor did not end its attempts within the cancel timeout. They count as lost and may still run, so it must get
// no slot of the job before it has registered anew, as a process that runs none of them.
type DropExecutor struct {
	Executor job.ExecutorID
	Message  string
}

// JobStatusChanged: the job entered a state. For logs, watchers and the coordinator.
type JobStatusChanged struct {
	From, To job.State
	Failure  job.Failure // why, for Restarting, Failing and Failed
	Detail   string      // e.g. "restart 3 in 400ms"
}

// TasksRunning: every task is RUNNING, or has FINISHED; checkpoints may start.
type TasksRunning struct {
	Placements []job.Placement // of all tasks
	Finished   []job.AttemptID // those that have: the tasks of regions that were not restarted with the others
}

// TasksStopped: that is no longer so. A task that FINISHED does not stop the others: it comes when the job leaves RUNNING, or when another region
// fails before all tasks run again. Each attempt of a TasksRunning is in exactly one. Failure is empty when the job was canceled or has finished.
type TasksStopped struct {
	Failure  job.Failure
	Attempts []job.AttemptID // those that stopped, the others run on; nil: none does
}

// AbortReason is why the checkpoints are aborted that are pending when the tasks stop.
func (e TasksStopped) AbortReason() checkpoint.Reason {
	switch {
	case e.Attempts != nil:
		return checkpoint.FailoverRegion
	case e.Failure.Class == job.FailureTask:
		return checkpoint.TaskFailure
	}
	return checkpoint.Suspended
}

// TaskFinished: a task is done while others run. It comes between TasksRunning and the TasksStopped that has the attempt.
type TaskFinished struct{ Attempt job.AttemptID }

// RegionsRestart: more regions have failed while the job is RESTARTING, and restart too.
type RegionsRestart struct {
	Failure job.Failure
	Detail  string // e.g. "restart 3 in 400ms: 2 tasks of 8"
}

// Replanned: the last task of the old graph has ended, and the new one is in force. No task of it is deployed before the next effects.
type Replanned struct{ Graph *job.Graph }

// ReplanFailed: the tasks of a graph on trial cannot run. They are told to end; nothing is deployed until the next Replan.
type ReplanFailed struct{ Failure job.Failure }

// EndOfDataReached: every task has reached its end of input; the final checkpoint may be triggered.
type EndOfDataReached struct{}

// Waiting: the job waits for resources; Detail says which. Empty: it no longer does.
type Waiting struct{ Detail string }

func (RequestSlots) effect()     {}
func (ReleaseSlots) effect()     {}
func (Deploy) effect()           {}
func (CancelTasks) effect()      {}
func (DropExecutor) effect()     {}
func (JobStatusChanged) effect() {}
func (TasksRunning) effect()     {}
func (TasksStopped) effect()     {}
func (TaskFinished) effect()     {}
func (RegionsRestart) effect()   {}
func (Replanned) effect()        {}
func (ReplanFailed) effect()     {}
func (EndOfDataReached) effect() {}
func (Waiting) effect()          {}

// Config is what a scheduler core is made of.
type Config struct {
	Job     job.ID
	Graph   *job.Graph
	Restart job.RestartOptions
	// FirstAttempt is the number of the first attempt of each task; lower ones were used by an earlier job master. 0: 1.
	FirstAttempt int
	// CancelTimeout: an attempt that does not end within it after CancelTasks counts as lost with its executor; 0: 30 s.
	CancelTimeout time.Duration
}
