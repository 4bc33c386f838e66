package task

import (
	"context"
	"fmt"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/stream"
)

// restore gives the operators their state, before they are opened.
func (t *Task) restore(ctx context.Context) error {
	r := t.cfg.Restore
	if r == nil {
		return nil
	}
	given := map[string]checkpoint.OperatorRestore{}
	for _, op := range r.State.Operators {
		given[op.Operator] = op
	}
	for i, op := range t.cfg.Chain.Operators {
		t.enter(i)
		if err := t.restoreOperator(ctx, op, given[op.ID]); err != nil {
			return fmt.Errorf("restore from checkpoint %d: %w", r.Checkpoint, err)
		}
	}
	return nil
}

// restoreOperator restores one operator; list state is given back also when it is empty, because that is not the same as a fresh start.
func (t *Task) restoreOperator(ctx context.Context, op Operator, state checkpoint.OperatorRestore) error {
	if s, ok := op.Operator.(stream.ItemsStateful); ok {
		items, err := t.readItems(ctx, state.Items)
		if err != nil {
			return err
		}
		if err := s.RestoreItems(items); err != nil {
			return err
		}
	} else if len(state.Items) > 0 {
		return stream.Permanent(fmt.Errorf("operator %s has no list state any more", op.ID))
	}
	if err := t.restoreLists(ctx, op, state.Lists); err != nil {
		return err
	}
	if len(state.Keyed) == 0 {
		return nil
	}
	s, ok := op.Operator.(stream.KeyedStateful)
	if !ok {
		return stream.Permanent(fmt.Errorf("operator %s has no keyed state any more", op.ID))
	}
	if restored, err := t.restoreFiles(ctx, op, state.Keyed); restored || err != nil {
		return err
	}
	for _, k := range state.Keyed {
		if err := t.restoreKeyed(ctx, s, k); err != nil {
			return err
		}
	}
	return nil
}
