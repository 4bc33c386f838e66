package coordinator

import (
	"fmt"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// phase is where a pending checkpoint is on its way; the picture is in the package comment.
type phase int

const (
	locating   phase = iota // InitLocation is out; no task knows of it
	calling                 // CallHooks is out; no task knows of it
	triggered               // SendTrigger is out; tasks acknowledge
	finalizing              // all have acknowledged and WriteMetadata is out; only its answer ends this
)

// pending is a checkpoint that is neither completed nor aborted. Whether a trigger is under way is not a flag that a path could forget
// to clear: it is the phase of a member of Core.pending, and leaving that list is the only way out.
type pending struct {
	id        checkpoint.ID
	request   request
	exec      *execution // it was triggered in
	timestamp time.Time
	expires   time.Time
	phase     phase
	dir       string // empty while locating
	states    []checkpoint.SubtaskState
	acked     []bool // by slot
	missing   int
	meta      *checkpoint.Metadata // when finalizing
	stats     *record
	// masterStates are what the hooks keep, ascending by hook.
	masterStates []checkpoint.MasterState
	// outdated: the tasks were started anew from an older checkpoint while this one was FINALIZING; it must not become the latest.
	outdated bool
	// afterEnd: it was triggered when all tasks had reached their end, so that they finish with it.
	afterEnd bool
}

func (p *pending) final() bool { return p.request.origin == endOfData }

func (p *pending) savepoint() bool { return p.request.kind == checkpoint.Savepoint }

// stops reports whether the job ends with it.
func (p *pending) stops() bool { return p.request.stop != job.StopNone }

// commits reports whether tasks commit when it completes, so that nothing older may be restored from then on.
func (p *pending) commits() bool { return !p.savepoint() || p.request.stop.EndsTasks() }

// trigger starts a checkpoint: it takes the next id, and its time runs from now.
func (c *Core) trigger(r request) {
	n := len(c.plan.tasks)
	p := &pending{
		id:        c.nextID,
		request:   r,
		exec:      c.exec,
		timestamp: inBarrier(c.now),
		expires:   c.now.Add(c.cfg.Options.Timeout),
		states:    make([]checkpoint.SubtaskState, n),
		acked:     make([]bool, n),
		missing:   n,
		afterEnd:  c.exec.final.wanted,
	}
	c.nextID++
	c.chooseBase(p)
	p.stats = c.stats.begin(p, c.plan.tasks, c.now)
	if c.exec.over > 0 {
		for slot, finished := range c.exec.finished {
			if finished {
				p.finished(slot, c.plan.tasks[slot])
			}
		}
	}
	c.pending = append(c.pending, p)
	c.emit(InitLocation{ID: p.id, Kind: r.kind, Directory: r.directory})
}

// locationReady goes on with the hooks and the barriers, unless the checkpoint was aborted meanwhile; then its directory is an orphan.
func (c *Core) locationReady(ev LocationReady) {
	p := c.lookup(ev.ID)
	if p == nil && c.cleaning.locating.Take(ev.ID) {
		if ev.Err == "" {
			c.discard(ev.ID, ev.Dir)
		}
		return
	}
	if p == nil || p.phase != locating {
		c.stale++
		return
	}
	if ev.Err != "" {
		c.abort(p, failure{reason: checkpoint.IOException, message: "make the checkpoint directory: " + ev.Err})
		return
	}
	p.dir, p.stats.Dir = ev.Dir, ev.Dir
	c.callHooks(p)
}

// triggerFailed aborts at once: a source that has no barrier would let everybody wait until the timeout.
func (c *Core) triggerFailed(ev TriggerFailed) {
	p := c.lookup(ev.ID)
	if p == nil || p.phase != triggered {
		c.stale++
		return
	}
	if slot, ok := c.slot(p.exec, ev.Attempt); !ok || p.exec.finished[slot] {
		c.stale++
		return
	}
	c.abort(p, failure{reason: checkpoint.TriggerFailure, message: fmt.Sprintf("trigger %s: %s", ev.Attempt, ev.Err)})
}

// expire aborts what took too long. A FINALIZING checkpoint does not expire: it may be durable, and its write has a time limit of its own.
func (c *Core) expire() {
	var over []*pending
	for _, p := range c.pending {
		if p.phase != finalizing && !c.now.Before(p.expires) {
			over = append(over, p)
		}
	}
	for _, p := range over {
		c.abort(p, failure{reason: checkpoint.Expired, message: c.whatIsMissing(p)})
	}
}

// whatIsMissing says in words what an expired checkpoint waited for.
func (c *Core) whatIsMissing(p *pending) string {
	timeout := c.cfg.Options.Timeout
	if p.phase == locating {
		return fmt.Sprintf("the checkpoint directory was not ready within %s", timeout)
	}
	if p.phase == calling {
		return fmt.Sprintf("the master hooks (%s) did not answer within %s", c.hooks(), timeout)
	}
	return p.missingTasks(fmt.Sprintf("%d of %d tasks acknowledged within %s; missing:", len(p.acked)-p.missing, len(p.acked), timeout))
}

// progress says how many tasks have acknowledged, and which have not.
func (p *pending) progress() string {
	return p.missingTasks(fmt.Sprintf("%d of %d tasks have acknowledged; missing:", len(p.acked)-p.missing, len(p.acked)))
}

// missingTasks appends the tasks that have not acknowledged, the first few by name.
func (p *pending) missingTasks(text string) string {
	named := 0
	for slot, acked := range p.acked {
		if acked {
			continue
		}
		if named == maxMissingNamed {
			return fmt.Sprintf("%s and %d more", text, p.missing-named)
		}
		text += " " + p.exec.all[slot].String()
		named++
	}
	return text
}
