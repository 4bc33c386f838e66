package gateway

import (
	"context"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// TaskExecutor is what the job master calls. Methods are safe for concurrent use; each applies in full or answers an error. The methods that
// answer attempts answer those that the executor does not run.
type TaskExecutor interface {
	// PlanJob runs the job's definition and gives its graph. Errors: InvalidArgument for a bad parameter or input, NotFound for an unknown job.
	PlanJob(ctx context.Context, r PlanJob) (*job.Graph, error)
	// DeployTasks starts tasks. It returns when they are accepted, not when they run. A deployment that was accepted before is accepted again.
	DeployTasks(ctx context.Context, r DeployTasks) error
	CancelTasks(ctx context.Context, r CancelTasks) (unknown []job.AttemptID, err error)
	TriggerCheckpoint(ctx context.Context, r TriggerCheckpoint) (unknown []job.AttemptID, err error)
	NotifyCheckpointComplete(ctx context.Context, r NotifyCheckpointComplete) (unknown []job.AttemptID, err error)
	NotifyCheckpointAborted(ctx context.Context, r NotifyCheckpointAborted) (unknown []job.AttemptID, err error)
}

// PlanJob asks for a job's graph.
type PlanJob struct {
	JobName string
	Params  map[string]string
	Options job.Options
	// WithoutSplits: the input is not looked at, and the graph has no splits.
	WithoutSplits bool
}

// DeployTasks asks an executor to start its tasks of one execution of a job.
type DeployTasks struct {
	Epoch      job.LeaderEpoch
	Job        job.ID
	Graph      *job.Graph
	Options    job.Options
	Placements []job.Placement // of every task that one of these is connected to, those of other executors included
	Tasks      []TaskDeployment
}

// TaskDeployment is one task to start.
type TaskDeployment struct {
	Attempt job.AttemptID
	Restore *TaskRestore // nil: a fresh start
	Splits  []int        // indexes into the vertex's splits; only on a fresh start of a source
}

// TaskRestore is the state that a task starts from.
type TaskRestore struct {
	Checkpoint checkpoint.ID
	Dir        string // what handle paths are relative to, as a storage path
	State      checkpoint.Restore
	Stopped    bool // the job was stopped with this checkpoint: emit nothing, and finish when it is notified
}

// CancelTasks asks to end attempts; each is reported terminal by UpdateTaskState.
type CancelTasks struct {
	Epoch    job.LeaderEpoch
	Attempts []job.AttemptID
}

// TriggerCheckpoint asks the attempts, all of them sources, to inject a barrier.
type TriggerCheckpoint struct {
	Epoch     job.LeaderEpoch
	ID        checkpoint.ID
	Dir       string // where the tasks put their state files, as a storage path
	Timestamp time.Time
	Attempts  []job.AttemptID
	Final     bool
	Stop      job.StopMode        // the tasks finish when it has completed; StopSuspend or StopDrain
	Base      checkpoint.ID       // whose shared files the tasks may refer to; 0: none
	Format    job.SavepointFormat // of a savepoint
}

// NotifyCheckpointComplete tells attempts that a checkpoint is durable.
type NotifyCheckpointComplete struct {
	Epoch    job.LeaderEpoch
	ID       checkpoint.ID
	Attempts []job.AttemptID
}

// NotifyCheckpointAborted tells attempts that a checkpoint will never be durable.
type NotifyCheckpointAborted struct {
	Epoch           job.LeaderEpoch
	ID              checkpoint.ID
	LatestCompleted checkpoint.ID // 0: none
	Attempts        []job.AttemptID
}
