package gateway

import (
	"context"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// JobMaster is what task executors call. Methods are safe for concurrent use.
type JobMaster interface {
	// RegisterTaskExecutor registers an executor, calls registered once, and blocks for as long as the registration lives: its return is the
	// end of it, for both sides. Errors: ctx's, Unavailable when the connection breaks, FailedPrecondition when a newer incarnation took over.
	RegisterTaskExecutor(ctx context.Context, r Registration, registered func(Registered)) error
	Heartbeat(ctx context.Context, r Heartbeat) (HeartbeatAnswer, error)
	UpdateTaskState(ctx context.Context, r TaskUpdate) error
	// AcknowledgeCheckpoint answers after the ack was applied. On an error the ack may have been applied.
	AcknowledgeCheckpoint(ctx context.Context, r Ack) (checkpoint.Verdict, error)
	DeclineCheckpoint(ctx context.Context, r Decline) error
}

// Registration is how an executor introduces itself.
type Registration struct {
	Executor    job.ExecutorID
	Incarnation string // one life of the process; a new one replaces the old one at once
	Address     string // host:port where the job master and the other executors reach it
	Slots       int
	Jobs        []string
	Version     string
}

// Registered is the job master's answer.
type Registered struct {
	Epoch             job.LeaderEpoch
	HeartbeatInterval time.Duration
	CheckpointDir     string // storage URL that every process must reach
}

// Heartbeat repeats what the job master may have missed.
type Heartbeat struct {
	Executor    job.ExecutorID
	Incarnation string
	Epoch       job.LeaderEpoch
	Tasks       []TaskReport
}

// TaskReport is one task in a heartbeat.
type TaskReport struct {
	Attempt            job.AttemptID
	State              job.TaskState
	EndOfData          bool
	RecordsIn          int64
	RecordsOut         int64
	NotifiedCheckpoint checkpoint.ID // the highest whose completion the task has been told
}

// HeartbeatAnswer is what the executor may have missed.
type HeartbeatAnswer struct {
	Unknown   []job.AttemptID          // attempts of the request that the job master does not know; the executor cancels them
	Completed map[job.ID]checkpoint.ID // the highest completed checkpoint of each job
}

// TaskUpdate reports a change of a task.
type TaskUpdate struct {
	Epoch     job.LeaderEpoch
	Attempt   job.AttemptID
	State     job.TaskState
	Failure   job.Failure
	EndOfData bool
	Backlog   bool // the source of the task works off a backlog
}

// Ack is a task's part of a checkpoint.
type Ack struct {
	Epoch   job.LeaderEpoch
	Attempt job.AttemptID
	ID      checkpoint.ID
	State   checkpoint.SubtaskState
	Metrics checkpoint.Metrics
}

// Decline says that a task will not take its part of a checkpoint.
type Decline struct {
	Epoch   job.LeaderEpoch
	Attempt job.AttemptID
	ID      checkpoint.ID
	Reason  checkpoint.Reason
	Message string
}
