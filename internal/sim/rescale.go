package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/ha"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rescale"
	"github.com/weirstream/weir/internal/scheduler"
	"github.com/weirstream/weir/internal/slotpool"
)

// rescaling is what a job master knows of the rescale that is going on.
type rescaling struct {
	core    rescale.Core
	request coordinator.RequestID // of its checkpoint; 0: none
	graph   *job.Graph            // in force in the scheduler; nil: that of the record
	untold  *job.Graph            // in force in the scheduler, not in the coordinator; nil: none
}

// plans are the workloads of a job by the fingerprints of their graphs, and what is known of the one in force.
type plans struct {
	all     map[string]*workload
	attempt int     // the first of the plan
	floor   *prefix // of the checkpoint that its tasks were started from first: what had finished before is in no later one; nil: none
	// due: the tasks that are deployed next may be the first of their plan. It outlives job masters, which may die before they deploy any (seed 20889).
	due bool
}

func (s *Sim) planOf(fingerprint string) *workload {
	if w := s.plans.all[fingerprint]; w != nil {
		return w
	}
	return s.work
}

// rescaleRequest asks for another parallelism of some vertices.
func (s *Sim) rescaleRequest() {
	m := s.master
	if m.life.over {
		return
	}
	ev := rescale.Requested{Plan: rescale.Plan{Parallelism: 1, Operators: m.work.parallelism(), Graph: m.work.graph}}
	ev.Request.Job, ev.Request.Wait, ev.Request.Vertices = s.job, s.upTo(3*time.Second), map[job.VertexID]int{}
	for _, v := range m.work.graph.Vertices {
		if s.rng.IntN(2) == 0 || len(ev.Request.Vertices) == 0 {
			ev.Request.Vertices[v.ID] = 1 + s.rng.IntN(highestParallelism)
		}
	}
	if m.records.recovering || !s.watch.running || m.coord.Stopping() {
		ev.NotRunning = "not all tasks run"
	}
	m.take(func() { m.feed(ev) })
}

func (w *workload) parallelism() map[string]int {
	out := map[string]int{}
	for _, v := range w.graph.Vertices {
		out[string(v.ID)] = v.Parallelism
	}
	return out
}

// at is the same job at another parallelism. Edges that were forward in the beginning are so where both ends agree.
func (w *workload) at(parallelism map[string]int) *workload {
	g := *w.graph
	g.Vertices, g.Edges = slices.Clone(g.Vertices), slices.Clone(g.Edges)
	g.Fingerprint = ""
	for i := range g.Vertices {
		v := &g.Vertices[i]
		v.Parallelism = parallelism[string(v.ID)]
		g.Fingerprint += fmt.Sprintf("%s=%d ", v.ID, v.Parallelism)
	}
	for i := range g.Edges {
		if e := &g.Edges[i]; w.forward[e.ID] {
			e.Partitioning = job.Rebalance
			if g.Vertex(e.From).Parallelism == g.Vertex(e.To).Parallelism {
				e.Partitioning = job.Forward
			}
		}
	}
	next := *w
	next.graph = &g
	return &next
}

// rescale does one effect of the rescale, as package jobmaster does.
func (m *master) rescale(e rescale.Effect) {
	s := m.s
	switch e := e.(type) {
	case rescale.CallPlan:
		next := m.work.at(e.Operators)
		s.plans.all[next.graph.Fingerprint] = next
		g := *next.graph
		s.after(s.storageDelay(), "the job is planned", func() { m.take(func() { m.feed(rescale.Planned{Graph: &g}) }) })
	case rescale.Survey:
		k := rescale.Known{Old: m.work.graph, New: e.Graph, Before: m.placedTasks(), After: m.sched.Preview(e.Graph), Held: m.sched.Slots(), Free: m.registry.free()}
		if c := m.coord.Latest(); c != nil {
			k.Latest = c.Metadata
		}
		estimate, err := rescale.Estimate(k)
		if err != nil {
			s.violate("rescale", "%v", err) // every state here fits every parallelism
		}
		m.feed(rescale.Surveyed{Estimate: estimate, Problem: err})
	case rescale.TakeCheckpoint:
		s.watch.requests++
		m.rescaling.request = coordinator.RequestID(3_000_000 + s.watch.requests)
		s.watch.unanswered[m.rescaling.request] = true
		m.feed(coordinator.TriggerRequested{Request: m.rescaling.request, Kind: checkpoint.Checkpoint})
	case rescale.Record:
		m.records.ledger.Replan(ha.Plan{Parallelism: e.Plan.Parallelism, OperatorParallelism: e.Plan.Operators, Graph: e.Plan.Graph})
	case rescale.Replan:
		m.feed(scheduler.Replan{Graph: e.Graph, Trial: e.Trial})
	case rescale.Answer:
		switch {
		case e.Report != nil:
			s.faults["rescaled"]++
		case m.sched.State() == job.Running && e.Estimate.SlotsNeeded > 0:
			s.faults["rescale went back or was given up"]++
		}
	case rescale.Note:
	}
}

