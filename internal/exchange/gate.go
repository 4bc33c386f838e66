package exchange

import (
	"errors"
	"fmt"
	"sync"

	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/job"
)

// ErrClosed is what senders get when the receiving task has ended.
var ErrClosed = errors.New("the receiving task has ended")

// ErrRecord is in the error of a record that cannot be encoded: it is the record's fault, not the connection's.
var ErrRecord = errors.New("a record cannot be sent")

// Codec encodes the batches of an edge for the wire.
type Codec interface {
	Encode(dst []byte, b element.Batch) ([]byte, error)
	Decode(src []byte) (element.Batch, error)
}

// GateInput is one edge that ends in a task.
type GateInput struct {
	Edge    string
	Codec   Codec
	Senders []job.AttemptID // a channel each, in this order
}

// Gate is the receiving end of all channels of a task. Channels are numbered from 0, edge by edge. Next, Block and Unblock are for the
// task's goroutine; everything else comes from senders and streams.
type Gate struct {
	attempt  job.AttemptID
	inputs   []GateInput
	credits  int
	wake     func()
	channels []channelInfo
	index    map[channelKey]int
	closed   chan struct{}

	mu struct {
		sync.Mutex
		queues []queue
		ready  []int // channels that have elements and are not blocked, in the order of their turn
		closed bool
		err    error // why the gate will not get all its elements
	}
}

type channelKey struct {
	edge   string
	sender job.AttemptID
}

type channelInfo struct {
	channelKey
	codec Codec
}

// queue is one channel's elements.
type queue struct {
	elements []element.Element
	head     int
	batches  int  // record batches among elements
	queued   bool // it is in ready
	blocked  bool
	ended    bool        // end of data was put
	mayClose bool        // an element that ends was put, and no records behind it
	closed   bool        // the sender has finished
	consumed func(n int) // gives credit back to the sender; nil until it is bound
	onClose  func()      // tells the sender that the task has ended
}

// newGate makes the gate of a task. wake is called whenever Next may have something; it must not block.
func newGate(attempt job.AttemptID, inputs []GateInput, credits int, wake func()) *Gate {
	credits = min(max(credits, 1), maxCredits)
	g := &Gate{attempt: attempt, inputs: inputs, credits: credits, wake: wake, index: map[channelKey]int{}, closed: make(chan struct{})}
	for _, in := range inputs {
		for _, s := range in.Senders {
			key := channelKey{in.Edge, s}
			g.index[key] = len(g.channels)
			g.channels = append(g.channels, channelInfo{key, in.Codec})
		}
	}
	g.mu.queues = make([]queue, len(g.channels))
	return g
}

// Channels is the number of channels.
func (g *Gate) Channels() int { return len(g.channels) }

// InputOf returns the index of the edge that a channel belongs to.
func (g *Gate) InputOf(channel int) int {
	for i, in := range g.inputs {
		if channel < len(in.Senders) {
			return i
		}
		channel -= len(in.Senders)
	}
	return -1
}

// Next takes the next element of a channel that is not blocked, channels in turn. ok is false when there is none. An error means that a
// sender is lost.
func (g *Gate) Next() (channel int, e element.Element, ok bool, err error) {
	g.mu.Lock()
	var credit func(int)
	for len(g.mu.ready) > 0 && !ok {
		channel = g.mu.ready[0]
		g.mu.ready = g.mu.ready[1:]
		q := &g.mu.queues[channel]
		q.queued = false
		if q.blocked || q.len() == 0 {
			continue
		}
		e, ok = q.pop(), true
		g.enqueue(channel)
		if e.Kind == element.Records {
			credit = q.consumed
		}
	}
	if !ok {
		err = g.mu.err
	}
	g.mu.Unlock()
	if credit != nil {
		credit(1)
	}
	return channel, e, ok, err
}

// Block keeps Next from taking elements of a channel.
func (g *Gate) Block(channel int) {
	g.mu.Lock()
	g.mu.queues[channel].blocked = true
	g.mu.Unlock()
}

// Unblock ends every Block.
func (g *Gate) Unblock() {
	g.mu.Lock()
	for i := range g.mu.queues {
		g.mu.queues[i].blocked = false
		g.enqueue(i)
	}
	g.mu.Unlock()
}

