package sim

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/scheduler"
)

// watcher remembers what the invariants are about. Those about an event are checked when it happens, the others after every step.
type watcher struct {
	over    bool
	running bool
	leaders leaders

	lastID      checkpoint.ID
	started     map[checkpoint.ID]coordinator.InitLocation
	completed   map[checkpoint.ID]bool
	aborted     map[checkpoint.ID]bool
	latest      checkpoint.ID      // the highest completed checkpoint that is no savepoint
	prefixes    map[string]*prefix // by directory
	latestDir   string
	splits      map[job.TaskID][]int // of sources
	savepoints  []*checkpoint.Completed
	stop        string // directory of the savepoint that has stopped the job; empty: none
	stopMode    job.StopMode
	verified    int // version of the storage that checkRetained has seen
	discarded   map[checkpoint.ID]bool
	requests    int
	unanswered  map[coordinator.RequestID]bool
	output      map[int]*visibleOutput // by sink vertex
	committedTo map[job.TaskID]checkpoint.ID
	finished    map[job.AttemptID]bool // they have committed everything they had

	healedAt time.Time
	progress time.Time // when a checkpoint completed last
	since    int       // checkpoints that completed after the faults
	restarts int       // at the end of recovery; -1 before
}

func newWatcher() watcher {
	return watcher{
		started: map[checkpoint.ID]coordinator.InitLocation{}, discarded: map[checkpoint.ID]bool{}, completed: map[checkpoint.ID]bool{}, aborted: map[checkpoint.ID]bool{},
		prefixes: map[string]*prefix{}, splits: map[job.TaskID][]int{}, unanswered: map[coordinator.RequestID]bool{}, output: map[int]*visibleOutput{},
		committedTo: map[job.TaskID]checkpoint.ID{}, finished: map[job.AttemptID]bool{}, restarts: -1,
		leaders: leaders{deployed: map[job.AttemptID]job.LeaderEpoch{}, doubtful: map[checkpoint.ID]bool{}, stops: map[checkpoint.ID]job.StopMode{}},
	}
}

// check is called after every step.
func (s *Sim) check() {
	s.checkRetained()
	if !s.master.life.over {
		s.checkAttempts()
		s.checkProgress()
	}
}

// effect sees every effect of the coordinator before it is done.
func (w *watcher) effect(s *Sim, e coordinator.Effect) {
	switch e := e.(type) {
	case coordinator.InitLocation:
		w.checkIDs(s, e)
	case coordinator.SendTrigger:
		w.leaders.stops[e.ID] = e.Stop
	case coordinator.Completed:
		w.checkOutcome(s, e.ID, w.completed)
		w.complete(s, e)
		if e.Final && s.cfg.Faults.KillBehindFinal {
			s.killAll()
		}
	case coordinator.Aborted:
		w.checkOutcome(s, e.ID, w.aborted)
	case coordinator.CancelJob:
		w.stopped(s, w.leaders.cancelsWith, job.StopCancel)
	case coordinator.SendNotifyComplete:
		w.checkNotify(s, e.ID)
	case coordinator.Reply:
		if !w.unanswered[e.Request] {
			s.violate("reply", "request %d is answered twice", e.Request)
		}
		delete(w.unanswered, e.Request)
	}
}

// checkOutcome is I1: a checkpoint is completed or aborted, once.
func (w *watcher) checkOutcome(s *Sim, id checkpoint.ID, into map[checkpoint.ID]bool) {
	if _, begun := w.started[id]; !begun || w.completed[id] || w.aborted[id] {
		s.violate("I1", "checkpoint %d: begun %t, completed %t, aborted %t, and ends now", id, begun, w.completed[id], w.aborted[id])
	}
	into[id] = true
}

// checkIDs is I2: ids strictly increase.
func (w *watcher) checkIDs(s *Sim, e coordinator.InitLocation) {
	if e.ID <= w.lastID {
		s.violate("I2", "checkpoint %d begins after %d", e.ID, w.lastID)
	}
	w.lastID = e.ID
	w.started[e.ID] = e
}

// checkNotify is the sending half of I7: nobody is told of a checkpoint that has not completed.
func (w *watcher) checkNotify(s *Sim, id checkpoint.ID) {
	if !w.completed[id] {
		s.violate("I7", "tasks are told of checkpoint %d, which has not completed", id)
	}
}

// complete takes a checkpoint into the model, from what the storage says of it.
func (w *watcher) complete(s *Sim, e coordinator.Completed) {
	s.durable.version++
	w.progress = s.now
	if s.calm {
		w.since++
	}
	w.durable(s, e.ID, e.Stop)
}

