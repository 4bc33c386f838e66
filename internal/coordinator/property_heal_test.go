package coordinator_test

import (
	. "github.com/weirstream/weir/internal/coordinator"
)

// heal stops the faults: everything is delivered, time goes on, and a checkpoint must complete within timeout + interval + pause.
func (w *world) heal() {
	w.healed = true
	w.endBacklogs()
	w.quiesce()
	before, limit := len(w.completed), w.now.Add(w.options.Timeout+w.options.Interval+w.options.MinPause)
	for w.now.Before(limit) && w.err == nil && !w.closed {
		w.start() // at first, and after a failure that a lost ack of before led to
		at, ok := w.core.Deadline()
		if !ok {
			break
		}
		w.now = at
		w.step(Tick{})
		w.quiesce()
	}
	// After a completed final checkpoint there is none to come.
	if len(w.completed) == before && w.finals == 0 && w.err == nil && w.stops.completed == 0 && !w.closed {
		w.fail("I6: no checkpoint completed after the faults stopped")
	}
	w.allResumed()
	if !w.closed {
		w.close()
	}
	w.quiesce()
	for r := range w.asked {
		if !w.replied[r] {
			w.fail("request %d was never answered", r)
		}
	}
	if !w.core.Settled() || w.core.Deleting() != 0 || w.core.Counts().InProgress != 0 {
		w.fail("work is left after the end")
	}
	if l := w.core.Latest(); l != nil && l.Metadata.ID != w.stops.completed {
		w.fail("checkpoint %d outlives its job", l.Metadata.ID)
	}
	w.checkSharedLeft()
	if at, ok := w.core.Deadline(); ok {
		w.fail("a closed coordinator wants a tick at %s", at)
	}
}

func (w *world) close() {
	w.closed = true
	w.attempt = 0
	w.regions.stopAll()
	w.step(Closed{DeleteAll: true})
}

// quiesce delivers all that is in flight in order, turning errors into successes.
func (w *world) quiesce() {
	for len(w.inbox) > 0 && w.err == nil {
		ev := w.inbox[0]
		w.inbox = w.inbox[1:]
		switch e := ev.(type) {
		case LocationReady:
			e.Err = ""
			ev = e
		case MetadataWritten:
			e.Outcome, e.Err = Written, ""
			ev = e
		case Discarded:
			e.Err = ""
			ev = e
		}
		w.step(w.applyStorage(ev))
	}
}
