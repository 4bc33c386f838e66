package task

import (
	"context"
	"fmt"
	"hash"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/stream"
)

// writeChunk is how much state is gathered before it goes to the file.
const writeChunk = 1 << 20

// write makes everything in the snapshot durable and returns where it is. A panic of an operator's code, which runs beside the task
// here, is an error like others.
func (s *snapshotted) write(ctx context.Context) (state checkpoint.SubtaskState, err error) {
	t := s.task
	w := &stateWriter{ctx: ctx, snapshot: s, limit: t.cfg.InlineLimit}
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
	if p.keyed != nil {
		if op.Keyed, err = w.keyed(p); err != nil {
			return op, err
		}
	}
	op.Lists, err = w.lists(p.lists)
	return op, err
}

// stateWriter gathers pieces of state, small ones inline, others in the task's state file.
type stateWriter struct {
	ctx      context.Context // of this one snapshot
	snapshot *snapshotted
	limit    int
	file     StateFile // nil until a piece is too large to be inline
	offset   int64     // in the file
	total    int64

	piece pieceWriter
}

// pieceWriter is the piece that is being written.
type pieceWriter struct {
	buf    []byte // not yet in the file
	start  int64  // offset of the piece in the file
	length int64
	crc    hash.Hash32 // of what is in the file; nil while nothing is
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
	offsets := []int64{0}
	w.piece = pieceWriter{buf: w.piece.buf[:0]}
	for _, item := range in.Items {
		w.piece.buf = append(w.piece.buf, item...)
		if err := w.grown(); err != nil {
			return nil, err
		}
		offsets = append(offsets, w.piece.size())
	}
	h, err := w.end()
	return &checkpoint.Items{Handle: h, Offsets: offsets}, err
}

func (w *stateWriter) keyed(p operatorPart) (*checkpoint.Keyed, error) {
	groups := w.snapshot.task.cfg.KeyGroups
	offsets := []int64{0}
	w.piece = pieceWriter{buf: w.piece.buf[:0]}
	var err error
	for g := groups.Start; g < groups.End; g++ {
		if w.ctx.Err() != nil {
			return nil, context.Cause(w.ctx)
		}
		if w.piece.buf, err = p.keyed.AppendGroup(w.piece.buf, g); err != nil {
			return nil, err
		}
		if err := w.grown(); err != nil {
			return nil, err
		}
		offsets = append(offsets, w.piece.size())
	}
	h, err := w.end()
	k := &checkpoint.Keyed{Handle: h, Range: groups, Offsets: offsets}
	for _, s := range p.schemas {
		k.States = append(k.States, checkpoint.StateSchema(s))
	}
	return k, err
}

// grown moves what was gathered to the file when it is large enough.
func (w *stateWriter) grown() error {
	if len(w.piece.buf) < writeChunk {
		return nil
	}
	return w.spill()
}

func (w *stateWriter) spill() error {
	if w.file == nil {
		f, err := w.snapshot.task.cfg.Files.Create(w.ctx, w.snapshot.checkpoint.Dir, w.snapshot.task.cfg.Attempt, checkpoint.ID(w.snapshot.checkpoint.ID))
		if err != nil {
			return err
		}
		w.file = f
	}
	p := &w.piece
	if p.crc == nil {
		p.start, p.crc = w.offset, checkpoint.NewChecksum()
	}
	if _, err := w.file.Write(p.buf); err != nil {
		return err
	}
	_, _ = p.crc.Write(p.buf) // never fails, says its documentation
	p.length += int64(len(p.buf))
	w.offset += int64(len(p.buf))
	p.buf = p.buf[:0]
	return nil
}

// end closes the piece and says where it is.
func (w *stateWriter) end() (checkpoint.Handle, error) {
	p := &w.piece
	w.total += p.size()
	if p.crc == nil && len(p.buf) <= w.limit {
		return checkpoint.InlineHandle(append([]byte(nil), p.buf...)), nil
	}
	if err := w.spill(); err != nil {
		return checkpoint.Handle{}, err
	}
	return checkpoint.Handle{Path: w.file.Name(), Offset: p.start, Length: p.length, CRC32C: p.crc.Sum32()}, nil
}

func (w *stateWriter) abort() {
	if w.file != nil {
		w.file.Abort()
	}
}

func (p *pieceWriter) size() int64 { return p.length + int64(len(p.buf)) }