// durable takes a checkpoint into the model that counts as completed from now on.
func (w *watcher) durable(s *Sim, id checkpoint.ID, stop job.StopMode) {
	dir := w.dirOf(s.job, id)
	md, err := s.readMetadata(dir)
	if err != nil || !s.isDurable(dir) {
		s.violate("I7", "checkpoint %d counts as completed, and its metadata is not durable (%v)", id, err)
		return
	}
	p, err := s.prefixOf(dir, md)
	if err != nil {
		s.violate("I3", "completed checkpoint %d: %v", id, err)
		return
	}
	if err := s.checkState(p, md); err != nil {
		s.violate("I8", "checkpoint %d: %v", id, err)
	}
	w.prefixes[dir] = p
	if md.Kind == checkpoint.Savepoint {
		w.savepoints = append(w.savepoints, &checkpoint.Completed{Dir: dir, Metadata: md})
		if stop != job.StopNone {
			w.stopped(s, dir, stop)
		}
		if !stop.EndsTasks() {
			return
		}
	}
	if id > w.latest {
		w.latest, w.latestDir = id, dir
	}
}

// checkRetained is I3: what retained checkpoints and savepoints refer to is there, and is what was written.
func (s *Sim) checkRetained() {
	if s.watch.verified == s.durable.version {
		return
	}
	s.watch.verified = s.durable.version
	s.checkDiscarded()
	for _, c := range slices.Concat(s.watch.retained(s.master), s.watch.savepoints) {
		md, err := s.readMetadata(c.Dir)
		if err != nil {
			s.violate("I3", "metadata of the retained checkpoint in %s: %v", c.Dir, err)
			return
		}
		if c.Metadata != nil && md.ID != c.Metadata.ID {
			s.violate("I3", "%s has the metadata of checkpoint %d, not of %d", c.Dir, md.ID, c.Metadata.ID)
		}
		for _, h := range handles(md) {
			if _, err := s.readState(c.Dir, h); err != nil {
				s.violate("I3", "retained checkpoint in %s: %v", c.Dir, err)
			}
		}
	}
}

// stored sees the answers of the storage.
func (w *watcher) stored(ev coordinator.Event) {
	switch ev := ev.(type) {
	case coordinator.Discarded:
		if ev.Err == "" {
			w.discarded[ev.ID] = true
		}
	case metadataWritten:
		w.leaders.doubtful[ev.ID] = ev.Outcome == coordinator.Uncertain
	}
}

// checkDiscarded is the part of I4 that can be said without a sweeper: a checkpoint that was deleted stays deleted, so that whoever reads the
// storage later does not take what is left for a checkpoint.
func (s *Sim) checkDiscarded() {
	for _, f := range s.list() {
		dir, isMetadata := strings.CutSuffix(f, "/"+checkpoint.MetadataFile)
		if owner, id, ok := checkpoint.ParseDir(dir); isMetadata && ok && owner == s.job && s.watch.discarded[id] {
			s.violate("I4", "checkpoint %d was deleted, and its metadata is there", id)
		}
	}
}

func handles(md *checkpoint.Metadata) []checkpoint.Handle {
	var out []checkpoint.Handle
	for _, v := range md.Vertices {
		for _, sub := range v.Subtasks {
			for _, op := range sub.Operators {
				if op.Items != nil {
					out = append(out, op.Items.Handle)
				}
				if op.Keyed != nil {
					out = append(out, op.Keyed.Handle)
				}
			}
		}
	}
	return out
}

// readState reads what a handle refers to, without faults.
func (s *Sim) readState(dir string, h checkpoint.Handle) (data []byte, err error) {
	if h.IsInline() {
		return h.Inline, h.Verify(h.Inline)
	}
	s.quietly(func() { data, err = s.store.ReadFile(context.Background(), dir+"/"+h.Path, 1<<20) })
	if err != nil {
		return nil, err
	}
	data = data[min(h.Offset, int64(len(data))):min(h.Offset+h.Length, int64(len(data)))]
	return data, h.Verify(data)
}

