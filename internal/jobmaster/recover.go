package jobmaster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/ha"
	"github.com/weirstream/weir/internal/masterhook"
	"github.com/weirstream/weir/internal/scheduler"
)

// recovery is how a job of an earlier job master begins: its checkpoints are read beside the loop, and the scheduler starts when the one that
// it goes on from is known. Its tasks are gone: their executors canceled them when the registration ended.
type recovery struct {
	open    bool                    // the checkpoints are not known
	problem string                  // why they cannot be read; it is tried again
	older   []*checkpoint.Completed // retained before the one that was restored, ascending by id; their Metadata may be nil
	stop    context.CancelFunc
}

func (r *recovery) end() {
	if r.stop != nil {
		r.stop()
	}
}

func (r *recovery) detail() string {
	if r.problem == "" {
		return "reads its checkpoints"
	}
	return "cannot be recovered: " + r.problem
}

// recall makes the loop of a recorded job. One that has ended only shows how.
func (m *JobMaster) recall(r ha.Record) *jobLoop {
	s := spec{
		id: r.Job.ID, order: r.Job.Order, name: r.Job.Name, params: r.Job.Params, options: r.Job.Options, graph: r.Job.Graph,
		submitted: r.Job.Submitted, recovered: &r,
	}
	if r.Job.Restore != "" {
		s.restored = &checkpoint.Completed{Dir: r.Job.Restore, Claimed: r.Job.Claimed} // is read when it is needed
	}
	l := newJobLoop(&m.cfg, m.registry, s)
	if r.End == nil {
		return l
	}
	v := l.board.read()
	v.status.State, v.status.Detail, v.status.Ended = r.End.State, r.End.Failure, r.End.At
	v.status.Restarts, v.status.Completed, v.status.Failed = r.End.Restarts, r.End.Completed, r.End.Failed
	if v.status.StoppedWith = r.End.StoppedWith; v.status.StoppedWith != "" && v.status.Detail == "" {
		v.status.Detail = "stopped with savepoint " + v.status.StoppedWith
	}
	l.board.publish(v)
	l.inbox.Begin()
	if r.End.Clean {
		l.board.end()
		l.inbox.End()
	}
	return l
}

// recall sets the records of a job that an earlier job master has run.
func (l *jobLoop) recall() {
	l.calling.ledger = ha.NewLedger(l.recovered)
	l.calling.recovery.open = l.recovered != nil && l.recovered.End == nil
}

// newCoordinator makes the coordinator; that of a job that is being recovered is replaced when its checkpoints are known.
func (l *jobLoop) newCoordinator(restored *checkpoint.Completed) *coordinator.Core {
	if restored != nil && restored.Metadata == nil {
		restored = nil
	}
	if restored != nil {
		l.calling.ledger.Used(restored.Metadata.ID)
	}
	return coordinator.New(coordinator.Config{
		Job: l.id, JobName: l.name, Params: l.params, Graph: l.graph, Epoch: l.cfg.Epoch, Options: l.options.Checkpoint, Restored: restored,
		FirstID: l.calling.ledger.FirstID(), History: l.cfg.Rules.CheckpointHistory,
	})
}

// begin starts the scheduler, or has the checkpoints read first.
func (l *jobLoop) begin(ctx context.Context) {
	if !l.calling.recovery.open {
		l.feed(scheduler.Start{})
		return
	}
	ctx, l.calling.recovery.stop = context.WithCancel(ctx)
	l.work.Go(func() {
		var got found
		done := l.retry(ctx, "recover the job", func(ctx context.Context) (err error) {
			if got, err = l.readCheckpoints(ctx); err == nil {
				got.hooks, err = l.cfg.openHooks(ctx, l.spec)
			}
			l.inbox.Post(recovered{got, err})
			return err
		})
		if !done {
			return
		}
		for _, id := range got.unfinished { // this job master uses higher ids, so it cannot be one of its own
			dir := checkpoint.Dir(l.id, id)
			if err := limited(ctx, func(ctx context.Context) error { return l.cfg.Archive.Discard(ctx, dir) }); err != nil {
				l.log.Warn("delete an unfinished checkpoint", zap.String("dir", dir), zap.Error(err))
			}
		}
	})
}

// cleanUpAfter brings the deletions of a job that has ended to their end.
func (l *jobLoop) cleanUpAfter(ctx context.Context) {
	if len(l.graph.MasterHooks) > 0 {
		l.tellHooks(ctx, nil)
	}
	l.retry(ctx, "clean up after the job", l.sweepJobDir)
	l.board.end()
	l.inbox.End()
}

