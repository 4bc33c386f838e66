package coordinator

import (
	"time"

	"github.com/weirstream/weir/internal/job"
)

// plan numbers the tasks of the job: slot i is the i-th task in graph order, in every execution. It makes an ack a matter of a few
// array accesses, and metadata ordered without sorting. Only vertices are found by name: there are few, so the map stays small and the
// time per ack does not grow with the number of tasks.
type plan struct {
	tasks    []job.TaskID
	index    map[job.VertexID]int // into vertices
	vertices []planVertex
	vertexOf []int // by slot
}

// planVertex is a vertex with its neighbours.
type planVertex struct {
	first, parallelism int // its slots
	inputs, outputs    []planEdge
}

// planEdge leads to a vertex. Forward: only the subtasks of the same number are connected; else all are.
type planEdge struct {
	vertex  int
	forward bool
}

func newPlan(g *job.Graph) plan {
	p := plan{tasks: g.Tasks(), vertices: make([]planVertex, len(g.Vertices)), index: make(map[job.VertexID]int, len(g.Vertices))}
	p.vertexOf = make([]int, len(p.tasks))
	slot := 0
	for i, v := range g.Vertices {
		p.index[v.ID] = i
		p.vertices[i] = planVertex{first: slot, parallelism: v.Parallelism}
		for range v.Parallelism {
			p.vertexOf[slot] = i
			slot++
		}
	}
	for _, e := range g.Edges {
		from, to := p.index[e.From], p.index[e.To]
		forward := e.Partitioning == job.Forward
		p.vertices[to].inputs = append(p.vertices[to].inputs, planEdge{from, forward})
		p.vertices[from].outputs = append(p.vertices[from].outputs, planEdge{to, forward})
	}
	return p
}

// replanned changes the graph. What is pending has been numbered by the old one, so there must be nothing.
func (c *Core) replanned(ev Replanned) {
	if c.exec != nil || len(c.pending) > 0 || c.closed {
		c.stale++
		return
	}
	c.cfg.Graph, c.plan = ev.Graph, newPlan(ev.Graph)
}

// slot finds a task; false: the job has no such task.
func (p *plan) slot(t job.TaskID) (int, bool) {
	i, ok := p.index[t.Vertex]
	if !ok || t.Subtask < 0 || t.Subtask >= p.vertices[i].parallelism {
		return 0, false
	}
	return p.vertices[i].first + t.Subtask, true
}

// execution is one incarnation of all tasks, from TasksRunning to TasksStopped. What is armed in it dies with it.
type execution struct {
	attempts []int           // attempt number by slot
	all      []job.AttemptID // by slot
	finished []bool          // by slot
	left     []int           // by vertex: tasks that have not finished
	over     int             // tasks that have finished

	heads   []bool          // by slot: it runs and no task that runs is in front of it
	trigger []job.AttemptID // trigger set: the heads; nil: to be made
	running []job.AttemptID // wait and commit set: what has not finished; nil: to be made

	partial bool // some tasks have stopped, and were taken out as if they had finished

	timer  time.Time // next periodic trigger; zero: none
	final  final
	notify notifier // of completion
	resume notifier // that what was to stop the job will not complete

	backlog backlog
}

// newExecution returns nil unless tasks are exactly the tasks of the job: a checkpoint of fewer would lose state in silence.
func (c *Core) newExecution(tasks []Task) *execution {
	n := len(c.plan.tasks)
	if len(tasks) != n {
		return nil
	}
	e := &execution{
		attempts: make([]int, n), all: make([]job.AttemptID, n), finished: make([]bool, n), heads: make([]bool, n),
		left: make([]int, len(c.plan.vertices)), backlog: backlog{tasks: make([]bool, n)},
	}
	for _, t := range tasks {
		slot, ok := c.plan.slot(t.Attempt.Task)
		if !ok || t.Attempt.Job != c.cfg.Job || t.Attempt.Attempt < 1 || e.attempts[slot] != 0 {
			return nil
		}
		e.attempts[slot] = t.Attempt.Attempt
		e.all[slot] = t.Attempt
		e.heads[slot] = t.Source
		e.backlog.set(slot, t.Behind)
		e.left[c.plan.vertexOf[slot]]++
	}
	for _, t := range tasks {
		if t.Finished {
			slot, _ := c.plan.slot(t.Attempt.Task)
			c.plan.finish(e, slot)
			e.backlog.set(slot, false)
		}
	}
	return e
}

// slot finds an attempt of an execution; false: the attempt is not part of it.
func (c *Core) slot(e *execution, a job.AttemptID) (int, bool) {
	if e == nil || a.Job != c.cfg.Job {
		return 0, false
	}
	slot, ok := c.plan.slot(a.Task)
	return slot, ok && e.attempts[slot] == a.Attempt
}

// triggerSet is where barriers are injected, in graph order.
func (e *execution) triggerSet() []job.AttemptID {
	if e.trigger == nil {
		e.trigger = e.those(e.heads, true)
	}
	return e.trigger
}

// runningSet is who takes part in checkpoints and hears of them, in graph order.
func (e *execution) runningSet() []job.AttemptID {
	if e.running == nil {
		e.running = e.those(e.finished, false)
	}
	return e.running
}

func (e *execution) those(marks []bool, with bool) []job.AttemptID {
	out := make([]job.AttemptID, 0, len(marks))
	for slot, mark := range marks {
		if mark == with {
			out = append(out, e.all[slot])
		}
	}
	return out
}

// finish takes a task out of an execution and returns the slots behind it that have become heads.
func (p *plan) finish(e *execution, slot int) (heads []int) {
	vertex := p.vertexOf[slot]
	e.finished[slot], e.heads[slot] = true, false
	e.left[vertex]--
	e.over++
	e.trigger, e.running = nil, nil
	v := &p.vertices[vertex]
	for _, out := range v.outputs {
		to := &p.vertices[out.vertex]
		switch {
		case out.forward:
			heads = p.promote(e, out.vertex, to.first+slot-v.first, heads)
		case e.left[vertex] == 0:
			for i := range to.parallelism {
				heads = p.promote(e, out.vertex, to.first+i, heads)
			}
		}
	}
	return heads
}

// promote makes a slot a head if no task that runs is in front of it.
func (p *plan) promote(e *execution, vertex, slot int, heads []int) []int {
	if e.finished[slot] || e.heads[slot] {
		return heads
	}
	v := &p.vertices[vertex]
	for _, in := range v.inputs {
		from := &p.vertices[in.vertex]
		if in.forward && !e.finished[from.first+slot-v.first] || !in.forward && e.left[in.vertex] > 0 {
			return heads
		}
	}
	e.heads[slot] = true
	return append(heads, slot)
}
