package jobmaster

import (
	"context"
	"errors"
	"sync"

	"github.com/weirstream/weir/internal/slotpool"
)

// message is what a loop takes out of its inbox. apply runs on the loop; it feeds events to the cores and must not wait.
type message interface{ apply(l *jobLoop) }

// errLoopEnded: the job's loop takes no messages any more.
var errLoopEnded = errors.New("the loop of the job has ended")

// inbox is the only way into a loop. Callers wait when it is full. Results of what the loop itself has started and news of the slot
// registry are always taken: their number is bounded by what the loop started and by the executors, and a loop that waited for another
// one's inbox could wait for itself.
type inbox struct {
	room   chan struct{} // a token for each message of a caller that is in the queue
	signal chan struct{} // holds one value when the queue may not be empty
	begun  chan struct{} // closed when the loop has begun
	ended  chan struct{} // closed when the loop has ended
	mu     struct {
		sync.Mutex
		queue []letter
	}
}

type letter struct {
	message
	offered bool
}

func newInbox() *inbox {
	return &inbox{room: make(chan struct{}, inboxCapacity), signal: make(chan struct{}, 1), begun: make(chan struct{}), ended: make(chan struct{})}
}

// offer puts a caller's message in, and waits while there is no room.
func (b *inbox) offer(ctx context.Context, m message) error {
	select {
	case b.room <- struct{}{}:
	case <-b.ended:
		return errLoopEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	b.put(letter{m, true})
	return nil
}

// post puts a message in without waiting.
func (b *inbox) post(m message) { b.put(letter{m, false}) }

func (b *inbox) put(m letter) {
	b.mu.Lock()
	b.mu.queue = append(b.mu.queue, m)
	b.mu.Unlock()
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

// ExecutorLost implements slotpool.Holder.
func (b *inbox) ExecutorLost(s *slotpool.Session, message string) { b.post(executorLost{s, message}) }

// Granted implements slotpool.Holder.
func (b *inbox) Granted(a slotpool.Allocation) { b.post(granted{a}) }

// take empties the inbox.
func (b *inbox) take() []letter {
	b.mu.Lock()
	all := b.mu.queue
	b.mu.queue = nil
	b.mu.Unlock()
	for _, m := range all {
		if m.offered {
			<-b.room
		}
	}
	return all
}

// ask sends a message to a loop and waits for its answer. The answer channel has room for it, so the loop never waits for the caller.
func ask[T any](ctx context.Context, b *inbox, message func(answer chan<- T) message) (T, error) {
	var none T
	answer := make(chan T, 1)
	if err := b.offer(ctx, message(answer)); err != nil {
		return none, err
	}
	select {
	case got := <-answer:
		return got, nil
	case <-ctx.Done():
		return none, context.Cause(ctx)
	case <-b.ended:
		select {
		case got := <-answer:
			return got, nil
		default:
			return none, errLoopEnded
		}
	}
}
