package inbox

import (
	"context"
	"errors"
	"sync"
)

// Capacity is how many messages of callers may wait in an inbox; further callers wait.
const Capacity = 1024

// ErrEnded: the loop takes no messages any more.
var ErrEnded = errors.New("the loop has ended")

// Inbox is the queue of one loop. M is a message.
type Inbox[M any] struct {
	room   chan struct{} // a token for each message of a caller that is in the queue
	signal chan struct{} // holds one value when the queue may not be empty
	begun  chan struct{} // closed when the loop has begun
	ended  chan struct{} // closed when the loop has ended
	mu     struct {
		sync.Mutex
		queue []letter[M]
	}
}

type letter[M any] struct {
	message M
	offered bool
}

// New makes an inbox whose loop has not begun.
func New[M any]() *Inbox[M] {
	return &Inbox[M]{room: make(chan struct{}, Capacity), signal: make(chan struct{}, 1), begun: make(chan struct{}), ended: make(chan struct{})}
}

// Begin says that the loop has begun.
func (b *Inbox[M]) Begin() { close(b.begun) }

// End says that the loop has ended; what is in the inbox is not looked at.
func (b *Inbox[M]) End() { close(b.ended) }

// Begun is closed when the loop has begun.
func (b *Inbox[M]) Begun() <-chan struct{} { return b.begun }

// Ended is closed when the loop has ended.
func (b *Inbox[M]) Ended() <-chan struct{} { return b.ended }

// Signal has a value when there may be something to Take.
func (b *Inbox[M]) Signal() <-chan struct{} { return b.signal }

// Offer puts a caller's message in, and waits while there is no room.
func (b *Inbox[M]) Offer(ctx context.Context, m M) error {
	select {
	case b.room <- struct{}{}:
	case <-b.ended:
		return ErrEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	b.put(letter[M]{m, true})
	return nil
}

// Post puts a message in without waiting.
func (b *Inbox[M]) Post(m M) { b.put(letter[M]{m, false}) }

func (b *Inbox[M]) put(m letter[M]) {
	b.mu.Lock()
	b.mu.queue = append(b.mu.queue, m)
	b.mu.Unlock()
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

// Take empties the inbox.
func (b *Inbox[M]) Take() []M {
	b.mu.Lock()
	all := b.mu.queue
	b.mu.queue = nil
	b.mu.Unlock()
	out := make([]M, len(all))
	for i, m := range all {
		out[i] = m.message
		if m.offered {
			<-b.room
		}
	}
	return out
}

// Ask sends a message to a loop and waits for its answer. The answer channel has room for it, so the loop never waits for the caller.
func Ask[T, M any](ctx context.Context, b *Inbox[M], message func(answer chan<- T) M) (T, error) {
	var none T
	answer := make(chan T, 1)
	if err := b.Offer(ctx, message(answer)); err != nil {
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
			return none, ErrEnded
		}
	}
}
