package exchange

import (
	"context"
	"fmt"
	"sync"

	"github.com/weirstream/weir/internal/job"
)

// FrameStream is a stream of frames between two executors. One goroutine may send while another receives.
type FrameStream interface {
	// Send takes the buffer.
	Send(b *[]byte) error
	// Recv gives a buffer that goes back to the pool with Frames.Put.
	Recv() (*[]byte, error)
	CloseSend() error
}

// Frames is where buffers of frames come from.
type Frames interface {
	Get(size int) *[]byte
	Put(b *[]byte)
}

// Config is what a Network is made of.
type Config struct {
	Address string // of this executor; receivers there are reached by reference
	Frames  Frames
	// Dial opens a stream to an executor. The stream ends with ctx.
	Dial func(ctx context.Context, address string) (FrameStream, error)
}

// Network is where the tasks of one executor find their peers. It is safe for concurrent use.
type Network struct {
	cfg Config
	mu  struct {
		sync.Mutex
		gates   map[job.AttemptID]*Gate
		waiters map[job.AttemptID][]chan *Gate
	}
}

// NewNetwork returns a network without gates.
func NewNetwork(cfg Config) *Network {
	n := &Network{cfg: cfg}
	n.mu.gates = map[job.AttemptID]*Gate{}
	n.mu.waiters = map[job.AttemptID][]chan *Gate{}
	return n
}

// OpenGate makes the receiving end of a task. Streams that have been waiting for it go on. It is given back with CloseGate.
func (n *Network) OpenGate(attempt job.AttemptID, inputs []GateInput, credits int, wake func()) *Gate {
	g := newGate(attempt, inputs, credits, wake)
	n.mu.Lock()
	n.mu.gates[attempt] = g
	waiting := n.mu.waiters[attempt]
	delete(n.mu.waiters, attempt)
	n.mu.Unlock()
	for _, w := range waiting {
		w <- g
	}
	return g
}

// CloseGate ends the receiving end of a task.
func (n *Network) CloseGate(g *Gate) {
	n.mu.Lock()
	delete(n.mu.gates, g.attempt)
	n.mu.Unlock()
	g.close()
}

// await returns the gate of an attempt; the sender may have been deployed first.
func (n *Network) await(ctx context.Context, attempt job.AttemptID) (*Gate, error) {
	n.mu.Lock()
	if g := n.mu.gates[attempt]; g != nil {
		n.mu.Unlock()
		return g, nil
	}
	found := make(chan *Gate, 1)
	n.mu.waiters[attempt] = append(n.mu.waiters[attempt], found)
	n.mu.Unlock()
	select {
	case g := <-found:
		return g, nil
	case <-ctx.Done():
		n.forget(attempt, found)
		return nil, fmt.Errorf("task %s did not start: %w", attempt, context.Cause(ctx))
	}
}

func (n *Network) forget(attempt job.AttemptID, found chan *Gate) {
	n.mu.Lock()
	defer n.mu.Unlock()
	kept := n.mu.waiters[attempt][:0]
	for _, w := range n.mu.waiters[attempt] {
		if w != found {
			kept = append(kept, w)
		}
	}
	n.mu.waiters[attempt] = kept
	if len(kept) == 0 {
		delete(n.mu.waiters, attempt)
	}
}