// enqueue puts a channel at the end of the turn if it has something to take.
func (g *Gate) enqueue(channel int) {
	q := &g.mu.queues[channel]
	if !q.queued && !q.blocked && q.len() > 0 {
		q.queued = true
		g.mu.ready = append(g.mu.ready, channel)
	}
}

// put adds an element. A sender without credit, one that goes on behind its end, or one that finishes before its end of data breaks the
// protocol: nothing is queued for it.
func (g *Gate) put(channel int, e element.Element) error {
	g.mu.Lock()
	if err := g.refuse(channel, e); err != nil {
		g.mu.Unlock()
		return err
	}
	q := &g.mu.queues[channel]
	q.push(e)
	q.ended = q.ended || e.Kind == element.EndOfData
	q.mayClose = e.Ends() || q.mayClose && e.Kind != element.Records
	q.closed = q.closed || e.Kind == element.Closed
	g.enqueue(channel)
	g.mu.Unlock()
	g.wake()
	return nil
}

func (g *Gate) refuse(channel int, e element.Element) error {
	q := &g.mu.queues[channel]
	switch {
	case g.mu.closed:
		return ErrClosed
	case q.closed:
		return fmt.Errorf("%s came from %s, which had finished", e, g.channels[channel].sender)
	case e.Kind == element.Closed && !q.mayClose:
		return fmt.Errorf("%s came from %s before its end of data", e, g.channels[channel].sender)
	case q.ended && (e.Kind == element.Records || e.Kind == element.EndOfData):
		return fmt.Errorf("%s came from %s behind its end of data", e, g.channels[channel].sender)
	case e.Kind == element.Records && q.batches == g.credits:
		return fmt.Errorf("more batches came from %s than the %d it has credit for", g.channels[channel].sender, g.credits)
	}
	return nil
}

// bind connects a channel with its sender: consumed is called with the number of batches that the task has taken, closed when the task has
// ended, both from the task's goroutine. They must not block.
func (g *Gate) bind(edge string, sender job.AttemptID, consumed func(n int), closed func()) (channel int, err error) {
	channel, ok := g.index[channelKey{edge, sender}]
	if !ok {
		return 0, fmt.Errorf("task %s has no channel from %s on edge %s", g.attempt, sender, edge)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed {
		return 0, ErrClosed
	}
	if g.mu.queues[channel].consumed != nil {
		return 0, fmt.Errorf("the channel from %s to %s on edge %s is connected already", sender, g.attempt, edge)
	}
	g.mu.queues[channel].consumed, g.mu.queues[channel].onClose = consumed, closed
	return channel, nil
}

// lost says that a channel's sender is gone. That is as it should be when it has finished.
func (g *Gate) lost(channel int, err error) {
	g.mu.Lock()
	if !g.mu.closed && !g.mu.queues[channel].closed && g.mu.err == nil {
		g.mu.err = fmt.Errorf("exchange: %s lost its sender %s: %w", g.attempt, g.channels[channel].sender, err)
	}
	g.mu.Unlock()
	g.wake()
}

// close lets go of everything queued; senders get ErrClosed from now on.
func (g *Gate) close() {
	g.mu.Lock()
	if g.mu.closed {
		g.mu.Unlock()
		return
	}
	g.mu.closed = true
	queues := g.mu.queues
	g.mu.queues = make([]queue, len(queues))
	g.mu.ready = nil
	close(g.closed)
	g.mu.Unlock()
	for _, q := range queues {
		if q.onClose != nil {
			q.onClose()
		}
	}
}

func (q *queue) len() int { return len(q.elements) - q.head }

func (q *queue) push(e element.Element) {
	if q.head > 0 && q.head == len(q.elements) {
		q.elements, q.head = q.elements[:0], 0
	}
	if q.head > 0 && len(q.elements) == cap(q.elements) { // make room at the front before growing
		n := copy(q.elements, q.elements[q.head:])
		clear(q.elements[n:])
		q.elements, q.head = q.elements[:n], 0
	}
	q.elements = append(q.elements, e)
	if e.Kind == element.Records {
		q.batches++
	}
}

func (q *queue) pop() element.Element {
	e := q.elements[q.head]
	q.elements[q.head] = element.Element{}
	q.head++
	if e.Kind == element.Records {
		q.batches--
	}
	return e
}
