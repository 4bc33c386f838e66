package task

import (
	"context"
	"fmt"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/stream"
)

// lists writes the named list states of an operator, each a piece of its own.
func (w *stateWriter) lists(in []stream.ListSnapshot) ([]checkpoint.List, error) {
	var out []checkpoint.List
	for _, l := range in {
		items, err := w.list(l)
		if err != nil {
			return nil, fmt.Errorf("list state %q: %w", l.Schema.Name, err)
		}
		out = append(out, checkpoint.List{Schema: checkpoint.StateSchema(l.Schema), Mode: l.Mode, Items: items})
	}
	return out, nil
}

func (w *stateWriter) list(l stream.ListSnapshot) (checkpoint.Items, error) {
	if l.Len > checkpoint.MaxItemsPerHandle {
		return checkpoint.Items{}, fmt.Errorf("%d items, at most %d are possible: keep so many in keyed state", l.Len, checkpoint.MaxItemsPerHandle)
	}
	offsets := []int64{0}
	w.piece = pieceWriter{buf: w.piece.buf[:0]}
	for i := range l.Len {
		if w.ctx.Err() != nil {
			return checkpoint.Items{}, context.Cause(w.ctx)
		}
		var err error
		if w.piece.buf, err = l.Append(w.piece.buf, i); err != nil {
			return checkpoint.Items{}, err
		}
		if err := w.grown(); err != nil {
			return checkpoint.Items{}, err
		}
		offsets = append(offsets, w.piece.size())
	}
	h, err := w.end()
	return checkpoint.Items{Handle: h, Offsets: offsets}, err
}

// restoreLists gives an operator its named list states, in the order of the old subtasks.
func (t *Task) restoreLists(ctx context.Context, op Operator, lists []checkpoint.List) error {
	if len(lists) == 0 {
		return nil
	}
	s, ok := op.Operator.(stream.ListsStateful)
	if !ok {
		return stream.Permanent(fmt.Errorf("operator %s has no named list states any more, the checkpoint has %q", op.ID, lists[0].Schema.Name))
	}
	for _, l := range lists {
		items, err := t.readItems(ctx, []checkpoint.Items{l.Items})
		if err != nil {
			return err
		}
		if err := s.RestoreList(stream.StateSchema(l.Schema), l.Mode, items); err != nil {
			return err
		}
	}
	return nil
}
