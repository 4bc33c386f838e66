package task

import (
	"context"
	"hash"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/compression"
	"github.com/weirstream/weir/internal/job"
)

// The sizes of pieces of state, in bytes.
const (
	// writeChunk is how much state is gathered before it goes to the task's own file.
	writeChunk = 1 << 20
	// sharedPiece is the most that a piece may have which goes into a file together with those of other tasks. A larger one would hold up the others
	// while it is written, and would have to be held in memory.
	sharedPiece = 4 << 20
	// compressedPart is what the parts of a piece must have at least, on average, to be worth compressing one by one.
	compressedPart = 128
)

// stateWriter gathers pieces of state: small ones inline, larger ones in a file with those of other tasks, very large ones in the task's own.
type stateWriter struct {
	ctx      context.Context // of this one snapshot
	snapshot *snapshotted
	files    SnapshotFiles
	groups   job.KeyGroupRange
	limit    int                  // of an inline piece
	encoder  *compression.Encoder // nil: nothing is compressed
	file     StateFile            // the task's own; nil until a piece is too large to be elsewhere
	offset   int64                // in it
	total    int64                // bytes of all pieces
	raw      []byte               // a part before it is compressed

	piece piece
}

// piece is the state that is being written: parts end to end, which are key groups or items.
type piece struct {
	buf        []byte // stored bytes that are not in the task's own file
	granted    int    // how much of them is beyond writeChunk
	compressed bool
	plain      bool // it is not worth compressing

	start  int64       // of the piece in the task's own file
	length int64       // in the task's own file
	crc    hash.Hash32 // of what is there; nil while nothing is

	offsets []int64  // of the parts in the stored bytes, then the end
	sums    []uint32 // of the stored bytes of each part
	raw     int64    // bytes of the parts before they were compressed
}

func (p *piece) size() int64 { return p.length + int64(len(p.buf)) }

// begin begins a piece.
func (w *stateWriter) begin() {
	if cap(w.piece.buf) > 2*writeChunk {
		w.piece.buf = nil // it was granted for one piece
	}
	w.piece = piece{buf: w.piece.buf[:0], offsets: []int64{0}, plain: w.encoder == nil}
}

// add adds a part, which appendTo gives.
func (w *stateWriter) add(appendTo func(dst []byte) ([]byte, error)) (err error) {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	p := &w.piece
	before := len(p.buf)
	if p.compressed {
		if w.raw, err = appendTo(w.raw[:0]); err != nil {
			return err
		}
		p.raw += int64(len(w.raw))
		p.buf = w.encoder.Append(p.buf, w.raw)
	} else {
		if p.buf, err = appendTo(p.buf); err != nil {
			return err
		}
		p.raw += int64(len(p.buf) - before)
	}
	p.offsets = append(p.offsets, p.size())
	p.sums = append(p.sums, checkpoint.Checksum(p.buf[before:]))
	if !p.plain && !p.compressed && len(p.buf) > w.limit {
		w.compress()
	}
	return w.grown()
}

// compress begins to compress the parts of a piece that is too large to be inline, those that it has already too, unless they are too short.
func (w *stateWriter) compress() {
	p := &w.piece
	if p.raw/int64(len(p.sums)) < compressedPart {
		p.plain = true
		return
	}
	w.raw = append(w.raw[:0], p.buf...)
	p.compressed, p.buf = true, p.buf[:0]
	from := int64(0)
	for i := range p.sums {
		to, before := p.offsets[i+1], len(p.buf)
		p.buf = w.encoder.Append(p.buf, w.raw[from:to])
		p.offsets[i+1], p.sums[i] = p.size(), checkpoint.Checksum(p.buf[before:])
		from = to
	}
}

// grown moves the piece to the task's own file when it is too large to wait for its end in memory.
func (w *stateWriter) grown() error {
	p := &w.piece
	n := len(p.buf)
	switch more := n - writeChunk - p.granted; {
	case n < writeChunk || p.crc == nil && more <= 0:
		return nil
	case p.crc == nil && n <= sharedPiece && w.files.Grow(more):
		p.granted += more
		return nil
	}
	return w.spill()
}

// spill puts what was gathered into the task's own file.
func (w *stateWriter) spill() error {
	if w.file == nil {
		f, err := w.files.Create(w.ctx)
		if err != nil {
			return err
		}
		w.file = f
	}
	p := &w.piece
	if p.crc == nil {
		p.start, p.crc = w.offset, checkpoint.NewChecksum()
		w.files.Shrink()
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
	h, err := w.store()
	if p := &w.piece; p.compressed {
		h.Compression, h.RawLength = checkpoint.Zstd, p.raw
	}
	return h, err
}

func (w *stateWriter) store() (checkpoint.Handle, error) {
	p := &w.piece
	w.total += p.size()
	if p.crc == nil {
		if len(p.buf) <= w.limit {
			w.files.Shrink()
			return checkpoint.InlineHandle(append([]byte(nil), p.buf...)), nil
		}
		name, offset, ok, err := w.files.Append(w.ctx, p.buf)
		if err != nil {
			p.buf = nil // may still be in use
			return checkpoint.Handle{}, err
		}
		if ok {
			return checkpoint.FileHandle(name, offset, p.buf), nil
		}
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
