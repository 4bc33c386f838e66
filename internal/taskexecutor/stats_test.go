package taskexecutor

import (
	"testing"
	"time"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// The counts are those of the snapshots that were acknowledged, and outlive their tasks.
func TestStats_TellWhatTheExecutorDoes(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.registered()
		if got, want := r.e.Stats(), (Stats{Registered: true, Slots: 2}); got != want {
			t.Errorf("without a task %+v, want %+v", got, want)
		}
		r.running(1)
		if got, want := r.e.Stats(), (Stats{Registered: true, Slots: 2, Tasks: 2, TasksRunning: 2}); got != want {
			t.Errorf("with two tasks %+v, want %+v", got, want)
		}
		src := []job.AttemptID{attempt("src", 1)}
		trigger := gateway.TriggerCheckpoint{Epoch: 7, ID: 3, Dir: "j1/chk-3", Timestamp: time.Now(), Attempts: src}
		if _, err := r.e.TriggerCheckpoint(t.Context(), trigger); err != nil {
			t.Fatal(err)
		}
		r.m.take()
		var bytes int64
		for _, a := range r.m.acks {
			bytes += a.Metrics.StateBytes
		}
		want := Stats{Registered: true, Slots: 2, Tasks: 2, TasksRunning: 2, Snapshots: 2, SnapshotBytes: bytes}
		if got := r.e.Stats(); got != want || bytes == 0 {
			t.Errorf("after a checkpoint %+v, want %+v", got, want)
		}
		if _, err := r.e.CancelTasks(t.Context(), gateway.CancelTasks{Epoch: 7, Attempts: src}); err != nil {
			t.Fatal(err)
		}
		r.m.take()
		want.Tasks, want.TasksRunning = 0, 0
		if got := r.e.Stats(); got != want {
			t.Errorf("after its tasks %+v, want %+v", got, want)
		}
	})
}
