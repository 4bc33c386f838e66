package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// maxJobs is how many jobs follow one another in a run.
const maxJobs = 4

// origin is the checkpoint or savepoint that a job is started from, of the job before it.
type origin struct {
	id      checkpoint.ID
	dir     string
	claimed bool
	prefix  *prefix
}

// resume starts the next job from the savepoint that has stopped one, or from the latest checkpoint of one that was canceled to be resumed; false:
// there is none, or there were enough jobs. The job master is started again for it, so that everything of the job before is late.
func (s *Sim) resume() bool {
	w := &s.watch
	from, canceled := w.stop, s.cfg.Resume && s.jobs == 1 && w.leaders.end.State == job.Canceled
	if from == "" && canceled {
		from = w.latestDir
	}
	if p := w.prefixes[from]; p == nil || s.jobs == maxJobs || w.stop != "" && w.stopMode == job.StopDrain {
		return false
	}
	s.origin = &origin{id: w.idOf(from), dir: from, claimed: s.rng.IntN(2) == 0, prefix: w.prefixes[from]}
	s.faults["resumed"]++
	next := s.work.rescaled(s.rng, s.origin.prefix)
	if next != s.work {
		s.faults["resumed at another parallelism"]++
	}
	s.jobs++
	s.job, s.work = job.ID(fmt.Sprintf("job-%d", s.jobs)), next
	s.plans = plans{all: map[string]*workload{next.graph.Fingerprint: next}, floor: s.origin.prefix}
	s.watch = w.next(s.origin)
	s.note("job %s starts from %s, claimed %t: %s", s.job, s.origin.dir, s.origin.claimed, s.work)
	s.master.crash("is replaced")
	return true
}

// next is the watcher of the next job: what is outside stays, and so do savepoints, and the checkpoint that it starts from.
func (w *watcher) next(o *origin) watcher {
	out := newWatcher()
	out.output, out.savepoints, out.requests, out.healedAt = w.output, w.savepoints, w.requests, w.healedAt
	out.leaders.epoch, out.leaders.restarts = w.leaders.epoch, w.leaders.restarts
	out.lastID, out.latest, out.latestDir = o.id, o.id, o.dir
	out.completed[o.id] = true
	out.prefixes[o.dir] = o.prefix
	out.started[o.id] = w.started[o.id]
	from := &checkpoint.Completed{Dir: o.dir}
	out.leaders.kept = []*checkpoint.Completed{from}
	out.savepoints = slices.DeleteFunc(out.savepoints, func(c *checkpoint.Completed) bool { return c.Dir == o.dir })
	if !o.claimed {
		out.savepoints = append(out.savepoints, from)
	}
	return out
}

// readStop reads the savepoint that the job was stopped with.
func (m *master) readStop(dir string) *checkpoint.Completed {
	md, err := m.s.readMetadata(dir)
	if err != nil {
		m.s.violate("I3", "job %s was stopped with %s: %v", m.s.job, dir, err)
		return nil
	}
	return &checkpoint.Completed{Dir: dir, Metadata: md, Stopped: true}
}

// readOrigin reads the checkpoint that the job was started from; nil: there is none, or nobody needs it.
func (m *master) readOrigin(needed bool) *checkpoint.Completed {
	dir := m.records.job.Restore
	if dir == "" || !needed {
		return nil
	}
	md, err := m.s.readMetadata(dir)
	if err != nil {
		m.s.violate("I3", "job %s cannot start from %s: %v", m.s.job, dir, err)
		return nil
	}
	return &checkpoint.Completed{Dir: dir, Metadata: md, Claimed: m.records.job.Claimed}
}

// rescaled is the same job at other parallelisms, or the job itself if some tasks of a vertex had ended and others had not.
func (w *workload) rescaled(rng *rand.Rand, p *prefix) *workload {
	for _, v := range w.graph.Vertices {
		for i := range v.Parallelism {
			if p.ended[job.TaskID{Vertex: v.ID, Subtask: i}] != p.ended[job.TaskID{Vertex: v.ID}] {
				return w
			}
		}
	}
	g := *w.graph
	g.Vertices, g.Edges = slices.Clone(g.Vertices), slices.Clone(g.Edges)
	for i := range g.Vertices {
		g.Vertices[i].Parallelism = 1 + rng.IntN(highestParallelism)
	}
	for i := range g.Edges {
		if e := &g.Edges[i]; e.Partitioning == job.Forward && g.Vertex(e.From).Parallelism != g.Vertex(e.To).Parallelism {
			e.Partitioning = job.Rebalance
		}
	}
	g.Fingerprint = fmt.Sprintf("%s, rescaled", g.Fingerprint)
	next := *w
	next.graph, next.forward = &g, forwardEdges(&g)
	return &next
}
