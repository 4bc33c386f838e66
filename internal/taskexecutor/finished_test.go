package taskexecutor

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// The report of a task that has finished is still under way when a checkpoint is triggered there: it must not fail for that, and a task that the
// executor does not know is named all the same.
func TestTrigger_TaskThatHasFinished_SaysNothing(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var down atomic.Bool
		r.m.onState = func(u gateway.TaskUpdate) error {
			if down.Load() && u.State == job.TaskFinished {
				return errUnavailable
			}
			return nil
		}
		r.src.closing = make(chan struct{})
		r.registered().running(1)
		both, stranger := []job.AttemptID{attempt("src", 1), attempt("out", 1)}, attempt("src", 9)
		trigger := gateway.TriggerCheckpoint{Epoch: 7, ID: 3, Dir: "j1/chk-3", Timestamp: time.Now(), Attempts: both[:1], Stop: job.StopSuspend}
		if unknown, err := r.e.TriggerCheckpoint(t.Context(), trigger); err != nil || len(unknown) > 0 {
			t.Fatalf("got %v, %v", unknown, err)
		}
		r.m.take()
		down.Store(true)
		if _, err := r.e.NotifyCheckpointComplete(t.Context(), gateway.NotifyCheckpointComplete{Epoch: 7, ID: 3, Attempts: both}); err != nil {
			t.Fatal(err)
		}
		r.expect()
		trigger.ID, trigger.Stop = 4, job.StopNone
		if unknown, err := r.e.TriggerCheckpoint(t.Context(), trigger); err != nil || len(unknown) > 0 {
			t.Errorf("while the source is closed: %v, %v", unknown, err)
		}
		r.expect()
		close(r.src.closing)
		r.expect()
		trigger.ID, trigger.Attempts = 5, []job.AttemptID{both[0], stranger}
		if unknown, err := r.e.TriggerCheckpoint(t.Context(), trigger); err != nil || !slices.Equal(unknown, []job.AttemptID{stranger}) {
			t.Errorf("unknown are %v (%v), want %v", unknown, err, stranger)
		}
		r.expect()
		down.Store(false)
		<-time.After(reportRetry)
		got := r.m.take()
		slices.Sort(got)
		if want := []string{"out[0]#1 FINISHED", "src[0]#1 FINISHED"}; !slices.Equal(got, want) {
			t.Errorf("reports are %q, want %q", got, want)
		}
	})
}
