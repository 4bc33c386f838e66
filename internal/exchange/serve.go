package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// inStream is the receiving end of the channels of one sending task.
type inStream struct {
	network *Network
	stream  FrameStream
	bound   []*boundChannel
	notes   chan note
}

type boundChannel struct {
	gate    *Gate
	channel int
	codec   Codec
}

// note is what a gate wants the sender to know of a channel.
type note struct {
	channel int
	credit  int  // batches that may be sent, or
	closed  bool // the receiving task has ended
}

// Serve receives the frames of one stream until the sender ends it.
func (n *Network) Serve(ctx context.Context, stream FrameStream) error {
	in := &inStream{network: n, stream: stream}
	if err := in.accept(ctx); err != nil {
		in.lost(err)
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var notes sync.WaitGroup
	notes.Go(func() { in.sendNotes(ctx) })
	err := in.receive()
	cancel()
	notes.Wait()
	in.lost(err)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// accept reads the hello and binds its channels, waiting for tasks that are not deployed yet.
func (in *inStream) accept(ctx context.Context) error {
	buf, err := in.stream.Recv()
	if err != nil {
		return fmt.Errorf("exchange: no hello: %w", err)
	}
	defer in.network.cfg.Frames.Put(buf)
	kind, _, payload, err := parseHeader(*buf)
	if err == nil && kind != frameHello {
		err = fmt.Errorf("frame %#x", kind)
	}
	if err != nil {
		return fmt.Errorf("exchange: the stream does not start with a hello: %w", err)
	}
	h, err := parseHello(payload)
	if err != nil {
		return fmt.Errorf("exchange: bad hello: %w", err)
	}
	wait, cancel := context.WithTimeout(ctx, awaitGate)
	defer cancel()
	gates := make([]*Gate, len(h.channels))
	capacity := 0
	for i, c := range h.channels {
		if gates[i], err = in.network.await(wait, c.receiver); err != nil {
			return fmt.Errorf("exchange: from %s: %w", h.sender, err)
		}
		capacity += gates[i].credits + 2 // all its credit, one by one at worst, the first grant, and that it closed
	}
	in.notes = make(chan note, capacity)
	for i, c := range h.channels {
		if err := in.bind(i, gates[i], channelKey{c.edge, h.sender}); err != nil {
			return fmt.Errorf("exchange: %w", err)
		}
	}
	return nil
}

func (in *inStream) bind(i int, g *Gate, key channelKey) error {
	taken, batch := 0, max(1, g.credits/2)
	channel, err := g.bind(key.edge, key.sender, func(n int) {
		if taken += n; taken >= batch { // a frame for each batch would cost more than the batch
			in.notes <- note{channel: i, credit: taken}
			taken = 0
		}
	}, func() { in.notes <- note{channel: i, closed: true} })
	if err != nil {
		return err
	}
	in.bound = append(in.bound, &boundChannel{gate: g, channel: channel, codec: g.channels[channel].codec})
	in.notes <- note{channel: i, credit: g.credits}
	return nil
}

// receive puts elements into the gates until the stream ends.
func (in *inStream) receive() error {
	for {
		buf, err := in.stream.Recv()
		if err != nil {
			return err
		}
		err = in.frame(*buf)
		in.network.cfg.Frames.Put(buf)
		if err != nil {
			return err
		}
	}
}

func (in *inStream) frame(frame []byte) error {
	kind, channel, payload, err := parseHeader(frame)
	if err != nil {
		return err
	}
	if channel >= len(in.bound) {
		return fmt.Errorf("exchange: frame for channel %d of %d", channel, len(in.bound))
	}
	b := in.bound[channel]
	e, err := parseElement(kind, payload, b.codec)
	if err != nil {
		return fmt.Errorf("exchange: to %s: %w", b.gate.attempt, err)
	}
	// A gate that has closed has told the sender; what is on its way is of no use to anybody.
	if err := b.gate.put(b.channel, e); err != nil && !errors.Is(err, ErrClosed) {
		return fmt.Errorf("exchange: to %s: %w", b.gate.attempt, err)
	}
	return nil
}

// sendNotes tells the sender what the gates have to say.
func (in *inStream) sendNotes(ctx context.Context) {
	for {
		select {
		case n := <-in.notes:
			buf := in.network.cfg.Frames.Get(16)
			if n.closed {
				*buf = appendHeader((*buf)[:0], frameClosed, n.channel)
			} else {
				*buf = appendCredit((*buf)[:0], n.channel, n.credit)
			}
			if in.stream.Send(buf) != nil {
				return // receive learns it too, and says it
			}
		case <-ctx.Done():
			return
		}
	}
}

// lost tells the gates that their sender is gone.
func (in *inStream) lost(err error) {
	for _, b := range in.bound {
		b.gate.lost(b.channel, err)
	}
}
