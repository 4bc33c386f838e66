package scheduler

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/job"
)

// replanning is the change from one graph to the next.
//
//	(runs by a plan) --Replan--> stopping --last task has ended--> Replanned --all tasks run--> (runs by the plan)
//	                                ^                                 |
//	                                |                                 v a failure that would end the job, on trial
//	                                +------------Replan----------- held
type replanning struct {
	next  *job.Graph // nil: none
	trial bool       // of next, or of the graph in force until all tasks run
	held  bool       // nothing is deployed until the next Replan
	saved strategy   // before the trial: its failures are not those of the job
}

func (c *Core) replan(now time.Time, e Replan) {
	if c.state != job.Running && c.state != job.Restarting {
		c.dropped.illegal++
		return
	}
	c.replanning = replanning{next: e.Graph, trial: e.Trial, saved: c.restarts.strategy}
	c.stopAll(now, job.Failure{}, "goes over to another plan")
}

// replanFailed stops what a graph on trial has left, instead of failing the job.
func (c *Core) replanFailed(now time.Time, f job.Failure) {
	c.restarts.strategy = c.replanning.saved
	c.replanning = replanning{held: true}
	c.failure = f
	c.emit(ReplanFailed{Failure: f})
	c.stopAll(now, f, "waits for a plan that runs")
}

// stopAll stops every task, to start again when the last one has ended. A delay that runs goes on.
func (c *Core) stopAll(now time.Time, f job.Failure, detail string) {
	for _, r := range c.regions {
		if r.phase != stopping {
			r.phase, r.at = stopping, now
		}
	}
	c.stopped(f, c.regions)
	if c.state == job.Restarting {
		c.detail = detail
	} else {
		c.enter(job.Restarting, f, detail)
	}
	c.cancelTasks(now, c.regions)
}

// swap puts the next graph in force, if every task has ended and every delay has passed. Attempts go on above all that there were, so that no two
// tasks ever have the same attempt id. Slots are kept: see reseat.
func (c *Core) swap(now time.Time) bool {
	attempt := 0
	for _, t := range c.tasks {
		attempt = max(attempt, t.attempt.Attempt)
	}
	if c.liveTasks() > 0 || now.Before(c.delayed()) {
		return false
	}
	old, g := c.cfg.Graph, c.replanning.next
	c.replanning.next = nil
	withdraw := c.seats.opened || slices.Contains(c.seats.held, true)
	c.seats = reseat(&c.seats, old, g)
	c.setWaiting("")
	c.populate(g, attempt+1)
	c.said.running, c.said.endOfData = false, false
	c.emit(Replanned{Graph: g})
	if wanted := c.seats.missing(); withdraw && len(wanted) == 0 {
		c.emit(c.seats.keep()) // what is too much goes back
	}
	return true
}

// delayed is when the last of the delays is over that run.
func (c *Core) delayed() time.Time {
	var last time.Time
	for _, r := range c.in(stopping) {
		if r.at.After(last) {
			last = r.at
		}
	}
	return last
}

// ignores reports whether a failure leads to nothing: the tasks that can fail are told to end already, and what comes after them is decided.
func (r *replanning) ignores() bool { return r.held || r.next != nil }

// Preview is where the tasks of another graph would run, if all slots that the job has are used for it; no executor: in a slot that it has not.
func (c *Core) Preview(g *job.Graph) map[job.TaskID]job.ExecutorID {
	out := map[job.TaskID]job.ExecutorID{}
	s := reseat(&c.seats, c.cfg.Graph, g)
	for task, at := range s.of {
		out[task] = ""
		if s.held[at] {
			out[task] = s.slots[at].Executor
		}
	}
	return out
}

// Slots is how many slots the job has.
func (c *Core) Slots() int {
	n := 0
	for _, held := range c.seats.held {
		if held {
			n++
		}
	}
	return n
}

// reseat gives the seats of a new graph the slots of the old one: each seat one on the executor where most of the state was written that its tasks
// will read, best matches first. What is left over is not in the new seats. A seat for which there is none left prefers the executor that has
// most of its state.
func reseat(old *seats, from, to *job.Graph) seats {
	out := newSeats(to)
	if old.of == nil {
		return out
	}
	var have []int // old seats that are held
	var slots []job.Slot
	for at, held := range old.held {
		if held {
			have = append(have, at)
			slots = append(slots, old.slots[at])
		}
	}
	for len(slots) < len(out.slots) {
		slots = append(slots, job.Slot{})
	}
	out.of = place(to, slots[:len(out.slots)])
	shares := shared(old, &out, from, to)
	taken := make([]bool, len(old.slots))
	give := func(seat, at int) { out.slots[seat], out.held[seat], taken[at] = old.slots[at], true, true }
	for _, s := range shares {
		if old.held[s.old] && !taken[s.old] && !out.held[s.seat] {
			give(s.seat, s.old)
		}
	}
	for seat := range out.slots {
		at := slices.IndexFunc(have, func(at int) bool { return !taken[at] })
		if at >= 0 && !out.held[seat] {
			give(seat, have[at])
		}
	}
	for _, s := range slices.Backward(shares) { // the best is last to say
		if !out.held[s.seat] {
			out.slots[s.seat] = old.slots[s.old]
		}
	}
	return out
}

// share is how much of what was written in an old seat is read in a new one.
type share struct {
	seat, old int
	amount    float64 // in states of whole vertices
}

// shared lists the shares, greatest first. State is taken to be spread evenly over the subtasks of a vertex, which key groups and items are.
func shared(old, next *seats, from, to *job.Graph) []share {
	amount := map[[2]int]float64{}
	for i := range to.Vertices {
		v := &to.Vertices[i]
		for _, op := range v.Operators {
			w := from.VertexOf(op.ID)
			if !op.Stateful || w == nil {
				continue
			}
			for n := range v.Parallelism {
				for m := range w.Parallelism {
					low := max(float64(n)/float64(v.Parallelism), float64(m)/float64(w.Parallelism))
					high := min(float64(n+1)/float64(v.Parallelism), float64(m+1)/float64(w.Parallelism))
					if high > low {
						amount[[2]int{next.of[job.TaskID{Vertex: v.ID, Subtask: n}], old.of[job.TaskID{Vertex: w.ID, Subtask: m}]}] += high - low
					}
				}
			}
		}
	}
	out := make([]share, 0, len(amount))
	for seats, a := range amount {
		out = append(out, share{seats[0], seats[1], a})
	}
	slices.SortFunc(out, func(a, b share) int {
		return cmp.Or(cmp.Compare(b.amount, a.amount), cmp.Compare(a.seat, b.seat), cmp.Compare(a.old, b.old))
	})
	return out
}