// found is what a job goes on from.
type found struct {
	latest     *checkpoint.Completed // nil: it starts empty
	older      []*checkpoint.Completed
	unfinished []checkpoint.ID
	lastID     checkpoint.ID // no id up to it may be used again
	skipped    []error       // why newer ones were not taken; only with Rules.Fallback
	hooks      *masterhook.Set
}

// readCheckpoints finds the newest completed checkpoint; see checkpoint.Recover. It is never passed over in silence: when it cannot be read the
// job does not start, or it is said which older one is taken.
func (l *jobLoop) readCheckpoints(ctx context.Context) (found, error) {
	files, err := l.cfg.Archive.Root.Files(ctx, checkpoint.JobDir(l.id))
	if err != nil {
		return found{}, err
	}
	known := l.recovered.Progress
	completed := known.Completed
	if known.Stopped != "" {
		completed = 0 // it does not go on from any of them
	}
	r, err := checkpoint.Recover(l.id, files, known.Reserved, completed)
	if err != nil {
		return found{}, fmt.Errorf("checkpoint %d was completed, but neither %s nor a newer one is there; put it back, or cancel the job and "+
			"submit it again with --from a checkpoint or savepoint", known.Completed, l.location(checkpoint.Dir(l.id, known.Completed)))
	}
	out := found{unfinished: r.Unfinished, lastID: r.LastID}
	if known.Stopped != "" {
		if out.latest, err = l.readStop(ctx); err == nil {
			out.lastID = max(out.lastID, out.latest.Metadata.ID)
		}
		return out, err
	}
	if r.Latest == 0 {
		if out.latest, err = l.readRestored(ctx); out.latest != nil {
			out.lastID = max(out.lastID, out.latest.Metadata.ID)
		}
		return out, err
	}
	if o := l.restored; o != nil && o.Claimed {
		out.older = append(out.older, o) // it counts as the oldest
	}
	if err := l.readRetained(ctx, append(slices.Clone(r.Older), r.Latest), &out); err != nil {
		return found{}, err
	}
	return out, l.cfg.Archive.MakeDurable(ctx, out.latest.Dir)
}

// readRetained reads the job's own checkpoints, whose ids ascend: the newest is what it goes on from.
func (l *jobLoop) readRetained(ctx context.Context, ids []checkpoint.ID, out *found) (err error) {
	var own []*checkpoint.Completed // newest first
	for _, id := range slices.Backward(ids) {
		c := &checkpoint.Completed{Dir: checkpoint.Dir(l.id, id)}
		if c.Metadata, err = l.readOwn(ctx, id); out.latest == nil {
			switch {
			case err == nil:
				out.latest = c
				continue
			case !l.cfg.Rules.Fallback:
				return err
			}
			out.skipped = append(out.skipped, err)
		}
		own = append(own, c) // it is only kept until newer ones take its place
	}
	slices.Reverse(own)
	if out.older = append(out.older, own...); out.latest == nil {
		return errors.Join(append(out.skipped, errors.New("there is no older one"))...)
	}
	return nil
}

// readOwn reads one of the job's own checkpoints.
func (l *jobLoop) readOwn(ctx context.Context, id checkpoint.ID) (*checkpoint.Metadata, error) {
	dir := checkpoint.Dir(l.id, id)
	md, err := l.read(ctx, dir)
	if err == nil && (md.Job != l.id || md.ID != id) {
		err = fmt.Errorf("it is checkpoint %d of job %s", md.ID, md.Job)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint %d in %s cannot be read: %w; repair it, or cancel the job and submit it again with --from an older checkpoint "+
			"or a savepoint", id, l.location(dir), err)
	}
	return md, nil
}

// readRestored reads the checkpoint that the job was submitted with; nil: none.
func (l *jobLoop) readRestored(ctx context.Context) (*checkpoint.Completed, error) {
	if l.restored == nil {
		return nil, nil
	}
	c := *l.restored
	if err := l.readMetadata(ctx, &c); err != nil {
		return nil, fmt.Errorf("the checkpoint %s that it was to start from cannot be read: %w; repair it, or cancel the job and submit it again", l.location(c.Dir), err)
	}
	return &c, nil
}

// readStop reads the savepoint that the job was stopped with. Its tasks may have committed what it promised, so there is nothing in its place.
func (l *jobLoop) readStop(ctx context.Context) (*checkpoint.Completed, error) {
	c := &checkpoint.Completed{Dir: l.recovered.Progress.Stopped, Stopped: true}
	if err := l.readMetadata(ctx, c); err != nil {
		return nil, fmt.Errorf("the savepoint %s that it was stopped with cannot be read: %w; put it back, or cancel the job: what it had not committed by "+
			"then is committed by the job that starts from the savepoint", l.location(c.Dir), err)
	}
	return c, nil
}

