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
	w.begin()
	for i := range l.Len {
		if err := w.add(func(dst []byte) ([]byte, error) { return l.Append(dst, i) }); err != nil {
			return checkpoint.Items{}, err
		}
	}
	h, err := w.end()
	return checkpoint.Items{Handle: h, Offsets: w.piece.offsets}, err
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
