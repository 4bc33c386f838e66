package sim

import (
	"slices"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/scheduler"
)

// visible is I5, the half that can be seen at once, and the acting half of I7: records of the checkpoint's prefix become visible, once,
// and only when the checkpoint is durable.
func (w *watcher) visible(s *Sim, by job.AttemptID, records []record, because checkpoint.ID, dir string) {
	p := w.prefixes[dir]
	if by.Job != s.job {
		p = s.origin.prefix // a task of a job that is over does at last what it was told
	}
	if p == nil {
		s.violate("I7", "%s commits for checkpoint %d, which has not completed", by, because)
		return
	}
	if !s.isDurable(p.dir) && !s.isDurable(w.latestDir) && w.leaders.end == nil {
		s.violate("I7", "%s commits for checkpoint %d, and neither it nor the latest, %d, is durable", by, because, w.latest)
	}
	vertex := s.work.index(by.Task.Vertex)
	o := w.sink(vertex)
	for _, r := range records {
		if err := o.add(s.work, r, p); err != nil {
			s.violate("I5", "%s commits for checkpoint %d: %v", by, because, err)
			return
		}
	}
}

// prefixOf is that of a checkpoint of the job, or of the one that it was started from.
func (w *watcher) prefixOf(s *Sim, id checkpoint.ID) *prefix {
	if o := s.origin; o != nil && id == o.id {
		return o.prefix
	}
	return w.prefixes[w.dirOf(s.job, id)]
}

// dirOf is where a checkpoint of a job is.
func (w *watcher) dirOf(j job.ID, id checkpoint.ID) string {
	if e := w.started[id]; e.Kind == checkpoint.Savepoint {
		return e.Directory
	}
	return checkpoint.Dir(j, id)
}

// idOf is the inverse of dirOf.
func (w *watcher) idOf(dir string) checkpoint.ID {
	if dir == w.latestDir {
		return w.latest
	}
	for id, e := range w.started {
		if e.Kind == checkpoint.Savepoint && e.Directory == dir {
			return id
		}
	}
	return 0
}

func (w *watcher) sink(vertex int) *visibleOutput {
	if w.output[vertex] == nil {
		w.output[vertex] = newVisible()
	}
	return w.output[vertex]
}

// committed is the other half of I5: when all tasks of a sink have committed the same checkpoint, nothing of its prefix is missing.
func (w *watcher) committed(s *Sim, by job.AttemptID, id checkpoint.ID) {
	if by.Job != s.job || by.Attempt < s.plans.attempt { // of another plan: what it commits late was promised before
		return
	}
	_, present := s.master.running.placed[by]
	present = present && !s.master.life.over
	if last := w.committedTo[by.Task]; id < last {
		if present {
			s.violate("I5", "%s starts from checkpoint %d, and output up to %d is visible", by, id, last)
		}
		return
	}
	w.committedTo[by.Task] = id
	vertex := s.work.index(by.Task.Vertex)
	for i := range s.work.graph.Vertices[vertex].Parallelism {
		t := job.AttemptID{Job: s.job, Task: job.TaskID{Vertex: by.Task.Vertex, Subtask: i}, Attempt: by.Attempt}
		if at := w.committedTo[t.Task]; at != id && (at > id || !w.finished[t]) { // what had finished before has no more to commit
			return
		}
	}
	if id == 0 {
		return
	}
	p := w.prefixOf(s, id)
	if p == nil {
		s.violate("I7", "%s has committed checkpoint %d, which has not completed", by, id)
		return
	}
	if err := w.sink(vertex).complete(s.work, vertex, p); err != nil {
		s.violate("I5", "all tasks of %s have committed checkpoint %d: %v", by.Task.Vertex, id, err)
	}
}

// finish: a task may be gone for good when a checkpoint has completed in which it had ended.
func (w *watcher) finish(t *simTask) {
	if t.attempt.Job != t.s.job {
		return
	}
	p := w.prefixOf(t.s, t.watched.notified)
	if p == nil || !p.ended[t.attempt.Task] && (p.dir != w.stop || !w.stopMode.EndsTasks()) {
		t.s.violate("finished", "%s finishes with checkpoint %d, in which it had not ended", t.attempt, t.watched.notified)
	}
	w.finished[t.attempt] = true
	if t.s.watch.running && slices.ContainsFunc(t.s.master.sched.Executions(), func(e scheduler.Execution) bool { return e.State == job.TaskRunning && !p.ended[e.Task] }) {
		t.s.faults["task finishes before others end"]++
	}
}

// notified: operators hear of completed checkpoints only, ascending.
func (w *watcher) notified(t *simTask, id checkpoint.ID) {
	if t.attempt.Job != t.s.job {
		return
	}
	if !w.completed[id] || id <= t.watched.notified {
		t.s.violate("I7", "%s is told of checkpoint %d: completed %t, told before %d", t.attempt, id, w.completed[id], t.watched.notified)
	}
	t.watched.notified = id
}

func (w *watcher) notifiedAborted(t *simTask, id checkpoint.ID) {
	if !w.aborted[id] && t.attempt.Job == t.s.job {
		t.s.violate("I1", "%s is told that checkpoint %d was aborted, which was not", t.attempt, id)
	}
}