func (l *jobLoop) readMetadata(ctx context.Context, c *checkpoint.Completed) (err error) {
	c.Metadata, err = l.read(ctx, c.Dir)
	return err
}

// read reads a checkpoint, sees that its files are there, and gives the part that the job takes over. What it leaves out was allowed when the
// job was submitted, for the checkpoint and the graph are the same.
func (l *jobLoop) read(ctx context.Context, dir string) (*checkpoint.Metadata, error) {
	md, err := l.cfg.Archive.Read(ctx, dir)
	if err != nil {
		return nil, err
	}
	md, _, err = checkpoint.Fit(md, l.graph, true)
	return md, err
}

// recovered: the checkpoints of the job were read, or could not be.
type recovered struct {
	found found
	err   error
}

func (m recovered) apply(l *jobLoop) {
	r := &l.calling.recovery
	l.changed = true
	if !r.open || l.sched.State().Terminal() {
		return // it was canceled meanwhile
	}
	if m.err != nil {
		if text := m.err.Error(); r.problem != text {
			r.problem = text
			l.tell("cannot be recovered: " + text)
		}
		return
	}
	r.open, r.problem = false, ""
	r.older = m.found.older
	l.calling.hooks.set = m.found.hooks
	l.calling.ledger.Used(m.found.lastID)
	from := "from the beginning"
	if c := m.found.latest; c != nil {
		from = fmt.Sprintf("from %s %d", c.Metadata.Kind, c.Metadata.ID)
		if c.Stopped {
			from = "to finish with " + strings.TrimPrefix(from, "from ") + ", which has stopped it"
		}
		if c.Metadata.Job == l.id && c.Metadata.Kind == checkpoint.Checkpoint {
			l.calling.ledger.Completed(c.Metadata.ID)
		}
	}
	for _, err := range m.found.skipped {
		l.tell("WARNING: " + err.Error())
	}
	if len(m.found.skipped) > 0 {
		from += " instead, as --fallback allows; output that was committed since then is written again"
	}
	l.tell(fmt.Sprintf("recovered by leader epoch %d, goes on %s", l.cfg.Epoch, from))
	l.coord = l.newCoordinator(m.found.latest)
	l.feed(scheduler.Start{})
}

// tell writes a line into the log and the timeline.
func (l *jobLoop) tell(text string) {
	l.log.Info(text)
	l.board.note(gateway.JobEvent{Time: time.Now(), Text: text})
}

// subsumeOlder deletes checkpoints of earlier job masters that are too many by now.
func (l *jobLoop) subsumeOlder(ctx context.Context) {
	r := &l.calling.recovery
	for len(r.older) > 0 && len(r.older)+len(l.coord.Retained()) > max(l.options.Checkpoint.Retained, 1) {
		l.discardBeside(ctx, r.older[0].Dir)
		r.older = r.older[1:]
	}
}

func (l *jobLoop) discardBeside(ctx context.Context, dir string) {
	l.store(ctx, func(ctx context.Context) coordinator.Event {
		if err := l.cfg.Archive.Discard(ctx, dir); err != nil {
			l.log.Warn("delete checkpoint", zap.String("dir", dir), zap.Error(err))
		}
		return nil
	})
}

// withRecovered adds the checkpoints of earlier job masters that are retained to the history of this one, oldest first.
func (l *jobLoop) withRecovered(history []coordinator.Stats) []coordinator.Stats {
	if l.recovered == nil {
		return history
	}
	var out []coordinator.Stats
	for _, c := range slices.Concat(l.calling.recovery.older, l.coord.Retained()) {
		if c.Metadata == nil || slices.ContainsFunc(history, func(s coordinator.Stats) bool { return s.ID == c.Metadata.ID }) {
			continue
		}
		n := len(l.graph.Tasks())
		out = append(out, coordinator.Stats{
			ID: c.Metadata.ID, Kind: c.Metadata.Kind, State: coordinator.StateCompleted, Times: coordinator.Times{Triggered: c.Metadata.Timestamp}, Dir: c.Dir, Tasks: n, Acked: n,
			Bytes: c.Metadata.StateBytes(),
		})
	}
	out = append(out, history...)
	slices.SortFunc(out, func(a, b coordinator.Stats) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
