package taskexecutor

import (
	"sync/atomic"

	"github.com/weirstream/weir/internal/job"
)

// Stats are what an executor does, and what it has done since New.
type Stats struct {
	Registered    bool
	Slots         int
	Tasks         int   // that are not over
	TasksRunning  int   // of Tasks
	Snapshots     int64 // that were made durable, of checkpoints that were aborted later too
	SnapshotBytes int64

	RestoredLocalBytes   int64 // of state that tasks read from copies on a disk of the executor
	RestoredStorageBytes int64 // that they read from the checkpoint storage
	LocalCopiesDamaged   int64 // copies that were not what they should be; the storage was read instead
	LocalCopiesFailed    int64 // copies that could not be made or deleted
}

// snapshotCounts are counted by many tasks.
type snapshotCounts struct{ snapshots, bytes atomic.Int64 }

func (c *snapshotCounts) add(bytes int64) {
	c.snapshots.Add(1)
	c.bytes.Add(bytes)
}

// Stats tells how the executor does.
func (e *Executor) Stats() Stats {
	out := Stats{
		Registered: e.Registered(), Slots: e.cfg.Slots, Snapshots: e.written.snapshots.Load(), SnapshotBytes: e.written.bytes.Load(),
	}
	out.RestoredLocalBytes, out.RestoredStorageBytes, out.LocalCopiesDamaged = e.restored.local.Load(), e.restored.storage.Load(), e.restored.damaged.Load()
	if e.cfg.Local != nil {
		out.LocalCopiesFailed = e.cfg.Local.Errors()
	}
	for _, t := range e.snapshot() {
		state := t.stateNow()
		if !state.Terminal() {
			out.Tasks++
		}
		if state == job.TaskRunning {
			out.TasksRunning++
		}
	}
	return out
}
