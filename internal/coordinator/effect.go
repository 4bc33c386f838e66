package coordinator

import (
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// Effect is what the coordinator wants done. The loop does it after Step has returned. Every effect has a stable one-line String.
type Effect interface {
	effect()
	String() string
}

// InitLocation: make the directory of a checkpoint ready; answer with LocationReady.
type InitLocation struct {
	ID        checkpoint.ID
	Kind      checkpoint.Kind
	Directory string // parent of a savepoint
}

// CallHooks: call Trigger of every master hook of the job, beside the loop; answer with HooksCalled.
type CallHooks struct {
	ID        checkpoint.ID
	Timestamp time.Time
}

// SendTrigger: tell the executors of these attempts to inject the barrier; one call per executor.
type SendTrigger struct {
	ID        checkpoint.ID
	Dir       string // where the tasks put their state files
	Timestamp time.Time
	Attempts  []job.AttemptID
	Final     bool
	Kind      checkpoint.Kind
	Stop      job.StopMode // what it means to the tasks: StopSuspend, StopDrain or none
	Base      checkpoint.ID
	Format    job.SavepointFormat
}

// AckReply answers an Ack after it was applied.
type AckReply struct {
	Request RequestID
	Verdict checkpoint.Verdict
}

// WriteMetadata: write _metadata durably into Dir, beside the loop; answer with MetadataWritten.
type WriteMetadata struct {
	ID       checkpoint.ID
	Dir      string
	Metadata *checkpoint.Metadata
	// Stops: the tasks finish with it. Before the answer is Written the next leader must be sure to find it too, and to restore from nothing else.
	Stops bool
}

// SendNotifyComplete: tell these attempts that ID is durable.
type SendNotifyComplete struct {
	ID       checkpoint.ID
	Attempts []job.AttemptID
}

// SendNotifyAborted: tell these attempts that ID will not complete, and which one is the latest that did.
type SendNotifyAborted struct {
	ID              checkpoint.ID
	LatestCompleted checkpoint.ID
	Attempts        []job.AttemptID
}

// Discard: delete the checkpoint in Dir, its metadata first; answer with Discarded. Shared files stay, unless it is Claimed: they are those of another
// job, and go if no checkpoint beside it refers to them.
type Discard struct {
	ID      checkpoint.ID
	Dir     string
	Claimed bool
}

// RemoveShared: delete these files of the job's shared directory, which nothing refers to any more; answer with SharedRemoved. What is left is
// found by age.
type RemoveShared struct{ Files []string }

// Reply answers a TriggerRequested, exactly once.
type Reply struct {
	Request  RequestID
	ID       checkpoint.ID
	Dir      string
	Duration time.Duration
	Reason   checkpoint.Reason // none: it completed
	Message  string
}

// Completed: a checkpoint is durable. For logs, statistics and the scheduler.
type Completed struct {
	ID       checkpoint.ID
	Kind     checkpoint.Kind
	Final    bool
	Stop     job.StopMode
	Duration time.Duration
	Bytes    int64
}

// Aborted: a checkpoint will never complete. For logs and statistics.
type Aborted struct {
	ID      checkpoint.ID
	Kind    checkpoint.Kind
	Reason  checkpoint.Reason
	Message string
}

// Degraded: for too long no checkpoint has completed; Core.Degraded says so until Recovered.
type Degraded struct{ Message string }

// Recovered: a checkpoint has completed after Degraded.
type Recovered struct{ After time.Duration }

// FailJob: more checkpoints have failed in a row than the job tolerates, or its tasks were drained for a savepoint that did not complete.
type FailJob struct {
	Failure job.Failure
	Attempt job.AttemptID // of the task that is to blame for the last checkpoint; empty: none is
}

// CancelJob: the savepoint in Dir has completed with which the job was to be canceled.
type CancelJob struct{ Dir string }

func (InitLocation) effect()       {}
func (CallHooks) effect()          {}
func (SendTrigger) effect()        {}
func (AckReply) effect()           {}
func (WriteMetadata) effect()      {}
func (SendNotifyComplete) effect() {}
func (SendNotifyAborted) effect()  {}
func (Discard) effect()            {}
func (RemoveShared) effect()       {}
func (Reply) effect()              {}
func (Completed) effect()          {}
func (Aborted) effect()            {}
func (Degraded) effect()           {}
func (Recovered) effect()          {}
func (FailJob) effect()            {}
func (CancelJob) effect()          {}
