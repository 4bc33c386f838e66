package inspect

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/weirstream/weir/internal/checkpoint"
)

// items gives f each item of a list state of an operator, in the order of subtasks, until f returns an error. What f gets is valid during the call only.
func (s *Stored) items(ctx context.Context, o *operator, l *list, f func(subtask int, item []byte) error) error {
	r := s.groups(o)
	defer r.close()
	for _, p := range l.parts(o) {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := r.items(ctx, l.in(p.state), func(item []byte) error { return f(p.subtask, item) }); err != nil {
			return r.damage(p.subtask, l.what(), err)
		}
	}
	return nil
}

func (r *groupReader) items(ctx context.Context, it *checkpoint.Items, f func(item []byte) error) error {
	if err := r.check(ctx, it.Handle); err != nil {
		return err
	}
	if it.Handle.IsInline() {
		for i := range it.Len() {
			item, err := r.raw(it.Handle, it.Item(it.Handle.Inline, i))
			if err != nil {
				return err
			}
			if err := f(item); err != nil {
				return err
			}
		}
		return nil
	}
	if it.Len() == 0 {
		return nil
	}
	h, first := it.Handle, it.Offsets[0]
	in := bufio.NewReader(io.NewSectionReader(r.file, h.Offset+first, h.Length-first))
	var item []byte
	for i := range it.Len() {
		n := int(it.Offsets[i+1] - it.Offsets[i])
		if cap(item) < n {
			item = make([]byte, n)
		}
		item = item[:n]
		if _, err := io.ReadFull(in, item); err != nil {
			return fmt.Errorf("file %s cannot be read: %w", h.Path, err)
		}
		raw, err := r.raw(h, item)
		if err != nil {
			return err
		}
		if err := f(raw); err != nil {
			return err
		}
	}
	return nil
}
