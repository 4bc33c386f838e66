package jobmaster

import (
	"sync"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/gateway"
)

// board shows a job to people. The loop writes, any number of callers read; a slow reader skips versions and never holds up the loop.
type board struct {
	mu struct {
		sync.Mutex
		view     view
		events   []gateway.JobEvent // the newest timelineLength
		noted    int                // events ever
		changed  chan struct{}      // closed at the next change
		complete bool               // nobody needs to wait any more
	}
}

// view is one consistent picture of a job. Nothing in it changes after its publication.
type view struct {
	status      gateway.JobStatus
	checkpoints []coordinator.Stats // oldest first
	restored    restoredFrom
	summary     checkpoint.CompletedSummary
}

func newBoard() *board {
	b := &board{}
	b.mu.changed = make(chan struct{})
	return b
}

func (b *board) note(e gateway.JobEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.events = append(b.mu.events, e)
	if n := len(b.mu.events); n > timelineLength {
		b.mu.events = append([]gateway.JobEvent(nil), b.mu.events[n-timelineLength:]...)
	}
	b.mu.noted++
}

func (b *board) publish(v view) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.view = v
	b.wake()
}

// end says that watchers need not wait for more.
func (b *board) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.complete = true
	b.wake()
}

func (b *board) wake() {
	close(b.mu.changed)
	b.mu.changed = make(chan struct{})
}

func (b *board) read() view {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.view
}

// glance is what a watcher sees.
type glance struct {
	view     view
	events   []gateway.JobEvent // that it has not seen
	noted    int                // to be given to the next look
	changed  <-chan struct{}
	complete bool
}

// look gives what there is to see for one who has seen a number of events.
func (b *board) look(seen int) glance {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(b.mu.noted-seen, len(b.mu.events))
	return glance{
		view: b.mu.view, events: append([]gateway.JobEvent(nil), b.mu.events[len(b.mu.events)-n:]...),
		noted: b.mu.noted, changed: b.mu.changed, complete: b.mu.complete,
	}
}
