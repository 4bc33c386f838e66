// Package board shows a job to people.
//
// Owns: the latest picture of one job, and the newest lines of its timeline.
//
// Promises: one writer, any number of readers; a slow reader skips versions and never holds up the writer. Nothing in a picture changes after its
// publication.
//
// Goroutines: none; methods are safe for concurrent use, and no lock is held across a call out.
//
// Not here: what is in the picture (package jobmaster).
//
// Start at: Board.
package board

import (
	"sync"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/gateway"
)

// timelineLength is how many lines of a job's timeline are remembered.
const timelineLength = 200

// Board shows a job to people.
type Board struct {
	mu struct {
		sync.Mutex
		view     View
		events   []gateway.JobEvent // the newest timelineLength
		noted    int                // events ever
		changed  chan struct{}      // closed at the next change
		complete bool               // nobody needs to wait any more
	}
}

// View is one consistent picture of a job. Nothing in it changes after its publication.
type View struct {
	Status      gateway.JobStatus
	Checkpoints []coordinator.Stats // oldest first
	Restored    checkpoint.ID       // the job's own checkpoint that its present execution started from; 0: none
	Summary     checkpoint.CompletedSummary
}

// New makes an empty board.
func New() *Board {
	b := &Board{}
	b.mu.changed = make(chan struct{})
	return b
}

// Note adds a line to the timeline.
func (b *Board) Note(e gateway.JobEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.events = append(b.mu.events, e)
	if n := len(b.mu.events); n > timelineLength {
		b.mu.events = append([]gateway.JobEvent(nil), b.mu.events[n-timelineLength:]...)
	}
	b.mu.noted++
}

// Publish shows a new picture.
func (b *Board) Publish(v View) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.view = v
	b.wake()
}

// End says that watchers need not wait for more.
func (b *Board) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.complete = true
	b.wake()
}

func (b *Board) wake() {
	close(b.mu.changed)
	b.mu.changed = make(chan struct{})
}

// Read gives the latest picture.
func (b *Board) Read() View {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.view
}

// Glance is what a watcher sees.
type Glance struct {
	View     View
	Events   []gateway.JobEvent // that it has not seen
	Noted    int                // to be given to the next Look
	Changed  <-chan struct{}    // closed when there is more to see
	Complete bool               // there will be no more
}

// Look gives what there is to see for one who has seen a number of events.
func (b *Board) Look(seen int) Glance {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(b.mu.noted-seen, len(b.mu.events))
	return Glance{
		View: b.mu.view, Events: append([]gateway.JobEvent(nil), b.mu.events[len(b.mu.events)-n:]...),
		Noted: b.mu.noted, Changed: b.mu.changed, Complete: b.mu.complete,
	}
}