// checkAttempts: no two attempts of a task live on executors that the job master and they themselves take for registered.
func (s *Sim) checkAttempts() {
	var live [maxVertices][highestParallelism]*simTask
	for _, open := range s.master.registry.sessions {
		x := open.executor
		if !x.alive || x.incarnation != open.incarnation || x.resetting {
			continue
		}
		for _, t := range x.tasks {
			if !t.live() {
				continue
			}
			slot := &live[t.vertex][t.attempt.Task.Subtask]
			if *slot != nil {
				s.violate("attempts", "%s on %s and %s on %s live at the same time", (*slot).attempt, (*slot).x.id, t.attempt, x.id)
			}
			*slot = t
		}
	}
}

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
	if by.Job != s.job {
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

func (w *watcher) status(s *Sim, e scheduler.JobStatusChanged) {
	if e.To.Terminal() {
		w.leaders.last = s.master.sched.Executions()
	}
	if (e.To == job.Failed || e.To == job.Restarting) && s.cfg.Faults == (Faults{}) {
		s.violate("I6", "the job is %s without any fault: %s", e.To, e.Failure)
	}
}

func (w *watcher) healed(s *Sim) { w.healedAt = s.now }

// checkProgress is I6: after the faults checkpoints complete and the job comes to its end, and nothing is left open.
func (s *Sim) checkProgress() {
	w, state := &s.watch, s.master.state()
	if state.Terminal() {
		return // it comes to an end when it is cleaned up after
	}
	if !s.cfg.Bounded && w.since >= enough {
		w.over = true
		s.checkRequests()
	}
	rest := w.healedAt.Add(recovery)
	if !s.calm || s.now.Before(rest) {
		return
	}
	if w.restarts < 0 {
		w.restarts = s.master.sched.Restarts()
	}
	if n := s.master.sched.Restarts(); n != w.restarts {
		s.violate("I6", "the job restarts without a fault: %s", s.master.sched.Failure())
	}
	if w.progress.After(rest) {
		rest = w.progress
	}
	o := s.cfg.Checkpoint
	if limit := rest.Add(o.Interval + o.Timeout + o.MinPause); s.now.After(limit) {
		s.violate("I6", "no checkpoint completed since %s, and the job is %s: %s", rest.Sub(s.start), state, s.master.sched.Detail())
	}
}

// enough is how many checkpoints have to complete after the faults before a job without end is let go.
const enough = 10

// checkEnd: a job that FINISHED has written exactly the output of the model.
func (s *Sim) checkEnd(state job.State) {
	if state != job.Finished {
		return
	}
	p := s.watch.prefixes[s.watch.latestDir]
	if p == nil {
		s.violate("I5", "the job finished without a checkpoint")
		return
	}
	stopped := p.dir == s.watch.stop
	for v, offsets := range p.offsets {
		for split, offset := range offsets {
			if !stopped && offset != s.work.splits[v][split] {
				s.violate("I5", "the job finished, and its last checkpoint has split %d of vertex %d at %d of %d", split, v, offset, s.work.splits[v][split])
			}
		}
	}
	for _, e := range s.watch.leaders.last {
		if !p.ended[e.Task] && s.watch.stopMode != job.StopSuspend {
			s.violate("I5", "the job finished, and in its last checkpoint %s had not ended", e.Task)
		}
		if !s.watch.finished[job.AttemptID{Job: s.job, Task: e.Task, Attempt: e.Attempt}] {
			s.violate("I5", "the job finished, and %s had not", e.Task)
		}
	}
	for v, k := range s.work.kinds {
		if k != sink {
			continue
		}
		if err := s.watch.sink(v).complete(s.work, v, p); err != nil {
			s.violate("I5", "the job finished, and at vertex %d %v", v, err)
		}
	}
}

func (s *Sim) checkRequests() {
	if state := s.master.state(); state.Terminal() && len(s.watch.unanswered) > 0 {
		s.violate("reply", "the job is %s, and %d requests have no answer", state, len(s.watch.unanswered))
	}
}

// watchedTask remembers of a task what the barrier invariants are about.
type watchedTask struct {
	restored checkpoint.ID
	notified checkpoint.ID
	over     map[checkpoint.ID]bool // snapshotted here, or given up
	barriers []checkpoint.ID        // by channel: the latest that was taken from it
	closed   []bool                 // by channel: the sender has finished
	canceled checkpoint.ID          // the latest whose cancel marker was taken: it is over here, and so is every earlier one (seed 12345)
}

func newWatchedTask(t *simTask, restored checkpoint.ID) watchedTask {
	return watchedTask{restored: restored, notified: restored, over: map[checkpoint.ID]bool{}, barriers: make([]checkpoint.ID, len(t.inputs)), closed: make([]bool, len(t.inputs))}
}

// process: a record behind a barrier is not processed before that checkpoint is snapshotted or given up; a barrier of a later checkpoint
// means that it is given up.
func (w *watchedTask) process(t *simTask, channel int, b batch) {
	if behind := checkpoint.ID(b.behind); behind > max(w.restored, w.canceled) && !w.over[behind] && behind >= slices.Max(w.barriers) {
		t.s.violate("barrier", "%s processes records of channel %d behind the barrier of checkpoint %d, which it has not snapshotted", t.attempt, channel, behind)
	}
}

// snapshot: all channels are at the barrier, none is behind it.
func (w *watchedTask) snapshot(t *simTask, id checkpoint.ID) {
	if w.over[id] {
		t.s.violate("barrier", "%s snapshots checkpoint %d, which was over for it", t.attempt, id)
	}
	w.over[id] = true
	for channel, at := range w.barriers {
		if at != id && !w.closed[channel] {
			t.s.violate("barrier", "%s snapshots checkpoint %d, and channel %d is at the barrier of %d", t.attempt, id, channel, at)
		}
	}
}
