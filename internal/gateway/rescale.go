package gateway

import (
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// RescaleJob asks for another parallelism of a running job.
type RescaleJob struct {
	Job         job.ID
	Epoch       job.LeaderEpoch      // 0 is not checked
	Parallelism int                  // of the operators that choose none themselves; 0: as it is
	Vertices    map[job.VertexID]int // of all operators of these vertices; with Parallelism, what earlier requests chose for vertices is forgotten
	DryRun      bool                 // only estimate
	Wait        time.Duration        // how long to wait for slots while the job runs on; 0: refused when there are not enough
}

// RescaleResult is what a rescale was expected to take, and what it took.
type RescaleResult struct {
	Estimate RescaleEstimate
	Report   *RescaleReport // nil: it was a dry run
}

// RescaleEstimate is made from the metadata of the latest completed checkpoint and from what was measured.
type RescaleEstimate struct {
	Checkpoint                        checkpoint.ID // 0: there is none yet, and nothing is known of the state
	Vertices                          []VertexRescale
	SlotsNeeded, SlotsHeld, SlotsFree int
	StateBytes                        int64
	// MovedBytes is state that another executor reads than wrote it, at most: it is not known where slots will be that the job does not have.
	MovedBytes int64
	Tasks      []TaskRead
	// CheckpointDuration is what a checkpoint takes, during which the job runs on.
	CheckpointDuration time.Duration
	Pause              time.Duration // 0: not known
}

// VertexRescale is a vertex before and after.
type VertexRescale struct {
	Vertex job.VertexID
	From   int // 0: it is new, because operators are chained in another way
	To     int // 0: there is no such vertex any more
}

// TaskRead is what a task reads of the state.
type TaskRead struct {
	Task         job.TaskID
	Bytes, Moved int64
}

// RescaleReport is what a rescale took.
type RescaleReport struct {
	Checkpoint         checkpoint.ID // that the tasks were started from
	CheckpointDuration time.Duration
	// Pause is from the moment at which the tasks were told to stop until all were RUNNING again.
	Pause         time.Duration
	Moved, Stayed int64 // bytes of state that another executor has read than wrote it, and that the same has
}
