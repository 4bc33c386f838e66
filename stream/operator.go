package stream

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/weirstream/weir/internal/cached"
	"github.com/weirstream/weir/internal/job"
)

// Timestamp is event time in milliseconds since the Unix epoch.
type Timestamp int64

// NoTimestamp is the timestamp of a record that has none.
const NoTimestamp Timestamp = math.MinInt64

// Collector takes the records that an operator emits. It is called on the task's goroutine only. An error ends the attempt: the caller
// returns it unchanged.
type Collector[T any] interface {
	Collect(ts Timestamp, v T) error
}

// Operator is one link of a chain in one subtask. The runtime calls RestoreItems, RestoreGroup and RestoreList first, then Open, then records flow in
// through its collector, then Finish at the end of input, at last Close. All calls come from the task's goroutine.
//
// What an operator has beyond that it says with the interfaces Finisher, ItemsStateful, ListsStateful, KeyedStateful and CheckpointListener.
type Operator interface {
	Open() error
	Close() error
}

// Finisher is an operator that holds something back until the end of input.
type Finisher interface {
	// Finish emits what is left. It is called once, after the last record. What it has emitted must not be in a snapshot that is taken after it:
	// an operator without keyed state that was finished for some subtasks is finished again when the job goes on at another parallelism.
	Finish() error
}

// ItemsStateful is an operator with list state: items that a restore at another parallelism may give to any subtask.
type ItemsStateful interface {
	// SnapshotItems is the synchronous part of a snapshot.
	SnapshotItems(checkpoint int64) (Items, error)
	// RestoreItems gives back items of the checkpoint that the job continues from. It is called before Open, and only at a restore.
	RestoreItems(items [][]byte) error
}

// Items is what an operator with list state snapshots.
type Items struct {
	Items [][]byte
	// Persist, when not nil, makes durable what the items refer to. It runs beside the task; the snapshot is acknowledged after it.
	Persist func() error
}

// ListsStateful is an operator with named list states.
type ListsStateful interface {
	// SnapshotLists is the synchronous part of a snapshot: all declared states, also those without items.
	SnapshotLists() ([]ListSnapshot, error)
	// RestoreList gives back items of one state, which were written with the given schema and mode. It is called before Open, as often as there are
	// old subtasks whose items this one gets.
	RestoreList(written StateSchema, mode job.ListMode, items [][]byte) error
}

// ListSnapshot is a consistent view of a list state while the task goes on.
type ListSnapshot struct {
	Schema StateSchema
	Mode   job.ListMode
	Len    int // items
	// Append encodes an item after dst. It is called by one goroutine beside the task.
	Append func(dst []byte, item int) ([]byte, error)
}

// KeyedStateful is an operator with keyed state.
type KeyedStateful interface {
	Schemas() []StateSchema
	// SnapshotKeyed is the synchronous part of a snapshot; it takes microseconds whatever the size of the state.
	SnapshotKeyed() (KeyedSnapshot, error)
	// RestoreGroup gives back the state of one key group, written with the given schemas. It is called before Open.
	RestoreGroup(group int, written []StateSchema, data []byte) error
}

// KeyedSnapshot is a consistent view of keyed state while the task goes on. It is used by one goroutine beside the task.
type KeyedSnapshot interface {
	// AppendGroup encodes the state of one key group after dst.
	AppendGroup(dst []byte, group int) ([]byte, error)
	// ReleaseGroup lets go of one key group, which is not read any more: of much state a part can be free again while the rest is being written.
	ReleaseGroup(group int)
	// Release lets go of the view. It may be called more than once.
	Release()
}

// StateSchema describes one declared state.
type StateSchema struct {
	Name, Kind, KeyType, ValueType string
	NamespaceType                  string // of a state with an entry for each key and namespace; empty: it has none
	MapKeyType                     string // of a map state
	TTL                            int64  // milliseconds that an entry lives after its last access; 0: for ever
}

// CheckpointListener is an operator that acts when a checkpoint is durable, e.g. a sink that commits.
type CheckpointListener interface {
	// CheckpointComplete says that checkpoint and every earlier one are over, and that checkpoint is durable.
	CheckpointComplete(checkpoint int64) error
	// CheckpointAborted says that checkpoint will never be durable. What was prepared for it belongs to the next one.
	CheckpointAborted(checkpoint int64) error
}

