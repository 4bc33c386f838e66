package task

import (
	"context"
	"io"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/element"
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

// StateFiles is where the state of a task is.
type StateFiles interface {
	// Begin begins what the task writes of a checkpoint into dir.
	Begin(dir string, id checkpoint.ID) SnapshotFiles
	// Open opens what a handle refers to.
	Open(ctx context.Context, dir string, h checkpoint.Handle) (StateReader, error)
}

// SnapshotFiles are the files of one snapshot. It is for one goroutine, and must be settled.
type SnapshotFiles interface {
	// Create begins the task's own file of the checkpoint, which has pieces of state that are too large to be with others.
	Create(ctx context.Context) (StateFile, error)
	// Grow reports whether n more bytes of a piece may be held in memory until Append. Shrink gives them back when it goes elsewhere.
	Grow(n int) bool
	Shrink()
	// Append puts a whole piece into a file that the task shares with others, and answers the file's name, which is relative to the checkpoint's
	// directory, and the offset in it. ok is false when it must go into the task's own file. After an error data may still be in use.
	Append(ctx context.Context, data []byte) (name string, offset int64, ok bool, err error)
	// Commit returns when all that was appended is durable. It is called always, so that others need not wait for this task.
	Commit(ctx context.Context) error
	// Settle says whether the files may be referred to; those that cannot be are deleted. The context may be over.
	Settle(ctx context.Context, keep bool) error
}

// StateFile is the task's own state file that is being written.
type StateFile interface {
	io.Writer
	// Name is relative to the checkpoint's directory.
	Name() string
	// Commit makes the file durable.
	Commit() error
	Abort()
}

// StateReader reads the bytes of a handle. It is for one goroutine.
type StateReader interface {
	// Read fills data from an offset in the handle's bytes and lets check decide whether they are the right ones. There may be more than one copy: check
	// is called again when it refused what the first one has.
	Read(ctx context.Context, data []byte, offset int64, check func() error) error
	// Verify compares all bytes with the checksum of the handle.
	Verify(ctx context.Context) error
	Close()
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
