package coordinator

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// origin is who wants a checkpoint.
type origin int

const (
	user      origin = iota // somebody waits for a Reply
	endOfData               // the scheduler, at the end of input
	periodic                // the timer
)

// request is a wish for a checkpoint. At most one periodic and one final request exist at a time.
type request struct {
	origin    origin
	id        RequestID // of user requests
	kind      checkpoint.Kind
	directory string
	stop      job.StopMode
	format    job.SavepointFormat
	base      checkpoint.ID // whose shared files its tasks may refer to, chosen when it is triggered; 0: none
}

// rank orders the queue: savepoints, then checkpoints that somebody waits for, then the final one, then the periodic one.
func (r request) rank() int {
	if r.kind == checkpoint.Savepoint {
		return -1
	}
	return int(r.origin)
}

// forced reports whether a request need not wait for other checkpoints to end. Savepoints need not: somebody waits for them, and they are
// often what gets an operator out of trouble with checkpoints.
func (r request) forced() bool { return r.kind == checkpoint.Savepoint }

// queue holds the waiting requests, best first. It is a total order: equal ranks stand in order of arrival.
type queue []request

func (q *queue) push(r request) {
	at := len(*q)
	for at > 0 && (*q)[at-1].rank() > r.rank() {
		at--
	}
	*q = slices.Insert(*q, at, r)
}

// remove takes out the requests of an origin.
func (q *queue) remove(o origin) {
	*q = slices.DeleteFunc(*q, func(r request) bool { return r.origin == o })
}

func (q queue) has(o origin) bool {
	return slices.ContainsFunc(q, func(r request) bool { return r.origin == o })
}

// submit queues a request. A queue that is full of others' wishes refuses the new one; the periodic request gives way, it comes again.
func (c *Core) submit(r request) {
	if n := len(c.queue); n >= maxRequests {
		if c.queue[n-1].origin != periodic {
			if r.origin == endOfData {
				c.exec.final.retryAt = c.now.Add(finalRetryDelay)
			}
			c.refuse(r, checkpoint.TooManyRequests, fmt.Sprintf("%d checkpoint requests are waiting already; try again later", maxRequests))
			return
		}
		c.queue = c.queue[:n-1]
	}
	c.queue.push(r)
}

// choose looks at the queue. Step calls it after every event, so whatever ended, failed or arrived is followed by this look.
func (c *Core) choose() {
	for {
		r, ok := c.next()
		if !ok {
			return
		}
		c.trigger(r)
	}
}

// next takes the best request if it may start now. Only the best is looked at, so a lesser one never overtakes it.
func (c *Core) next() (request, bool) {
	if !c.triggering() || len(c.queue) == 0 || c.mustWait(c.queue[0]) {
		return request{}, false
	}
	best := c.queue[0]
	c.queue = c.queue[1:]
	if earliest := c.store.lastDone.Add(c.cfg.Options.MinPause); best.origin == periodic && !c.store.lastDone.IsZero() && c.now.Before(earliest) {
		c.exec.timer = earliest // it asks again then; no other request can be behind it
		return request{}, false
	}
	return best, true
}

// mustWait reports whether a request has to wait for something to end: the trigger phase of another, deletions that are slower than
// checkpoints, or, unless it is forced, other checkpoints. Nothing starts beside the final one, after which the tasks finish, nor beside one that
// stops the job.
func (c *Core) mustWait(r request) bool {
	n, limit := len(c.pending), c.cfg.Options.MaxConcurrent
	for _, p := range c.pending {
		if p.phase < triggered || p.final() || p.stops() {
			return true
		}
	}
	return c.cleaning.deletions() > limit || n >= maxPending || n >= limit && !r.forced()
}

