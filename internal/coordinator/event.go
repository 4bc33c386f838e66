package coordinator

import (
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// Event is what happens to the coordinator. Every event has a stable one-line String.
type Event interface {
	event()
	String() string
}

// RequestID is chosen by the loop and comes back in the effect that answers the request.
type RequestID int64

// TasksRunning: the job is RUNNING with all its tasks RUNNING or FINISHED; triggering may start. Tasks are all tasks of the job.
type TasksRunning struct {
	Tasks []Task
	// Random is a number in [0,1): where in [min pause, interval] the first trigger falls.
	Random float64
}

// Task is what the coordinator knows of a task of the running execution.
type Task struct {
	Attempt job.AttemptID
	Source  bool // it has no inputs: barriers are injected here
	Behind  bool // it has said that it works off a backlog
	// Finished: it has, while those of another region were being restarted, or before the others ran.
	Finished bool
}

// TasksStopped: the job left that state; nothing may be triggered and everything pending is aborted, but for what is FINALIZING: see
// Core.Settled. No reason means Suspended. With Attempts only these have stopped, all tasks of some failover regions, and the others run on: they
// hear of aborted and completed checkpoints, and still do when TasksRunning says that those were started again.
type TasksStopped struct {
	Reason   checkpoint.Reason
	Attempts []job.AttemptID
}

// Tick: time has passed; the loop sends it when the deadline that the core reported is reached.
type Tick struct{}

// TriggerRequested: somebody asks for a checkpoint or a savepoint; the answer is a Reply effect.
type TriggerRequested struct {
	Request   RequestID
	Kind      checkpoint.Kind
	Directory string       // of a savepoint
	Stop      job.StopMode // the job ends with the savepoint
	Format    job.SavepointFormat
}

// EndOfDataReached: all tasks have reached their end of input; the final checkpoint may be triggered. TasksStopped forgets it.
type EndOfDataReached struct{}

// TaskFinished: a task has reached its end, has committed everything, and is gone; the others run on. It comes after TasksRunning and before the
// TasksStopped that has the task.
type TaskFinished struct{ Attempt job.AttemptID }

// BacklogChanged: a task has begun to work off a backlog, or has done so. Meanwhile Options.IntervalDuringBacklog is in force.
type BacklogChanged struct {
	Attempt job.AttemptID
	Behind  bool
}

// LocationReady answers InitLocation.
type LocationReady struct {
	ID  checkpoint.ID
	Dir string
	Err string
}

// HooksCalled answers CallHooks.
type HooksCalled struct {
	ID     checkpoint.ID
	States []checkpoint.MasterState // of hooks that keep something; their ids are hooks of the job, each once
	Err    string                   // names the hook that failed
}

// TriggerFailed: a trigger did not reach an executor, or the executor did not know an attempt.
type TriggerFailed struct {
	ID      checkpoint.ID
	Attempt job.AttemptID
	Err     string
}

// Ack: a task has taken its snapshot. The answer is an AckReply effect with the same Request.
type Ack struct {
	Request RequestID
	Epoch   job.LeaderEpoch
	Attempt job.AttemptID
	ID      checkpoint.ID
	State   checkpoint.SubtaskState
	Metrics checkpoint.Metrics
}

// Decline: a task could not or would not take its snapshot.
type Decline struct {
	Epoch   job.LeaderEpoch
	Attempt job.AttemptID
	ID      checkpoint.ID
	Reason  checkpoint.Reason
	Message string
}

// MetadataWritten answers WriteMetadata.
type MetadataWritten struct {
	ID      checkpoint.ID
	Outcome WriteOutcome
	Err     string // why not, or why it is not known
}

// WriteOutcome is what has become of a write.
type WriteOutcome int

// The outcomes. The loop says Uncertain only when it has asked the storage and got no answer: the checkpoint may be durable then, so its files
// are kept, and no older one is restored from before it is deleted.
const (
	Written WriteOutcome = iota
	NotWritten
	Uncertain
)

// Discarded answers Discard.
type Discarded struct {
	ID  checkpoint.ID
	Err string
}

// SharedRemoved answers RemoveShared.
type SharedRemoved struct{ Err string }

// NotifyConfirmed: a task has been told of the completion of ID, and so of every earlier one.
type NotifyConfirmed struct {
	Attempt job.AttemptID
	ID      checkpoint.ID
}

// Restored: tasks are being started from a checkpoint. For statistics only.
type Restored struct {
	ID   checkpoint.ID
	Kind checkpoint.Kind
	Dir  string
}

// AbortConfirmed: a task has been told that ID will not complete.
type AbortConfirmed struct {
	Attempt job.AttemptID
	ID      checkpoint.ID
}

// Replanned: the job goes on by another graph of its operators, with another parallelism. It comes while no task runs and the core is Settled, and is
// ignored otherwise. Ids, retained checkpoints and statistics go on.
type Replanned struct{ Graph *job.Graph }

// Closed: the job is terminal; DeleteAll says whether its retained checkpoints go with it. The loop goes on with answers until the core is
// Settled and nothing is Deleting.
type Closed struct{ DeleteAll bool }

func (TasksRunning) event()     {}
func (TasksStopped) event()     {}
func (Tick) event()             {}
func (TriggerRequested) event() {}
func (EndOfDataReached) event() {}
func (TaskFinished) event()     {}
func (BacklogChanged) event()   {}
func (LocationReady) event()    {}
func (HooksCalled) event()      {}
func (TriggerFailed) event()    {}
func (Ack) event()              {}
func (Decline) event()          {}
func (MetadataWritten) event()  {}
func (Discarded) event()        {}
func (SharedRemoved) event()    {}
func (NotifyConfirmed) event()  {}
func (Restored) event()         {}
func (AbortConfirmed) event()   {}
func (Replanned) event()        {}
func (Closed) event()           {}

// Config are the rules of one job's checkpoints.
type Config struct {
	Job     job.ID
	JobName string
	Params  map[string]string
	Graph   *job.Graph
	Epoch   job.LeaderEpoch
	Options job.CheckpointOptions
	// Restored is the checkpoint that the job starts from, nil for none. A restored savepoint or a checkpoint of another job is never deleted.
	Restored *checkpoint.Completed
	// Older are completed before Restored and not yet deleted, oldest first: newer ones take their place. Their Metadata may be nil.
	Older []*checkpoint.Completed
	// FirstID is the lowest id that may be used.
	FirstID checkpoint.ID
	// History is the number of checkpoints that statistics remember; 0: job.DefaultCheckpointHistory, at most job.MaxCheckpointHistory.
	History int
	// NotifyRetry is how long a completion may stay unconfirmed before it is sent again; 0: 1 s.
	NotifyRetry time.Duration
}
