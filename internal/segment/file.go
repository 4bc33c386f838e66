package segment

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// file is a segment that is being written, by one goroutine.
type file struct {
	set       *Set
	files     Files
	number    Number
	dir, name string
	stop      context.CancelCauseFunc

	pieces  chan piece
	arm     chan time.Time // when the core wants a Tick; room for the one that there is
	publish chan struct{}  // closed when the segment is to be published
	done    chan struct{}  // closed when it is durable or failed
	err     error          // why it failed; may be read when done is closed

	writer Writer // nil until the first piece
	offset int64
}

// piece is state of a task on its way into a segment.
type piece struct {
	data    []byte
	held    int64 // bytes of the set's budget
	written chan written
}

// written answers a piece.
type written struct {
	offset int64
	err    error
}

// run writes pieces until the segment is published, fails, or nobody is left who wants it.
func (f *file) run(ctx context.Context) {
	defer f.stop(nil)
	var linger <-chan time.Time
	for {
		select {
		case p := <-f.pieces:
			at, err := f.write(ctx, p)
			if err != nil {
				f.end(ctx, err)
			}
			p.written <- written{at, err}
			if err != nil {
				return
			}
		case at := <-f.arm:
			linger = time.After(time.Until(at))
		case <-linger:
			linger = nil
			f.set.step(ctx, Tick{})
		case <-f.publish:
			err := f.commit()
			if err != nil { // it may be there all the same
				f.remove(context.WithoutCancel(ctx), f.set.cfg.Log)
			}
			f.end(ctx, err)
			return
		case <-ctx.Done():
			f.end(ctx, context.Cause(ctx))
			return
		}
	}
}

func (f *file) write(ctx context.Context, p piece) (int64, error) {
	defer f.set.release(p.held)
	if f.writer == nil {
		w, err := f.files.Create(ctx, f.dir, f.name)
		if err != nil {
			return 0, err
		}
		f.writer = w
	}
	at := f.offset
	if _, err := f.writer.Write(p.data); err != nil {
		return 0, err
	}
	f.offset += int64(len(p.data))
	return at, nil
}

func (f *file) commit() error {
	if f.writer == nil { // every piece has missed it
		return nil
	}
	return f.writer.Commit()
}

// end tells the core and those who wait. What had been published when nobody was left any more is deleted here.
func (f *file) end(ctx context.Context, err error) {
	f.err = err
	defer close(f.done)
	if err == nil {
		f.set.step(ctx, Published{f.number})
		return
	}
	if f.writer != nil {
		f.writer.Abort()
	}
	f.set.step(ctx, Failed{f.number})
}

// remove deletes a published segment. The files of a checkpoint that was aborted go with its directory, too.
func (f *file) remove(ctx context.Context, log *zap.Logger) {
	if f.writer == nil {
		return
	}
	if err := f.files.Remove(ctx, f.dir, f.name); err != nil {
		log.Warn("segment file left behind", zap.String("file", f.dir+"/"+f.name), zap.Error(err))
	}
}
