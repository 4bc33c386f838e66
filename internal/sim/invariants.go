package sim

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/job"
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
	hooked      map[checkpoint.ID]bool // the master hook has been called for it
	stop        string                 // directory of the savepoint that has stopped the job; empty: none
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
		committedTo: map[job.TaskID]checkpoint.ID{}, finished: map[job.AttemptID]bool{}, restarts: -1, hooked: map[checkpoint.ID]bool{},
		leaders: leaders{deployed: map[job.AttemptID]job.LeaderEpoch{}, doubtful: map[checkpoint.ID]bool{}, stops: map[checkpoint.ID]job.StopMode{}, discarding: map[checkpoint.ID]bool{}},
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
		if (e.Final || e.Stop.EndsTasks()) && s.cfg.Faults.KillBehindEnd {
			s.killAll()
		}
	case coordinator.Aborted:
		w.checkOutcome(s, e.ID, w.aborted)
		if strings.Contains(e.Message, "refers to shared file") {
			s.violate("shared", "checkpoint %d: %s", e.ID, e.Message)
		}
	case coordinator.Discard:
		w.leaders.discarding[e.ID] = true
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
	w.checkHook(s, md)
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
		if err := s.checkShared(c.Dir, md); err != nil {
			s.violate("I3", "retained checkpoint in %s: %v", c.Dir, err)
		}
		for _, h := range handles(md) {
			if _, err := s.readState(c.Dir, h); err != nil {
				s.violate("I3", "retained checkpoint in %s: %v", c.Dir, err)
			}
		}
	}
}

// stored sees the answers of the storage.
func (w *watcher) stored(s *Sim, ev coordinator.Event) {
	switch ev := ev.(type) {
	case coordinator.Discarded:
		if ev.Err == "" {
			w.discarded[ev.ID] = true
		}
	case metadataWritten:
		if ev.Outcome == coordinator.Uncertain {
			w.leaders.doubtful[ev.ID] = true
			s.faults["metadata uncertain"]++
		}
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
				out = slices.AppendSeq(out, op.Handles())
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
