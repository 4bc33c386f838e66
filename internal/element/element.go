// Package element is the vocabulary of what travels between tasks: batches of records and the events in their order.
//
// Owns: the element kinds and their meaning.
//
// Promises: elements are immutable once sent. A batch that was handed over belongs to the receiver.
//
// Goroutines: none.
//
// Not here: encoding (package exchange), typed records (package stream).
//
// Start at: Element.
package element

import (
	"fmt"

	"github.com/weirstream/weir/internal/job"
)

// Kind says what an element is.
type Kind uint8

// The kinds of elements. A channel carries any number of Records, Barrier and Cancel elements, in any order, and one EndOfData
// after which only Barrier and Cancel elements follow. Closed is the last of all, behind an element that Ends; a channel that ends without it has lost
// its sender.
const (
	Records   Kind = iota + 1 // a batch of records
	Barrier                   // everything before it belongs to the checkpoint, everything after it does not
	Cancel                    // the checkpoint will not get a barrier on this channel
	EndOfData                 // no more records on this channel
	Closed                    // nothing more at all: the sender has finished
)

// Batch is a batch of records whose type only the operators at both ends know; Len is their number.
type Batch = interface{ Len() int }

// Checkpoint is what a barrier says of its checkpoint.
type Checkpoint struct {
	ID        int64
	Timestamp int64  // milliseconds since the epoch, when it was triggered
	Dir       string // where the tasks put their state files, as a storage path
	Final     bool   // the last one of a job all of whose tasks have reached their end of input
	// Stop: the tasks finish when the checkpoint has completed; StopSuspend or StopDrain.
	Stop job.StopMode
	// Base is the completed checkpoint whose shared files the tasks may refer to; 0: none, every file is written. The job keeps those files while this
	// checkpoint is pending.
	Base int64
	// Format is that of a savepoint.
	Format job.SavepointFormat
}

// Element is one thing in a channel.
type Element struct {
	Kind       Kind
	Batch      Batch      // Records only
	Checkpoint Checkpoint // Barrier and Cancel only; Cancel has only the ID
}

// Ends reports whether the receiver may have got everything with it: the end of data, or the barrier of a checkpoint that stops the job, behind which
// records come only if it fails.
func (e Element) Ends() bool {
	return e.Kind == EndOfData || e.Kind == Barrier && e.Checkpoint.Stop.EndsTasks()
}

// String describes the element in one line.
func (e Element) String() string {
	switch e.Kind {
	case Records:
		return fmt.Sprintf("records(%d)", e.Batch.Len())
	case Barrier:
		return fmt.Sprintf("barrier(%d)", e.Checkpoint.ID)
	case Cancel:
		return fmt.Sprintf("cancel(%d)", e.Checkpoint.ID)
	case EndOfData:
		return "end-of-data"
	case Closed:
		return "closed"
	}
	return "unknown"
}
