package task

import (
	"context"
	"io"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream"
)

// Input is the receiving end of all channels of a task; see exchange.Gate.
type Input interface {
	Channels() int
	Next() (channel int, e element.Element, ok bool, err error)
	Block(channel int)
	Unblock()
}

// Output is the sending end of one edge: batches of a router and the channels behind it.
type Output interface {
	// Buffered reports whether records wait for their batch to fill.
	Buffered() bool
	// Flush sends them.
	Flush() error
	// Broadcast sends an event to every receiver.
	Broadcast(e element.Element) error
	// Records is the number of records sent so far.
	Records() int64
}

// Operator is an operator of the chain.
type Operator struct {
	ID string
	stream.Operator
}

// Chain is the operators of a task, head first.
type Chain struct {
	Operators []Operator
	// Deliver gives a batch from a channel to the head; nil for a source.
	Deliver func(channel int, b element.Batch) error
	// Source is the head of a source; nil for others.
	Source stream.Poller
	// Running is the index of the operator that runs user code now.
	Running *int
	// Clock is the processing time of the operators, which the task sets; nil: they look at none.
	Clock *stream.Clock
}

// StateFiles is where state files are.
type StateFiles interface {
	// Create begins the task's state file of a checkpoint in dir.
	Create(ctx context.Context, dir string, attempt job.AttemptID, id checkpoint.ID) (StateFile, error)
	// Remove deletes that file. It is not an error if there is none.
	Remove(ctx context.Context, dir string, attempt job.AttemptID, id checkpoint.ID) error
	// Read reads what a handle refers to and verifies it.
	Read(ctx context.Context, dir string, h checkpoint.Handle) ([]byte, error)
}

// StateFile is a state file that is being written.
type StateFile interface {
	io.Writer
	// Name is relative to the checkpoint's directory.
	Name() string
	// Commit makes the file durable.
	Commit() error
	Abort()
}

// JobMaster is what a task tells the job master.
type JobMaster interface {
	// Acknowledge answers after the ack was applied. On an error it may have been applied.
	Acknowledge(ctx context.Context, id checkpoint.ID, state checkpoint.SubtaskState, m checkpoint.Metrics) (checkpoint.Verdict, error)
	Decline(ctx context.Context, id checkpoint.ID, reason checkpoint.Reason, message string)
	// Running and EndOfData report the task's progress; they do not block.
	Running()
	EndOfData()
	// Backlog says that the source has begun to work off a backlog, or has done so; it may come before Running, and does not block.
	Backlog(behind bool)
}

// Restore is the state that a task starts from.
type Restore struct {
	Checkpoint checkpoint.ID
	Dir        string
	State      checkpoint.Restore
	// Stopped: the job was stopped with this checkpoint. The task emits nothing; it finishes when it is told that the checkpoint has completed.
	Stopped bool
}
