package coordinator_test

import (
	"github.com/weirstream/weir/internal/checkpoint"
	. "github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/job"
)

// stops is what the world knows of savepoints that stop the job.
type stops struct {
	completed checkpoint.ID // has stopped it; 0: none
	suspended checkpoint.ID // the sources of the running execution stand still for it; 0: they do not
	resumed   map[job.AttemptID]bool
}

// maybeStop makes some savepoints stop the job; rarely, because little happens after that.
func (w *world) maybeStop() job.StopMode {
	if w.rng.IntN(6) > 0 {
		return job.StopNone
	}
	return []job.StopMode{job.StopSuspend, job.StopSuspend, job.StopSuspend, job.StopDrain, job.StopCancel}[w.rng.IntN(5)]
}

// suspend notes that sources stand still behind a barrier, or that a newer one has set them going.
func (w *world) suspend(e SendTrigger) {
	w.stops.suspended = 0
	if e.Stop == job.StopSuspend {
		w.stops.suspended, w.stops.resumed = e.ID, map[job.AttemptID]bool{}
	}
}

// resume has tasks hear of an abort, or not.
func (w *world) resume(e SendNotifyAborted) {
	if w.ended[e.ID] != "aborted" {
		w.fail("abort of %d notified, which is not aborted", e.ID)
	}
	for _, a := range e.Attempts {
		if !w.regions.runs(a) {
			w.fail("%s hears of the abort of %d, and does not run", a, e.ID)
		}
		if !w.healed && w.rng.IntN(4) == 0 {
			continue
		}
		if e.ID == w.stops.suspended {
			w.stops.resumed[a] = true
		}
		w.inbox = append(w.inbox, AbortConfirmed{Attempt: a, ID: e.ID})
	}
}

// allResumed checks that no source stands still for a savepoint that will not complete.
func (w *world) allResumed() {
	id := w.stops.suspended
	if w.attempt == 0 || id == 0 || w.ended[id] != "aborted" {
		return
	}
	for _, task := range w.tasks() {
		if !w.stops.resumed[task.Attempt] {
			w.fail("%s stands still for savepoint %d, which is aborted, and nobody tells it", task.Attempt, id)
		}
	}
}
