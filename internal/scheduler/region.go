package scheduler

import (
	"time"

	"github.com/weirstream/weir/internal/job"
)

// region is a set of tasks that restart together; see job.Graph.Regions. Each time it is deployed its tasks get new attempts, whose number is
// the version of the region: what is still under way of an earlier one meets an attempt that is not there any more.
//
//	pending --slots come--> deployed --failure--> stopping --last attempt ended and the delay passed--> pending
type region struct {
	tasks []*execution // in graph order
	phase phase
	at    time.Time // when it may be deployed again, while it is stopping
}

type phase int

const (
	pending  phase = iota // wants to be deployed: has new attempts, and may not have all its slots
	deployed              // may have finished
	stopping              // has failed: its attempts are told to end, and the delay runs
)

func (c *Core) newRegions() []*region {
	var out []*region
	for _, tasks := range c.cfg.Graph.Regions() {
		r := &region{}
		for _, id := range tasks {
			t := c.byTask[id]
			t.region = r
			r.tasks = append(r.tasks, t)
		}
		out = append(out, r)
	}
	return out
}

// live reports whether an attempt of the region may be running.
func (r *region) live() bool {
	for _, t := range r.tasks {
		if t.live() {
			return true
		}
	}
	return false
}

// renew gives every task a new attempt. Those that had finished restart with the others.
func (r *region) renew() {
	for _, t := range r.tasks {
		next := t.attempt
		next.Attempt++
		*t = execution{attempt: next, region: r, state: job.TaskCreated, failure: t.failure}
	}
	r.phase = pending
}

// restartSet is what restarts when these regions have failed: they, and nothing else. What concerns the whole job comes as a failure of all regions.
func (c *Core) restartSet(failed []*region) []*region { return failed }

// regionsOf lists the regions of the tasks for which is says so, in graph order.
func (c *Core) regionsOf(is func(*execution) bool) []*region {
	var out []*region
	for _, r := range c.regions {
		for _, t := range r.tasks {
			if is(t) {
				out = append(out, r)
				break
			}
		}
	}
	return out
}

// in lists the regions that are in a phase.
func (c *Core) in(p phase) []*region {
	var out []*region
	for _, r := range c.regions {
		if r.phase == p {
			out = append(out, r)
		}
	}
	return out
}

// tasksOf counts the tasks of regions.
func tasksOf(regions []*region) int {
	n := 0
	for _, r := range regions {
		n += len(r.tasks)
	}
	return n
}
