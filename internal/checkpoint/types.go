package checkpoint

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirstream/weir/internal/job"
)

// ID numbers the checkpoints of a job from 1; it never goes back, over restarts and leaders too.
type ID int64

// Kind tells checkpoints from savepoints.
type Kind int

// The kinds.
const (
	// Checkpoint is owned by the job: it is subsumed and deleted by later ones.
	Checkpoint Kind = iota + 1
	// Savepoint is owned by the user: it is never subsumed, and self-contained in its directory.
	Savepoint
)

// String is the lower-case name of the kind.
func (k Kind) String() string {
	switch k {
	case Checkpoint:
		return "checkpoint"
	case Savepoint:
		return "savepoint"
	}
	return "unknown"
}

// Handle says where a piece of state is: inline, or a range of a file.
type Handle struct {
	Inline []byte // small state travels in the ack and ends in the metadata; then Path is empty
	Path   string // relative to the directory of the checkpoint's _metadata, slash-separated, never with ".."
	Offset int64
	Length int64  // of the bytes, inline or not
	CRC32C uint32 // of the bytes, inline or not
	// Compression is how each key group, or each item, is compressed by itself. Offsets, Length and checksums are of the compressed bytes.
	Compression Compression
	RawLength   int64 // of all bytes before they were compressed; 0 if they are not
}

// Compression is how stored bytes are compressed.
type Compression int

// The kinds of compression.
const (
	Uncompressed Compression = iota
	// Zstd: one frame for each key group or item, none for an empty one.
	Zstd
)

// String is the name of the compression as options have it.
func (c Compression) String() string {
	switch c {
	case Uncompressed:
		return "none"
	case Zstd:
		return "zstd"
	}
	return fmt.Sprintf("compression %d", int(c))
}

// Keyed is the keyed state of one operator in one subtask, cut by key group. A task writes offsets that cover the whole handle; what
// Assign gives to a task of another parallelism has the handle whole, because its checksum is over all of it, and Range, Offsets and
// GroupCRC narrowed to what that task owns.
type Keyed struct {
	Handle  Handle
	Range   job.KeyGroupRange
	Offsets []int64 // start of each key group inside the handle's bytes, then the end: Range.Len()+1 values
	States  []StateSchema
	// GroupCRC is the CRC32C of the bytes of each key group, so that a part can be verified without the rest. Empty: only that of the handle
	// is known, as in inline state and in what older versions wrote.
	GroupCRC []uint32

	// Backend is the state backend whose own Files hold the state; empty: the handle holds it in the canonical form, which every backend reads. A
	// native one has no handle and no offsets.
	Backend string
	Files   []SharedFile
	// Clipped: the files hold more key groups than Range, because Assign gave the others to other tasks. Nothing of those may be taken over.
	Clipped bool
}

// IsNative reports whether the state is in files of its backend.
func (k *Keyed) IsNative() bool { return k.Backend != "" }

// StateSchema describes one declared state, so that tools can list it without the job.
type StateSchema struct {
	Name      string
	Kind      string // as in package stream: "value", "list", ...
	KeyType   string // descriptor of the key's codec
	ValueType string // descriptor of the value's codec

	NamespaceType string // of a state with an entry for each key and namespace; empty: it has none
	MapKeyType    string // of a map state
	TTL           int64  // milliseconds that an entry lives after its last access; 0: for ever. With it, the time of that access follows each value
}

// Items is operator list state: items that a restore may give to any subtask. As with Keyed, Offsets may select a part of the handle.
type Items struct {
	Handle  Handle
	Offsets []int64 // start of each item inside the handle's bytes, then the end
}

// List is a named list state of one operator in one subtask, which a user's operator declares. It is there although it has no items.
type List struct {
	Schema StateSchema
	Mode   job.ListMode
	Items  Items
}

// OperatorState is the state of one operator in one subtask.
type OperatorState struct {
	Operator string
	Items    *Items // of a source or a sink; nil: none
	Keyed    *Keyed // nil: none
	Lists    []List // by name, which is the schema's
}

// SubtaskState is what one task acknowledges.
type SubtaskState struct {
	Subtask   int
	Operators []OperatorState
	// Ended: the task had reached its end of input and flushed its operators before this snapshot; it must not flush them again.
	Ended bool
}

// Metrics are what a task measured of its part of a checkpoint.
type Metrics struct {
	StartDelay time.Duration // from trigger to the first barrier at the task
	Alignment  time.Duration // from the first to the last barrier
	Sync       time.Duration // the task stood still
	Async      time.Duration // beside the task
	StateBytes int64
}

// VertexState is the state of one vertex.
type VertexState struct {
	Vertex         job.VertexID
	Parallelism    int
	MaxParallelism int
	Operators      []job.Operator
	Subtasks       []SubtaskState // ascending by Subtask
}

// MasterState is what a master hook keeps in a checkpoint.
type MasterState struct {
	Hook  string
	State []byte
}

// Metadata is the durable record of a completed checkpoint.
type Metadata struct {
	Job         job.ID
	JobName     string
	Params      map[string]string
	ID          ID
	Kind        Kind
	Timestamp   time.Time // when it was triggered, millisecond resolution
	Fingerprint string
	Epoch       job.LeaderEpoch
	Vertices    []VertexState // in graph order
	// MasterStates are ascending by Hook; a hook that keeps nothing has none.
	MasterStates []MasterState
}

// Completed is a completed checkpoint as the coordinator keeps it.
type Completed struct {
	Dir      string // the directory that holds _metadata, as a storage path
	Metadata *Metadata
	// Stopped: the job was stopped with it. Tasks that are restored from it commit what it promised and finish.
	Stopped bool
	// Claimed: the job that was started from it owns it, and deletes it when newer ones have taken its place.
	Claimed bool
}

// Number is the id of the checkpoint, by the name of its directory when its metadata is not known; 0: that does not say it either.
func (c *Completed) Number() ID {
	if c.Metadata != nil {
		return c.Metadata.ID
	}
	id, _ := chkID(c.Dir[strings.LastIndexByte(c.Dir, '/')+1:])
	return id
}
