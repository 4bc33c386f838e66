package coordinator_test

import (
	"github.com/weirstream/weir/internal/checkpoint"
	. "github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/job"
)

// regions is what the world knows of the tasks: which attempts run, in a job of one or more failover regions.
type regions struct {
	graph    *job.Graph
	attempts map[job.TaskID]int
	down     map[job.TaskID]bool
}

func newRegions(g *job.Graph) regions {
	r := regions{graph: g, attempts: map[job.TaskID]int{}, down: map[job.TaskID]bool{}}
	r.stopAll()
	return r
}

func (r *regions) runs(a job.AttemptID) bool {
	return !r.down[a.Task] && r.attempts[a.Task] == a.Attempt
}

// up reports whether any task runs.
func (r *regions) up() bool { return len(r.down) < len(r.graph.Tasks()) }

func (r *regions) stopAll() {
	for _, t := range r.graph.Tasks() {
		r.down[t] = true
	}
}

// start gives the tasks that do not run new attempts.
func (r *regions) start(number int) (started []job.AttemptID) {
	for t := range r.down {
		r.attempts[t] = number
		started = append(started, job.AttemptID{Job: testJob, Task: t, Attempt: number})
	}
	clear(r.down)
	return started
}

// tasks are the present attempts of all tasks.
func (w *world) tasks() []Task {
	out := tasksOf(w.regions.graph, 1)
	for i := range out {
		out[i].Attempt.Attempt = w.regions.attempts[out[i].Attempt.Task]
	}
	return out
}

// stopPart stops a region while others run on; if it is the last, it stops all.
func (w *world) stopPart() {
	all := w.regions.graph.Regions()
	region := all[w.rng.IntN(len(all))]
	if w.regions.down[region[0]] {
		return
	}
	ev := TasksStopped{Reason: checkpoint.FailoverRegion}
	for _, t := range region {
		w.regions.down[t] = true
		ev.Attempts = append(ev.Attempts, job.AttemptID{Job: testJob, Task: t, Attempt: w.regions.attempts[t]})
	}
	if !w.regions.up() {
		w.stop()
		return
	}
	w.attempt = 0
	w.step(ev)
}
