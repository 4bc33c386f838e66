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
