package scheduler

import (
	"github.com/weirstream/weir/internal/job"
)

// Event is what happens to a job. Every event has a stable one-line String.
type Event interface {
	event()
	String() string
}

// Start: the job was submitted.
type Start struct{}

// SlotsAllocated answers RequestSlots: these slots are the job's until ReleaseSlots.
type SlotsAllocated struct{ Slots []job.Slot }

// SlotsShort answers RequestSlots: there are not enough, the request stays open and SlotsAllocated follows when there are.
type SlotsShort struct {
	Required  int
	Available int
	Message   string // what the job waits for, for people
}

// TaskStateChanged: an executor reports the state of an attempt.
type TaskStateChanged struct {
	Attempt   job.AttemptID
	State     job.TaskState
	Failure   job.Failure // of TaskFailed
	EndOfData bool        // the task has reached its end of input; may come more than once
}

// ExecutorLost: an executor is gone, with everything that ran there.
type ExecutorLost struct {
	Executor job.ExecutorID
	Message  string
}

// DeployFailed: an executor refused a deployment or could not be reached. What it may have started all the same is canceled.
type DeployFailed struct {
	Executor job.ExecutorID
	Attempts []job.AttemptID // that were deployed
	Failure  job.Failure
}

// TasksUnknown: an executor does not run these attempts, and will not start them later.
type TasksUnknown struct{ Attempts []job.AttemptID }

// JobFailed: something beyond a single task failed, e.g. too many checkpoints; the job restarts by its strategy. If one attempt is to blame only
// its region does.
type JobFailed struct {
	Failure job.Failure
	Attempt job.AttemptID // empty: nobody in particular
}

// CheckpointCompleted: the job has made progress.
type CheckpointCompleted struct{}

// CancelRequested: the user cancels the job.
type CancelRequested struct{}

// Replan: the job shall run by another graph of its operators, with another parallelism, from its latest checkpoint. All tasks are stopped; when the
// last one has ended the graph is in force, which Replanned says. It is no failure. It is refused, and counted as illegal, unless the job is
// RUNNING or RESTARTING.
type Replan struct {
	Graph *job.Graph
	// Trial: if the job would fail before all tasks have run by the graph, it does not: ReplanFailed says why, and it waits for the next Replan.
	Trial bool
}

// Tick: time has passed; the loop sends it when the deadline that the core reported is reached. Random is in [0,1); it stirs the jitter,
// which is otherwise a sequence that the job's id decides.
type Tick struct{ Random float64 }

func (Start) event()               {}
func (SlotsAllocated) event()      {}
func (SlotsShort) event()          {}
func (TaskStateChanged) event()    {}
func (ExecutorLost) event()        {}
func (DeployFailed) event()        {}
func (TasksUnknown) event()        {}
func (JobFailed) event()           {}
func (CheckpointCompleted) event() {}
func (CancelRequested) event()     {}
func (Replan) event()              {}
func (Tick) event()                {}