// TimeListener is an operator to which time matters. Each call does a bounded amount of work, so that nothing else waits for long.
type TimeListener interface {
	// Tick is called behind each batch, and again at the time that it returned: what is due by the clock is done, such as processing-time timers. A time
	// that is not after the clock's says that there is more; MaxTimestamp says that there is nothing to come.
	Tick() (next Timestamp, err error)
	// AdvanceWatermark says that no record with a timestamp up to ts comes any more, and fires event-time timers up to ts. When there is more to do it is
	// called again, with the same time, before the operators behind are told of it. At the end of input ts is MaxTimestamp.
	AdvanceWatermark(ts Timestamp) (more bool, err error)
}

// Env is what the runtime gives to an operator in one subtask.
type Env struct {
	Job            string // name
	JobID          string
	Operator       string
	Subtask        int
	Parallelism    int
	MaxParallelism int
	Attempt        int
	KeyGroups      job.KeyGroupRange
	Restored       bool     // the subtask continues from a checkpoint
	Splits         [][]byte // of a source, on a fresh start
	// Host is what the subtask has of its host's disk.
	Host Host
	// Wake makes the runtime poll a source again that has said it waits. It may be called from any goroutine.
	Wake func()
	// Position of the chain that runs user code now; panics are reported with it. Shared by the operators of a chain.
	Running *int
	// Clock is the processing time, shared by the operators of a chain; nil: a clock that nobody sets.
	Clock *Clock
	// Index of the operator in its chain.
	Index int
}

// Host is what a subtask has of its host's disk.
type Host struct {
	// Dir makes a directory that is the subtask's own and is removed when the attempt has ended; see WorkDir.
	Dir func() (string, error)
	// State is the backend that keeps keyed state on disk; nil: keyed state is in memory.
	State *cached.Backend

	disk *disk // what the operator has there; nil: keyed state is in memory
}

// WorkDir makes the operator's directory on a disk of the host. It is empty at first, and is removed when the attempt has ended.
func (e *Env) WorkDir() (string, error) {
	if e.Host.Dir == nil {
		return "", errors.New("the operator runs where there is no directory to work in")
	}
	task, err := e.Host.Dir()
	if err != nil {
		return "", err
	}
	// The index keeps operators apart whose names are cut, the prefix those that are called "..".
	dir := filepath.Join(task, fmt.Sprintf("%d-%s", e.Index, e.Operator[:min(len(e.Operator), maxDirName)]))
	return dir, os.MkdirAll(dir, 0o755)
}

// maxDirName is how much of an operator's id, in bytes, is in the name of its directory: file systems allow 255.
const maxDirName = 100

// enter marks the operator as the one that runs user code.
func (e *Env) enter() { *e.Running = e.Index }

// fail wraps an error of the user's code with the operator it came from.
func (e *Env) fail(err error) error {
	if err == nil {
		return nil
	}
	return &OperatorError{Operator: e.Operator, Err: err}
}

// OperatorError is an error of an operator's own code.
type OperatorError struct {
	Operator string
	Err      error
}

// Error names the operator.
func (e *OperatorError) Error() string { return fmt.Sprintf("operator %s: %v", e.Operator, e.Err) }

// Unwrap returns the operator's error.
func (e *OperatorError) Unwrap() error { return e.Err }

// Permanent marks an error that would come again with the same input: the job fails at once instead of restarting.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// IsPermanent reports whether err, or an error in it, was marked by Permanent.
func IsPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p)
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// own wraps an error that may have come from the operator's own code or from further down the chain, which has wrapped it already.
func (e *Env) own(err error) error {
	var wrapped *OperatorError
	if err == nil || errors.As(err, &wrapped) || errors.Is(err, ErrStopped) {
		return err
	}
	return e.fail(err)
}

// ErrStopped is what a collector returns when the attempt ends for a reason that is not the caller's: return it unchanged.
var ErrStopped = errors.New("the task is stopping")
