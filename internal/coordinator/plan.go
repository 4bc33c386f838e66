package coordinator

import (
	"time"

	"github.com/weirstream/weir/internal/job"
)

// plan numbers the tasks of the job: slot i is the i-th task in graph order, in every execution. It makes an ack a matter of two
// array accesses, and metadata ordered without sorting.
type plan struct {
	tasks []job.TaskID
	slots map[job.TaskID]int
}

func newPlan(g *job.Graph) plan {
	p := plan{tasks: g.Tasks()}
	p.slots = make(map[job.TaskID]int, len(p.tasks))
	for i, t := range p.tasks {
		p.slots[t] = i
	}
	return p
}

// execution is one incarnation of all tasks, from TasksRunning to TasksStopped. What is armed in it dies with it.
type execution struct {
	attempts []int           // attempt number by slot
	all      []job.AttemptID // wait and commit set, by slot
	sources  []job.AttemptID // trigger set, in graph order

	timer  time.Time // next periodic trigger; zero: none
	final  final
	notify notifier
}

// newExecution returns nil unless tasks are exactly the tasks of the job: a checkpoint of fewer would lose state in silence.
func (c *Core) newExecution(tasks []Task) *execution {
	n := len(c.plan.tasks)
	if len(tasks) != n {
		return nil
	}
	e := &execution{attempts: make([]int, n), all: make([]job.AttemptID, n)}
	source := make([]bool, n)
	for _, t := range tasks {
		slot, ok := c.plan.slots[t.Attempt.Task]
		if !ok || t.Attempt.Job != c.cfg.Job || t.Attempt.Attempt < 1 || e.attempts[slot] != 0 {
			return nil
		}
		e.attempts[slot] = t.Attempt.Attempt
		e.all[slot] = t.Attempt
		source[slot] = t.Source
	}
	for slot, yes := range source {
		if yes {
			e.sources = append(e.sources, e.all[slot])
		}
	}
	return e
}

// slot finds an attempt of an execution; false: the attempt is not part of it.
func (c *Core) slot(e *execution, a job.AttemptID) (int, bool) {
	if e == nil || a.Job != c.cfg.Job {
		return 0, false
	}
	slot, ok := c.plan.slots[a.Task]
	return slot, ok && e.attempts[slot] == a.Attempt
}