func (m *master) placedTasks() map[job.TaskID]job.ExecutorID {
	out := map[job.TaskID]job.ExecutorID{}
	for a, executor := range m.running.placed {
		out[a.Task] = executor
	}
	return out
}

func (m *master) tellRescale(ev rescale.Event) {
	if m.rescaling.core.Active() {
		m.feed(ev)
	}
}

func (m *master) checkpointForRescale(e coordinator.Reply) {
	if e.Request != m.rescaling.request {
		return
	}
	m.rescaling.request = 0
	ev := rescale.Checkpointed{ID: e.ID, Duration: e.Duration}
	if e.Reason != checkpoint.None {
		ev.Problem = string(e.Reason)
	}
	m.tellRescale(ev)
}

// replanned: the scheduler goes by another graph.
func (m *master) replanned(g *job.Graph) {
	m.rescaling.graph, m.rescaling.untold, m.s.plans.due = g, g, true
	m.running.deploying = nil
	clear(m.running.placed)
	clear(m.running.failing)
}

// tellCoordinator has the coordinator go by the graph that is in force, once nothing of the old one is pending.
func (m *master) tellCoordinator() bool {
	g := m.rescaling.untold
	if g == nil {
		return false
	}
	m.rescaling.untold = nil
	m.adopt(m.s.planOf(g.Fingerprint))
	m.feed(coordinator.Replanned{Graph: g})
	return true
}

// adopt goes by a plan from now on.
func (m *master) adopt(w *workload) {
	m.s.plans.due = m.s.plans.due || w != m.s.work
	m.work, m.s.work = w, w
}

// begins is called with the first deployment of a plan: what the tasks of earlier ones have said is of no use any more.
func (w *watcher) begins(s *Sim, placements []job.Placement, from *checkpoint.Completed) {
	if from != nil {
		if p := w.prefixes[from.Dir]; p != nil {
			s.plans.floor = p
		}
		for task, id := range w.committedTo {
			if from.Metadata.ID < id {
				s.violate("I5", "the tasks of a new plan start from checkpoint %d, and output of %s up to %d is visible", from.Metadata.ID, task, id)
			}
		}
	}
	s.plans.attempt = placements[0].Attempt.Attempt
	clear(w.splits)
	clear(w.committedTo)
}

// onePlan: no task of one plan lives with one of another on executors that are registered.
func (w *watcher) onePlan(t *simTask) {
	for _, open := range t.s.master.registry.sessions {
		x := open.executor
		if !x.alive || x.incarnation != open.incarnation || x.resetting || t.epoch != t.s.master.life.epoch {
			continue
		}
		for _, o := range x.tasks {
			if o.live() && o.attempt.Job == t.attempt.Job && o.load.graph.Fingerprint != t.load.graph.Fingerprint {
				t.s.violate("plan", "%s starts by plan %q, and %s lives by %q", t.attempt, t.load.graph.Fingerprint, o.attempt, o.load.graph.Fingerprint)
			}
		}
	}
}

// free is how many slots nobody has.
func (r *registry) free() int {
	n := 0
	r.pool.Each(func(_ slotpool.Executor, free int) { n += free })
	return n
}

// forwardEdges are those that are forward in the beginning.
func forwardEdges(g *job.Graph) map[string]bool {
	out := map[string]bool{}
	for _, e := range g.Edges {
		out[e.ID] = e.Partitioning == job.Forward
	}
	maps.DeleteFunc(out, func(_ string, forward bool) bool { return !forward })
	return out
}
