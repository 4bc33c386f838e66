package segment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// The limits, unless Config says otherwise.
const (
	// DefaultLinger is how long a segment waits for other tasks after the first one is done.
	DefaultLinger = 10 * time.Millisecond
	// DefaultMaxOpen is how many segments may be in the making at a time.
	DefaultMaxOpen = 64
	// DefaultMaxBuffered is how many bytes of pieces may be held in memory, beyond what each part has of its own.
	DefaultMaxBuffered = 64 << 20
)

// Files is where segments are.
type Files interface {
	Create(ctx context.Context, dir, name string) (Writer, error)
	Remove(ctx context.Context, dir, name string) error
}

// Writer is a file that is not there before Commit.
type Writer interface {
	io.Writer
	Commit() error
	Abort()
}

// Config is what a Set is made of.
type Config struct {
	Log *zap.Logger
	// Name gives a segment its name below the directory of the checkpoint. No two processes give the same.
	Name        func(n Number, id checkpoint.ID) string
	Linger      time.Duration // 0: DefaultLinger
	MaxOpen     int           // 0: DefaultMaxOpen
	MaxBuffered int64         // bytes; 0: DefaultMaxBuffered
}

// Set is the segments of an executor.
type Set struct {
	cfg     Config
	writers sync.WaitGroup

	mu struct {
		sync.Mutex
		core     *Core
		files    map[Number]*file // those that the core knows
		buffered int64
	}
}

// New returns an empty set.
func New(cfg Config) *Set {
	if cfg.Linger == 0 {
		cfg.Linger = DefaultLinger
	}
	if cfg.MaxOpen == 0 {
		cfg.MaxOpen = DefaultMaxOpen
	}
	if cfg.MaxBuffered == 0 {
		cfg.MaxBuffered = DefaultMaxBuffered
	}
	s := &Set{cfg: cfg}
	s.mu.core = NewCore(cfg.Linger, cfg.MaxOpen)
	s.mu.files = map[Number]*file{}
	return s
}

// Join says that a task runs and takes part in checkpoints; it must leave when all its parts are settled.
func (s *Set) Join(ctx context.Context, task job.AttemptID) (leave func()) {
	s.step(ctx, Join{task})
	return func() { s.step(ctx, Leave{task}) }
}

// Wait returns when no segment is being written any more. Every part must have been settled.
func (s *Set) Wait() { s.writers.Wait() }

// step gives the core an event and does what follows, but for Open, Write and Full, which answer a Place.
func (s *Set) step(ctx context.Context, ev Event) {
	s.mu.Lock()
	var remove []*file
	for _, eff := range s.mu.core.Step(time.Now(), ev) {
		if f := s.execute(eff); f != nil {
			remove = append(remove, f)
		}
	}
	s.mu.Unlock()
	for _, f := range remove {
		f.remove(context.WithoutCancel(ctx), s.cfg.Log)
	}
}

// execute is called with the lock held. It returns a file that must be deleted without it.
func (s *Set) execute(eff Effect) (remove *file) {
	switch eff := eff.(type) {
	case Arm:
		f := s.mu.files[eff.Segment]
		select {
		case <-f.arm: // is replaced
		default:
		}
		f.arm <- eff.At // there is room, and nobody else who sends
	case Publish:
		close(s.mu.files[eff.Segment].publish)
	case Discard:
		s.mu.files[eff.Segment].stop(errNobodyLeft)
	case Remove:
		return s.mu.files[eff.Segment]
	case Forget:
		delete(s.mu.files, eff.Segment)
	}
	return nil
}

var errNobodyLeft = errors.New("every task with state in the segment has given it up")

// Part is what a task writes of a checkpoint. It must be settled.
type Part struct {
	set      *Set
	files    Files
	dir      string
	key      Key
	task     job.AttemptID
	segments []*file
	held     int64 // bytes that were granted by Grow and not yet appended
}

