package task

import (
	"context"
	"fmt"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/stream"
)

// write makes everything in the snapshot durable and returns where it is. A panic of an operator's code, which runs beside the task
// here, is an error like others.
func (s *snapshotted) write(ctx context.Context, files SnapshotFiles) (state checkpoint.SubtaskState, err error) {
	t := s.task
	w := &stateWriter{ctx: ctx, files: files, snapshot: s, groups: t.cfg.KeyGroups, limit: t.cfg.InlineLimit}
	if t.cfg.Compression == checkpoint.Zstd {
		w.encoder = t.cfg.Encoder
	}
	defer w.abort()
	defer func() {
		if r := recover(); r != nil {
			err = t.panicked(Operator{ID: s.parts[s.writing].operator.ID}, r) // the operator itself belongs to the task's goroutine
		}
	}()
	state = checkpoint.SubtaskState{Subtask: t.cfg.Attempt.Task.Subtask, Ended: s.ended}
	for i, p := range s.parts {
		s.writing = i
		op, err := w.operator(p)
		if err != nil {
			return state, fmt.Errorf("operator %s: %w", p.operator.ID, err)
		}
		if op.Items != nil || op.Keyed != nil || len(op.Lists) > 0 {
			state.Operators = append(state.Operators, op)
		}
	}
	if w.file != nil {
		if err := w.file.Commit(); err != nil {
			return state, err
		}
	}
	if err := files.Commit(ctx); err != nil {
		return state, err
	}
	s.metrics.StateBytes = w.total
	return state, nil
}

func (w *stateWriter) operator(p operatorPart) (op checkpoint.OperatorState, err error) {
	op.Operator = p.operator.ID
	if p.items != nil {
		if op.Items, err = w.items(*p.items); err != nil {
			return op, err
		}
	}
	if native, ok := w.snapshot.isNative(p); ok {
		if op.Keyed, err = w.snapshot.native(w.ctx, p, native); err != nil {
			return op, err
		}
		w.total += op.Keyed.Size()
	} else if p.keyed != nil {
		if op.Keyed, err = w.keyed(p); err != nil {
			return op, err
		}
	}
	op.Lists, err = w.lists(p.lists)
	return op, err
}

func (w *stateWriter) items(in stream.Items) (*checkpoint.Items, error) {
	if in.Persist != nil {
		if err := in.Persist(); err != nil {
			return nil, err
		}
	}
	if len(in.Items) == 0 {
		return nil, nil
	}
	w.begin()
	for _, item := range in.Items {
		if err := w.add(func(dst []byte) ([]byte, error) { return append(dst, item...), nil }); err != nil {
			return nil, err
		}
	}
	h, err := w.end()
	return &checkpoint.Items{Handle: h, Offsets: w.piece.offsets}, err
}

func (w *stateWriter) keyed(p operatorPart) (*checkpoint.Keyed, error) {
	w.begin()
	for g := w.groups.Start; g < w.groups.End; g++ {
		if err := w.add(func(dst []byte) ([]byte, error) { return p.keyed.AppendGroup(dst, g) }); err != nil {
			return nil, err
		}
		p.keyed.ReleaseGroup(g)
	}
	h, err := w.end()
	k := &checkpoint.Keyed{Handle: h, Range: w.groups, Offsets: w.piece.offsets}
	if !h.IsInline() {
		k.GroupCRC = w.piece.sums
	}
	for _, s := range p.schemas {
		k.States = append(k.States, checkpoint.StateSchema(s))
	}
	return k, err
}
