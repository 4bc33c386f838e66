package exchange

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirstream/weir/internal/element"
)

// Output is the sending end of one edge in a task. Its methods are for the task's goroutine.
type Output struct {
	Edge     string
	channels []sender
}

// sender is the sending end of one channel.
type sender interface {
	// send blocks while it has no credit for e.
	send(e element.Element) error
}

// Receivers is the number of channels.
func (o *Output) Receivers() int { return len(o.channels) }

// Send sends a batch to one receiver; it blocks while the channel has no credit.
func (o *Output) Send(receiver int, b element.Batch) error {
	return o.channels[receiver].send(element.Element{Kind: element.Records, Batch: b})
}

// Broadcast sends an event to every receiver. Events need no credit.
func (o *Output) Broadcast(e element.Element) error {
	for _, c := range o.channels {
		if err := c.send(e); err != nil {
			return err
		}
	}
	return nil
}

// localSender puts elements into a gate of the same process.
type localSender struct {
	ctx     context.Context // of the task that sends; a sender lives as long as its task
	gate    *Gate
	channel int
	credits chan struct{} // a token for each batch that may be sent
	ended   bool          // end of data was sent
	closed  bool          // and so was that this task has finished
}

func newLocalSender(ctx context.Context, gate *Gate, key channelKey) (*localSender, error) {
	s := &localSender{ctx: ctx, gate: gate, credits: make(chan struct{}, gate.credits)}
	for range gate.credits {
		s.credits <- struct{}{}
	}
	channel, err := gate.bind(key.edge, key.sender, func(n int) {
		for range n {
			s.credits <- struct{}{} // never blocks: the tokens fit
		}
	}, func() {})
	if err != nil {
		return nil, fmt.Errorf("exchange: %w", err)
	}
	s.channel = channel
	return s, nil
}

var errSenderEnded = errors.New("it has ended without having finished")

func (s *localSender) close() {
	if !s.closed {
		s.gate.lost(s.channel, errSenderEnded)
	}
}

func (s *localSender) send(e element.Element) error {
	if e.Kind == element.Records {
		if err := take(s.ctx, s.credits, s.gate.closed, ErrClosed); err != nil {
			return fmt.Errorf("exchange: send to %s: %w", s.gate.attempt, err)
		}
	}
	s.ended = e.Ends() || s.ended && e.Kind != element.Records
	s.closed = s.closed || e.Kind == element.Closed
	err := s.gate.put(s.channel, e)
	if s.ended && errors.Is(err, ErrClosed) {
		return nil // a task that has got everything may end before its senders
	}
	if err != nil {
		return fmt.Errorf("exchange: send to %s: %w", s.gate.attempt, err)
	}
	return nil
}

// take waits for a token, the end of the sending task, or gone.
func take(ctx context.Context, tokens <-chan struct{}, gone <-chan struct{}, err error) error {
	select {
	case <-tokens:
		return nil
	default:
	}
	select {
	case <-tokens:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-gone:
		return err
	}
}
