package task

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/stream"
)

// maxInFlight bounds the snapshots of a task that are being persisted at a time, given up ones included.
const maxInFlight = 4

// snapshot sends the barrier on and takes the snapshot: everything here happens between two records. What takes time runs beside the task.
func (t *Task) snapshot(ctx context.Context, eff Snapshot) error {
	start := time.Now()
	cp := eff.Checkpoint
	if err := t.broadcast(element.Element{Kind: element.Barrier, Checkpoint: cp}); err != nil {
		return err
	}
	s := &snapshotted{task: t, checkpoint: cp, ended: t.core.Ended()}
	if err := s.capture(); err != nil {
		s.release()
		return err // the operator may be half-way: the attempt is over
	}
	s.metrics = checkpoint.Metrics{
		StartDelay: eff.FirstAt.Sub(time.UnixMilli(cp.Timestamp)),
		Alignment:  start.Sub(eff.FirstAt),
		Sync:       time.Since(start),
	}
	ctx, ok := t.inFlight.start(ctx, checkpoint.ID(cp.ID))
	if !ok {
		s.release()
		t.cfg.JobMaster.Decline(ctx, checkpoint.ID(cp.ID), checkpoint.TaskNotReady, fmt.Sprintf("%d earlier snapshots are still being written", maxInFlight))
		return nil
	}
	t.snapshots.Go(func() {
		defer t.inFlight.end(checkpoint.ID(cp.ID))
		s.persist(ctx)
	})
	return nil
}

// capture takes the synchronous part of every operator.
func (s *snapshotted) capture() error {
	for i, op := range s.task.cfg.Chain.Operators {
		s.task.enter(i)
		part, err := capture(op, s.checkpoint.ID)
		if err != nil {
			return err
		}
		s.parts = append(s.parts, part)
	}
	return nil
}

// operatorPart is the synchronous part of an operator's snapshot.
type operatorPart struct {
	operator Operator
	items    *stream.Items
	keyed    stream.KeyedSnapshot
	schemas  []stream.StateSchema
	lists    []stream.ListSnapshot
}

func capture(op Operator, id int64) (operatorPart, error) {
	part := operatorPart{operator: op}
	if s, ok := op.Operator.(stream.ItemsStateful); ok {
		items, err := s.SnapshotItems(id)
		if err != nil {
			return part, err
		}
		part.items = &items
	}
	if s, ok := op.Operator.(stream.KeyedStateful); ok {
		keyed, err := s.SnapshotKeyed()
		if err != nil {
			return part, err
		}
		part.keyed, part.schemas = keyed, s.Schemas()
	}
	if s, ok := op.Operator.(stream.ListsStateful); ok {
		lists, err := s.SnapshotLists()
		if err != nil {
			return part, err
		}
		part.lists = lists
	}
	return part, nil
}

// snapshotted is a snapshot between its synchronous part and its ack.
type snapshotted struct {
	task       *Task
	checkpoint element.Checkpoint
	parts      []operatorPart
	ended      bool
	metrics    checkpoint.Metrics
	writing    int // index of the part whose operator's code runs now
	uploads    uploads
}

func (s *snapshotted) release() {
	for _, p := range s.parts {
		if p.keyed != nil {
			p.keyed.Release()
		}
	}
}

// persist makes the snapshot durable and acknowledges it. It runs on a goroutine of its own.
func (s *snapshotted) persist(ctx context.Context) {
	defer s.release()
	start := time.Now()
	id := checkpoint.ID(s.checkpoint.ID)
	t := s.task
	files := t.cfg.Files.Begin(s.checkpoint.Dir, id)
	state, err := s.write(ctx, files)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		s.settle(ctx, files, false)
		if ctx.Err() == nil { // else nobody waits for this checkpoint any more
			t.cfg.Log.Warn("snapshot failed", zap.Int64("checkpoint", s.checkpoint.ID), zap.Error(err))
			t.cfg.JobMaster.Decline(ctx, id, checkpoint.AsyncException, err.Error())
		}
		return
	}
	s.metrics.Async = time.Since(start)
	verdict, err := t.cfg.JobMaster.Acknowledge(ctx, id, state, s.metrics)
	s.settle(ctx, files, err != nil || verdict != checkpoint.TooLate && verdict != checkpoint.Unknown)
	if err != nil {
		// The ack may have been applied: the files stay.
		t.cfg.Log.Warn("ack not answered", zap.Int64("checkpoint", s.checkpoint.ID), zap.Error(err))
		if ctx.Err() == nil {
			t.cfg.JobMaster.Decline(ctx, id, reasonOf(err), err.Error())
		}
	}
}

// ErrAckTooLarge is in the error of Acknowledge when the ack is over the message limit.
var ErrAckTooLarge = errors.New("the ack is over the message limit")

func reasonOf(err error) checkpoint.Reason {
	if errors.Is(err, ErrAckTooLarge) {
		return checkpoint.AckTooLarge
	}
	return checkpoint.IOException
}

// settle ends the files of the snapshot. Those that belong to no checkpoint are deleted, even if the context is over already.
func (s *snapshotted) settle(ctx context.Context, files SnapshotFiles, keep bool) {
	if !keep {
		s.removeUploads(context.WithoutCancel(ctx))
	}
	if err := files.Settle(context.WithoutCancel(ctx), keep); err != nil {
		s.task.cfg.Log.Warn("state file left behind", zap.Int64("checkpoint", s.checkpoint.ID), zap.Error(err))
	}
}

// inFlight knows the snapshots that are being persisted, to stop them.
type inFlight struct {
	mu struct {
		sync.Mutex
		cancels map[checkpoint.ID]context.CancelCauseFunc
	}
}

var errSnapshotStopped = errors.New("the checkpoint was aborted")

func (f *inFlight) init() { f.mu.cancels = map[checkpoint.ID]context.CancelCauseFunc{} }

func (f *inFlight) start(ctx context.Context, id checkpoint.ID) (context.Context, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.mu.cancels) >= maxInFlight {
		return ctx, false
	}
	ctx, cancel := context.WithCancelCause(ctx)
	f.mu.cancels[id] = cancel
	return ctx, true
}

func (f *inFlight) stop(id checkpoint.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cancel := f.mu.cancels[id]; cancel != nil {
		cancel(errSnapshotStopped)
	}
}

func (f *inFlight) end(id checkpoint.ID) {
	f.stop(id)
	f.mu.Lock()
	delete(f.mu.cancels, id)
	f.mu.Unlock()
}
