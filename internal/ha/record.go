package ha

import (
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// Job is what a job was submitted as. It is written once and never changes.
type Job struct {
	ID        job.ID
	Order     int // of submission
	Name      string
	Params    map[string]string
	Options   job.Options
	Graph     *job.Graph
	Submitted time.Time
	// Restore is the directory of the checkpoint that the job was to start from, as the job master names it; empty: none.
	Restore string
	Claimed bool // the job owns that checkpoint
}

// Progress is what must never be used a second time, and what must not be missing.
type Progress struct {
	// Attempt is the highest number of an execution that tasks may have been deployed with.
	Attempt int
	// Reserved is the highest checkpoint id that may have been used.
	Reserved checkpoint.ID
	// Completed is a checkpoint that was completed: the newest one that is there cannot be older.
	Completed checkpoint.ID
	// Stopped is the directory of the savepoint that the job was stopped with, as the job master names it; empty: it was not. Its tasks may have
	// committed what that promised, so nothing else is ever restored.
	Stopped string `json:",omitempty"`
}

// Plan is how a job runs since its parallelism was changed, in the place of what it was submitted with. It is recorded before any task of it is
// deployed, and the next job master goes on with it.
type Plan struct {
	Parallelism         int            // as in job.Options
	OperatorParallelism map[string]int `json:",omitempty"` // as in job.Options
	Graph               *job.Graph
}

// End says that a job has ended. Such a job never runs again.
type End struct {
	State     job.State // Finished, Canceled or Failed
	Failure   string    // why it is Failed
	At        time.Time
	DeleteAll bool // its checkpoints go with it
	Clean     bool // everything that was to be deleted is
	Restarts  int
	Completed int // checkpoints
	Failed    int // checkpoints
	// StoppedWith is the path of the savepoint that the job was stopped with; empty: it was not.
	StoppedWith string `json:",omitempty"`
}

// Record is all that is kept of a job.
type Record struct {
	Job      Job // with the options and the graph of Plan, if there is one
	Progress Progress
	Plan     *Plan // nil: its parallelism was never changed
	End      *End  // nil: it has not ended
}
