package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/job"
)

// awaitGate bounds how long a stream waits for its receiving task to be deployed.
const awaitGate = 30 * time.Second

// OutputSpec is one edge that leaves a task.
type OutputSpec struct {
	Edge      string
	Codec     Codec
	Receivers []job.Placement // a channel each, in this order
}

// Outputs is the sending end of all edges of a task.
type Outputs struct {
	Outputs []*Output
	locals  []*localSender
	streams []*outStream
	cancel  context.CancelFunc
	readers sync.WaitGroup
}

// Connect opens the channels of a task to its receivers: by reference to those at this executor, by a stream to each other executor. It returns
// before remote receivers are there; sending waits for their credit. broken is called once for each stream that breaks, from a goroutine.
func (n *Network) Connect(ctx context.Context, sender job.AttemptID, specs []OutputSpec, broken func(error)) (*Outputs, error) {
	ctx, cancel := context.WithCancel(ctx)
	o := &Outputs{cancel: cancel}
	streams := map[string]*outStream{}
	for _, spec := range specs {
		out := &Output{Edge: spec.Edge}
		o.Outputs = append(o.Outputs, out)
		for _, r := range spec.Receivers {
			if r.Address == n.cfg.Address {
				s, err := n.connectLocal(ctx, channelKey{spec.Edge, sender}, r.Attempt)
				if err != nil {
					o.Close()
					return nil, err
				}
				o.locals = append(o.locals, s)
				out.channels = append(out.channels, s)
				continue
			}
			st := streams[r.Address]
			if st == nil {
				st = &outStream{network: n, address: r.Address, gone: make(chan struct{}), ctx: ctx}
				streams[r.Address] = st
				o.streams = append(o.streams, st)
			}
			out.channels = append(out.channels, st.add(spec.Edge, spec.Codec, r.Attempt))
		}
	}
	for _, st := range o.streams {
		if err := st.open(ctx, sender); err != nil {
			o.Close()
			return nil, err
		}
		o.readers.Go(func() { st.readCredit(broken) })
	}
	return o, nil
}

func (n *Network) connectLocal(ctx context.Context, key channelKey, receiver job.AttemptID) (*localSender, error) {
	wait, cancel := context.WithTimeout(ctx, awaitGate)
	defer cancel()
	g, err := n.await(wait, receiver)
	if err != nil {
		return nil, fmt.Errorf("exchange: %w", err)
	}
	return newLocalSender(ctx, g, key)
}

// Finish ends the streams in good order: the receivers have got everything. Close must follow.
func (o *Outputs) Finish() {
	for _, s := range o.streams {
		if s.stream != nil {
			_ = s.stream.CloseSend() // a stream that is broken is the receiver's to report
		}
	}
	o.readers.Wait()
}

// Close ends the channels at once and waits for the goroutines of the streams. Receivers that were not told that the task has finished
// learn that their sender is lost.
func (o *Outputs) Close() {
	for _, s := range o.locals {
		s.close()
	}
	o.cancel()
	o.readers.Wait()
}

// outStream is the sending end of the channels to one executor.
type outStream struct {
	network  *Network
	ctx      context.Context // of the task that sends; a stream lives as long as its task
	address  string
	channels []*remoteSender
	stream   FrameStream
	gone     chan struct{} // closed when the stream has ended
	err      error         // why; set before gone is closed
}

// remoteSender is the sending end of one channel of a stream.
type remoteSender struct {
	stream   *outStream
	number   int
	edge     string
	codec    Codec
	receiver job.AttemptID
	credits  chan struct{}
	last     int         // size of the last frame, to guess the next
	ended    atomic.Bool // the latest of records and elements that end is one that ends
}

// receiverEnded is no error when the receiver has got everything: it may end before its senders.
func (r *remoteSender) receiverEnded() error {
	if r.ended.Load() {
		return nil
	}
	return fmt.Errorf("task %s: %w", r.receiver, ErrClosed)
}

func (s *outStream) add(edge string, c Codec, receiver job.AttemptID) *remoteSender {
	r := &remoteSender{stream: s, number: len(s.channels), edge: edge, codec: c, receiver: receiver, credits: make(chan struct{}, maxCredits)}
	s.channels = append(s.channels, r)
	return r
}

func (s *outStream) open(ctx context.Context, sender job.AttemptID) error {
	stream, err := s.network.cfg.Dial(ctx, s.address)
	if err != nil {
		return fmt.Errorf("exchange: connect to executor at %s: %w", s.address, err)
	}
	h := hello{job: sender.Job, sender: sender}
	for _, c := range s.channels {
		h.channels = append(h.channels, helloChannel{c.edge, c.receiver})
	}
	buf := s.network.cfg.Frames.Get(1024)
	*buf = appendHello((*buf)[:0], h)
	if err := stream.Send(buf); err != nil {
		return fmt.Errorf("exchange: connect to executor at %s: %w", s.address, err)
	}
	s.stream = stream
	return nil
}

// readCredit gives the credit that the receiver grants to the channels until the stream ends.
func (s *outStream) readCredit(broken func(error)) {
	defer close(s.gone)
	for {
		buf, err := s.stream.Recv()
		if err == nil {
			err = s.credit(*buf)
			s.network.cfg.Frames.Put(buf)
		}
		if err == nil {
			continue
		}
		s.err = fmt.Errorf("exchange: connection to executor at %s: %w", s.address, err)
		if !errors.Is(err, io.EOF) && s.ctx.Err() == nil {
			broken(s.err)
		}
		return
	}
}

func (s *outStream) credit(frame []byte) error {
	kind, channel, payload, err := parseHeader(frame)
	if err != nil {
		return err
	}
	if channel >= len(s.channels) || kind != frameCredit && kind != frameClosed {
		return fmt.Errorf("unexpected frame %#x for channel %d", kind, channel)
	}
	if kind == frameClosed {
		return s.channels[channel].receiverEnded()
	}
	n, err := parseCredit(payload)
	if err != nil {
		return err
	}
	for range n {
		select {
		case s.channels[channel].credits <- struct{}{}:
		default:
			return fmt.Errorf("more than %d credits for one channel", maxCredits)
		}
	}
	return nil
}

func (r *remoteSender) send(e element.Element) error {
	s := r.stream
	if e.Kind == element.Records {
		if err := take(s.ctx, r.credits, s.gone, ErrClosed); err != nil {
			if errors.Is(err, ErrClosed) {
				return s.err
			}
			return err
		}
	}
	if e.Ends() || e.Kind == element.Records {
		r.ended.Store(e.Ends())
	}
	buf := s.network.cfg.Frames.Get(max(r.last+r.last/4, 256))
	frame, err := appendElement((*buf)[:0], r.number, e, r.codec)
	*buf = frame
	if err == nil && len(frame) > MaxFrame {
		err = fmt.Errorf("a batch for %s takes %d bytes, a frame holds %d; use a smaller batch size", r.receiver, len(frame), MaxFrame)
	}
	if err != nil {
		s.network.cfg.Frames.Put(buf)
		return fmt.Errorf("exchange: edge %s: %w: %w", r.edge, ErrRecord, err)
	}
	r.last = len(frame)
	if err := s.stream.Send(buf); err != nil {
		return s.broken(err)
	}
	return nil
}

// broken is why a frame could not be sent. The stream may only say that it is over: then its reader has the reason.
func (s *outStream) broken(err error) error {
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("exchange: connection to executor at %s: %w", s.address, err)
	}
	select {
	case <-s.gone:
		return s.err
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}
