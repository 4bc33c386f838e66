package jobmaster

import (
	"cmp"
	"context"
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
	"github.com/weirstream/weir/internal/recovery"
	"github.com/weirstream/weir/internal/scheduler"
)

// recovering is how a job of an earlier job master begins: its checkpoints are read beside the loop, and the scheduler starts when the one that
// it goes on from is known. Its tasks are gone: their executors canceled them when the registration ended.
type recovering struct {
	open    bool   // the checkpoints are not known
	problem string // why they cannot be read; it is tried again
	stop    context.CancelFunc
}

func (r *recovering) end() {
	if r.stop != nil {
		r.stop()
	}
}

func (r *recovering) detail() string {
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
	v := l.board.Read()
	v.Status.State, v.Status.Detail, v.Status.Ended = r.End.State, r.End.Failure, r.End.At
	v.Status.Restarts, v.Status.Completed, v.Status.Failed = r.End.Restarts, r.End.Completed, r.End.Failed
	if v.Status.StoppedWith = r.End.StoppedWith; v.Status.StoppedWith != "" && v.Status.Detail == "" {
		v.Status.Detail = "stopped with savepoint " + v.Status.StoppedWith
	}
	l.board.Publish(v)
	l.inbox.Begin()
	if r.End.Clean {
		l.board.End()
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
func (l *jobLoop) newCoordinator(restored *checkpoint.Completed, older []*checkpoint.Completed) *coordinator.Core {
	if restored != nil && restored.Metadata == nil {
		restored = nil
	}
	if restored != nil {
		l.calling.ledger.Used(restored.Metadata.ID)
	}
	return coordinator.New(coordinator.Config{
		Job: l.id, JobName: l.name, Params: l.params, Graph: l.graph, Epoch: l.cfg.Epoch, Options: l.options.Checkpoint, Restored: restored, Older: older,
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
		l.removeUnfinished(ctx, got)
	})
}

// removeUnfinished deletes what nobody will complete: this job master uses higher ids, so none of it can be its own.
func (l *jobLoop) removeUnfinished(ctx context.Context, got found) {
	for _, id := range got.Unfinished {
		dir := checkpoint.Dir(l.id, id)
		if err := limited(ctx, func(ctx context.Context) error { return l.cfg.Archive.Discard(ctx, dir) }); err != nil {
			l.log.Warn("delete an unfinished checkpoint", zap.String("dir", dir), zap.Error(err))
		}
	}
	if err := limited(ctx, func(ctx context.Context) error {
		return l.cfg.Archive.RemoveLeft(ctx, l.id, got.Files, got.Kept(l.id), got.LastID)
	}); err != nil {
		l.log.Warn("delete files of unfinished checkpoints", zap.Error(err))
	}
}

// cleanUpAfter brings the deletions of a job that has ended to their end.
func (l *jobLoop) cleanUpAfter(ctx context.Context) {
	if len(l.graph.MasterHooks) > 0 {
		l.tellHooks(ctx, nil)
	}
	l.retry(ctx, "clean up after the job", l.sweepJobDir)
	l.board.End()
	l.inbox.End()
}

// found is what a job goes on from.
type found struct {
	recovery.Found
	hooks *masterhook.Set
}

// readCheckpoints finds what the job goes on from; see package recovery.
func (l *jobLoop) readCheckpoints(ctx context.Context) (found, error) {
	read, err := recovery.Read(ctx, recovery.Request{
		Archive: &l.cfg.Archive, Job: l.id, Graph: l.graph, Progress: l.recovered.Progress, Restored: l.restored, Fallback: l.cfg.Rules.Fallback,
	})
	return found{Found: read}, err
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
	l.calling.hooks.set = m.found.hooks
	l.calling.ledger.Used(m.found.LastID)
	from := "from the beginning"
	if c := m.found.Latest; c != nil {
		from = fmt.Sprintf("from %s %d", c.Metadata.Kind, c.Metadata.ID)
		if c.Stopped {
			from = "to finish with " + strings.TrimPrefix(from, "from ") + ", which has stopped it"
		}
		if c.Metadata.Job == l.id && c.Metadata.Kind == checkpoint.Checkpoint {
			l.calling.ledger.Completed(c.Metadata.ID)
		}
	}
	for _, err := range m.found.Skipped {
		l.tell("WARNING: " + err.Error())
	}
	if len(m.found.Skipped) > 0 {
		from += " instead, as --fallback allows; output that was committed since then is written again"
	}
	l.tell(fmt.Sprintf("recovered by leader epoch %d, goes on %s", l.cfg.Epoch, from))
	l.coord = l.newCoordinator(m.found.Latest, m.found.Older)
	l.feed(scheduler.Start{})
}

// tell writes a line into the log and the timeline.
func (l *jobLoop) tell(text string) {
	l.log.Info(text)
	l.board.Note(gateway.JobEvent{Time: time.Now(), Text: text})
}

// withRecovered adds the checkpoints of earlier job masters that are retained to the history of this one, oldest first.
func (l *jobLoop) withRecovered(history []coordinator.Stats) []coordinator.Stats {
	if l.recovered == nil {
		return history
	}
	var out []coordinator.Stats
	for _, c := range append(l.coord.Older(), l.coord.Retained()...) {
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