// Begin begins a part in the directory dir of a checkpoint.
func (s *Set) Begin(files Files, dir string, task job.AttemptID, id checkpoint.ID) *Part {
	return &Part{set: s, files: files, dir: dir, task: task, key: Key{task.Job, id}}
}

// Grow reports whether the part may hold n more bytes of a piece that it will append.
func (p *Part) Grow(n int) bool {
	s := p.set
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.buffered+int64(n) > s.cfg.MaxBuffered {
		return false
	}
	s.mu.buffered += int64(n)
	p.held += int64(n)
	return true
}

// Shrink gives back what Grow has granted since the last Append: the piece goes elsewhere.
func (p *Part) Shrink() {
	p.set.release(p.held)
	p.held = 0
}

func (s *Set) release(n int64) {
	s.mu.Lock()
	s.mu.buffered -= n
	s.mu.Unlock()
}

// Location is where a piece is.
type Location struct {
	Path   string // relative to the directory of the checkpoint
	Offset int64
}

// ErrFull: as many segments are in the making as may be; the piece must go elsewhere.
var ErrFull = errors.New("too many segments are being written")

// Append puts a whole piece into a segment and says where. It is durable after Commit. After an error data may still be read by others.
// Errors: ErrFull, the cause of ctx, or that of the storage.
func (p *Part) Append(ctx context.Context, data []byte) (Location, error) {
	held := p.held
	p.held = 0
	for {
		f, err := p.place(ctx)
		if err != nil {
			p.set.release(held)
			return Location{}, err
		}
		piece := piece{data: data, held: held, written: make(chan written, 1)}
		select {
		case f.pieces <- piece: // its bytes are released by the writer
		case <-f.done:
			p.set.step(ctx, Missed{f.number, p.task})
			continue
		case <-ctx.Done():
			p.set.step(ctx, Missed{f.number, p.task})
			p.set.release(held)
			return Location{}, context.Cause(ctx)
		}
		p.remember(f)
		select {
		case w := <-piece.written:
			return Location{f.name, w.offset}, w.err
		case <-ctx.Done():
			return Location{}, context.Cause(ctx)
		}
	}
}

func (p *Part) remember(f *file) {
	if n := len(p.segments); n == 0 || p.segments[n-1] != f {
		p.segments = append(p.segments, f)
	}
}

// place finds the segment for the next piece, and opens it if it must.
func (p *Part) place(ctx context.Context) (*file, error) {
	s := p.set
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, eff := range s.mu.core.Step(time.Now(), Place{p.key, p.task}) {
		switch eff := eff.(type) {
		case Open:
			s.open(ctx, eff.Segment, p)
		case Write:
			return s.mu.files[eff.Segment], nil
		case Full:
			return nil, ErrFull
		}
	}
	return nil, fmt.Errorf("segment of %s: the core has placed nothing", p.key)
}

// open is called with the lock held. The segment outlives the task that needs it first.
func (s *Set) open(ctx context.Context, n Number, p *Part) {
	ctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	f := &file{
		set: s, files: p.files, number: n, dir: p.dir, name: s.cfg.Name(n, p.key.Checkpoint), stop: stop,
		pieces: make(chan piece), arm: make(chan time.Time, 1), publish: make(chan struct{}), done: make(chan struct{}),
	}
	s.mu.files[n] = f
	s.writers.Go(func() { f.run(ctx) })
}

// Commit says that the part has no more pieces and returns when all of them are durable, or cannot become so.
func (p *Part) Commit(ctx context.Context) error {
	p.set.step(ctx, Done{p.key, p.task})
	for _, f := range p.segments {
		select {
		case <-f.done:
			if f.err != nil {
				return f.err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Settle ends the part. keep: its pieces may be referred to, so that the segments with them stay; else they are deleted when all others with
// pieces in them say the same.
func (p *Part) Settle(ctx context.Context, keep bool) {
	p.Shrink()
	p.set.step(ctx, Settle{p.key, p.task, keep})
}
