package gateway

import (
	"context"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// Jobs is what people and the command line call. Methods are safe for concurrent use.
type Jobs interface {
	// Submit starts a job. NotFound: no executor has it; Unavailable: no executor is registered; InvalidArgument: a parameter or an option is wrong.
	Submit(ctx context.Context, r Submission) (job.ID, error)
	List(ctx context.Context) ([]JobStatus, error)
	Get(ctx context.Context, id job.ID) (JobStatus, error)
	// Watch calls f with the status now and after every change, until the job is terminal or f answers an error.
	Watch(ctx context.Context, id job.ID, f func(JobStatus, []JobEvent) error) error
	// Cancel returns when the job is terminal.
	Cancel(ctx context.Context, id job.ID) (job.State, error)
	// Stop takes a savepoint with which the job ends, and returns when it has. Without a completed savepoint the job goes on, and the error says why.
	Stop(ctx context.Context, r StopJob) (StopResult, error)
	// TriggerCheckpoint returns when the checkpoint is completed, or why not. epoch 0 is not checked.
	TriggerCheckpoint(ctx context.Context, id job.ID, epoch job.LeaderEpoch) (CheckpointResult, error)
	TriggerSavepoint(ctx context.Context, r TriggerSavepoint) (CheckpointResult, error)
	// DisposeSavepoint deletes a savepoint, or a checkpoint that a job has left behind. FailedPrecondition: a running job uses it.
	DisposeSavepoint(ctx context.Context, path string) error
	// Checkpoints gives the remembered checkpoints and the statistics of all.
	Checkpoints(ctx context.Context, id job.ID) (CheckpointHistory, error)
	Checkpoint(ctx context.Context, id job.ID, checkpoint checkpoint.ID) (CheckpointDetail, error)
	// Rescale changes the parallelism of a running job, and returns when all its tasks run again. On an error the job goes on, or runs again, as it was.
	// FailedPrecondition: it does not run, or something else is going on; ResourceExhausted: there are not enough slots; Aborted: it did not come about.
	Rescale(ctx context.Context, r RescaleJob) (RescaleResult, error)
	TaskExecutors(ctx context.Context) ([]ExecutorStatus, error)
}

// Submission is a job to start.
type Submission struct {
	JobName     string
	Params      map[string]string
	Options     job.Options
	RestorePath string // directory of a checkpoint or savepoint to start from, or of a job: its newest completed checkpoint

	AllowNonRestored bool // state of operators that the job does not have is dropped; without it the start is refused
	Fallback         bool // when the checkpoint cannot be read, the next older one of its job is taken
	Claim            bool // the job owns what it starts from, and deletes it when newer checkpoints have taken its place
}

// TriggerSavepoint asks for a savepoint.
type TriggerSavepoint struct {
	Job       job.ID
	Epoch     job.LeaderEpoch     // 0 is not checked
	Directory string              // its parent; empty: the job master's default
	Format    job.SavepointFormat // FormatNone: canonical
}

// StopJob asks for the end of a job with a savepoint.
type StopJob struct {
	Job       job.ID
	Epoch     job.LeaderEpoch     // 0 is not checked
	Directory string              // parent of the savepoint; empty: the job master's default
	Mode      job.StopMode        // StopSuspend, StopDrain or StopCancel
	Format    job.SavepointFormat // FormatNone: canonical
}

// StopResult is how a job has ended with a savepoint.
type StopResult struct {
	State     job.State
	Savepoint CheckpointResult
}

// CheckpointResult is a completed checkpoint.
type CheckpointResult struct {
	ID       checkpoint.ID
	Path     string
	Duration time.Duration
}

// JobStatus is a job as people see it.
type JobStatus struct {
	ID          job.ID
	Name        string
	State       job.State
	Detail      string // what it waits for, what failed
	Submitted   time.Time
	Ended       time.Time // zero while it runs
	Restarts    int
	Vertices    []VertexStatus
	Last        *CheckpointStatus // the latest completed checkpoint
	LastRestore *RestoreStatus    // nil: no tasks were started from a checkpoint
	CheckpointCounts
	Epoch       job.LeaderEpoch
	Fingerprint string
	Conditions
}

// Conditions say in words what is special about a job; empty: it is not so.
type Conditions struct {
	Backlog     string // which tasks work off a backlog, and what that means for checkpoints
	Degraded    string // no checkpoint has completed for too long, and why
	StoppedWith string // path of the savepoint that it was stopped or canceled with
}

// CountTasks says how many tasks run, and how many there are.
func (s JobStatus) CountTasks() (running, tasks int) {
	for _, v := range s.Vertices {
		for _, t := range v.Tasks {
			tasks++
			if t.State == job.TaskRunning {
				running++
			}
		}
	}
	return running, tasks
}

// CheckpointCounts are the numbers of checkpoints and savepoints since the job master was started.
type CheckpointCounts struct {
	Completed  int
	Failed     int
	InProgress int
	Restored   int // how often tasks were started from one
}

// RestoreStatus is what tasks were started from.
type RestoreStatus struct {
	ID   checkpoint.ID
	Kind checkpoint.Kind
	Path string
	Time time.Time
}

// VertexStatus is a vertex as people see it.
type VertexStatus struct {
	ID          job.VertexID
	Name        string
	Parallelism int
	Source      bool // it starts with a source: its RecordsIn are what the source has read
	Tasks       []TaskStatus
}

// TaskStatus is the current attempt of a task as people see it.
type TaskStatus struct {
	Attempt    job.AttemptID
	State      job.TaskState
	Executor   job.ExecutorID
	Failure    string
	RecordsIn  int64
	RecordsOut int64
}

// JobEvent is a line of a job's timeline.
type JobEvent struct {
	Time time.Time
	Text string
}

// CheckpointState is the life of a checkpoint.
type CheckpointState int

// The checkpoint states.
const (
	CheckpointPending CheckpointState = iota + 1
	CheckpointFinalizing
	CheckpointCompleted
	CheckpointAborted
)

// String is the upper-case name of the state.
func (s CheckpointState) String() string {
	switch s {
	case CheckpointPending:
		return "PENDING"
	case CheckpointFinalizing:
		return "FINALIZING"
	case CheckpointCompleted:
		return "COMPLETED"
	case CheckpointAborted:
		return "ABORTED"
	}
	return "UNKNOWN"
}

// CheckpointStatus is a checkpoint as people see it.
type CheckpointStatus struct {
	ID           checkpoint.ID
	Kind         checkpoint.Kind
	State        CheckpointState
	Triggered    time.Time
	Sent         time.Duration // from trigger until the barriers were sent; 0: not yet
	Duration     time.Duration // from trigger to the end; 0: not yet
	Notified     time.Duration // from trigger until the last task had confirmed the completion; 0: not yet, or nobody is told
	StateBytes   int64
	Path         string
	Failure      string
	Tasks        int
	Acknowledged int
	Restored     bool // the running execution started from it
	Discarded    bool // subsumed: its files are gone or going
}

// CheckpointHistory is what is remembered and measured of the checkpoints of a job.
type CheckpointHistory struct {
	CheckpointCounts
	LastRestore *RestoreStatus // nil: no tasks were started from a checkpoint
	Summary     checkpoint.CompletedSummary
	// Checkpoints are the newest, newest first. The latest completed checkpoint, the latest savepoint and the latest aborted one are always among them.
	Checkpoints []CheckpointStatus
}

// LatestCompleted is the latest completed checkpoint, savepoints not counted; nil: none is remembered.
func (h CheckpointHistory) LatestCompleted() *CheckpointStatus {
	return h.newest(CheckpointCompleted, checkpoint.Checkpoint)
}

// LatestSavepoint is the latest completed savepoint; nil: none is remembered.
func (h CheckpointHistory) LatestSavepoint() *CheckpointStatus {
	return h.newest(CheckpointCompleted, checkpoint.Savepoint)
}

// LatestFailed is the latest aborted checkpoint or savepoint; nil: none is remembered.
func (h CheckpointHistory) LatestFailed() *CheckpointStatus {
	return h.newest(CheckpointAborted, checkpoint.Checkpoint, checkpoint.Savepoint)
}

func (h CheckpointHistory) newest(state CheckpointState, kinds ...checkpoint.Kind) *CheckpointStatus {
	for _, c := range h.Checkpoints { // newest first
		if c.State == state && slices.Contains(kinds, c.Kind) {
			return &c
		}
	}
	return nil
}

// CheckpointDetail is a checkpoint with the parts of its tasks; when it is too old for details they are not there.
type CheckpointDetail struct {
	CheckpointStatus
	Vertices []VertexCheckpoint
	Subtasks []SubtaskCheckpoint
}

// VertexCheckpoint is the part of the tasks of one vertex in a checkpoint.
type VertexCheckpoint struct {
	Vertex       job.VertexID
	Tasks        int                                    // that have a part in it
	Acknowledged int                                    // of Tasks; the summaries are of these
	Latency      checkpoint.StatsSummary[time.Duration] // from trigger to ack
	Metrics      checkpoint.MetricsSummary
}

// SubtaskCheckpoint is one task's part of a checkpoint.
type SubtaskCheckpoint struct {
	Task         job.TaskID
	Acknowledged bool
	Late         bool          // the ack came when the checkpoint was aborted already; Latency and Metrics are set all the same
	Latency      time.Duration // from trigger to ack
	Metrics      checkpoint.Metrics
}

// ExecutorStatus is a task executor as people see it.
type ExecutorStatus struct {
	ID         job.ExecutorID
	Address    string
	Slots      int
	FreeSlots  int
	Jobs       []string
	Registered time.Time
	Heartbeat  time.Time
	Version    string
}