// firePeriodic asks for a periodic checkpoint when its time has come. Firings that were missed while the process stood still are not
// made up for.
func (c *Core) firePeriodic() {
	e := c.exec
	if e.timer.IsZero() || c.now.Before(e.timer) {
		return
	}
	interval := c.interval()
	if interval == 0 {
		e.timer = time.Time{} // it is armed again when the backlog is done
		return
	}
	missed := c.now.Sub(e.timer) / interval
	e.timer = e.timer.Add((missed + 1) * interval)
	if !c.queue.has(periodic) {
		c.submit(request{origin: periodic, kind: checkpoint.Checkpoint})
	}
}

// triggerRequested queues the request of a person or a tool, or refuses it at once.
func (c *Core) triggerRequested(ev TriggerRequested) {
	r := request{origin: user, id: ev.Request, kind: checkpoint.Checkpoint}
	if ev.Kind == checkpoint.Savepoint {
		r.kind, r.directory, r.stop, r.format = checkpoint.Savepoint, ev.Directory, ev.Stop, job.FormatCanonical
		if ev.Format == job.FormatNative {
			r.format = job.FormatNative
		}
	}
	switch {
	case c.closed:
		c.refuse(r, checkpoint.Shutdown, "the job has ended")
	case r.kind == checkpoint.Savepoint && r.directory == "":
		c.refuse(r, checkpoint.SavepointDirNeeded, "a savepoint needs a directory: name one in the request or configure a default")
	case !c.triggering():
		c.refuse(r, checkpoint.NotAllRunning, "not all tasks of the job are running; try again when the job is RUNNING")
	case c.exec.final.done:
		c.refuse(r, checkpoint.NotAllRunning, c.exec.final.why)
	case r.stop != job.StopNone && c.stopping():
		c.refuse(r, checkpoint.JobStopping, "the job is being stopped already; wait for the end of that")
	default:
		c.submit(r)
	}
}

// stopping reports whether a savepoint that stops the job waits or is pending.
func (c *Core) stopping() bool {
	return slices.ContainsFunc(c.queue, func(r request) bool { return r.stop != job.StopNone }) || slices.ContainsFunc(c.pending, (*pending).stops)
}

// refuse answers a request that never became a checkpoint.
func (c *Core) refuse(r request, reason checkpoint.Reason, message string) {
	if r.origin == user {
		c.emit(Reply{Request: r.id, Reason: reason, Message: message})
	}
}

// refuseAll empties the queue.
func (c *Core) refuseAll(reason checkpoint.Reason, message string) {
	for _, r := range c.queue {
		c.refuse(r, reason, message)
	}
	c.queue = nil
}

// finalRetryDelay is how long a failed final checkpoint waits for its next try. Min pause does not apply: the job waits for it to end.
const finalRetryDelay = 100 * time.Millisecond

// final is the checkpoint after the end of input. It is wanted until one completes, which allows the tasks to finish.
type final struct {
	wanted  bool
	done    bool      // nothing is triggered any more
	why     string    // when done
	retryAt time.Time // zero: queued, pending, done or not wanted
}

// finishing ends triggering: the tasks finish, or are canceled, with a checkpoint that has completed.
func (c *Core) finishing(why string) {
	f := &c.exec.final
	f.done, f.why, f.retryAt = true, why, time.Time{}
	c.exec.timer = time.Time{}
	c.noAlarm()
	c.refuseAll(checkpoint.NotAllRunning, why)
}

// endOfDataReached asks for the final checkpoint. It waits behind a pending one, and nothing periodic comes any more.
func (c *Core) endOfDataReached() {
	if !c.triggering() {
		c.stale++
		return
	}
	if c.exec.final.wanted || c.exec.final.done {
		return
	}
	c.exec.final.wanted = true
	c.exec.timer = time.Time{}
	c.queue.remove(periodic)
	c.submitFinal()
}

func (c *Core) retryFinal() {
	if at := c.exec.final.retryAt; !at.IsZero() && !c.now.Before(at) {
		c.exec.final.retryAt = time.Time{}
		c.submitFinal()
	}
}

func (c *Core) submitFinal() { c.submit(request{origin: endOfData, kind: checkpoint.Checkpoint}) }
