package exchange

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/job"
)

// raw serves a stream whose frames the test writes itself, and returns its client end.
func (w *world) raw(frames ...[]byte) FrameStream {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	w.t.Cleanup(cancel)
	s, err := w.dial(ctx, there)
	must(w.t, err)
	for _, f := range frames {
		must(w.t, s.Send(w.buffer(f)))
	}
	return s
}

func (w *world) buffer(frame []byte) *[]byte {
	b := w.buffers.Get(0)
	*b = frame
	return b
}

// helloFrame introduces s[0] with channels to r[0].
func helloFrame(edges ...string) []byte {
	h := hello{job: "j", sender: attempt("s", 0)}
	for _, e := range edges {
		h.channels = append(h.channels, helloChannel{e, attempt("r", 0)})
	}
	return appendHello(nil, h)
}

func elementFrame(t *testing.T, channel int, e element.Element) []byte {
	t.Helper()
	f, err := appendElement(nil, channel, e, numbersCodec{})
	must(t, err)
	return f
}

func records(v ...int64) element.Element {
	return element.Element{Kind: element.Records, Batch: numbers(v)}
}

func tooManyChannels() []byte {
	f := appendHeader(nil, frameHello, 0)
	f = appendString(f, "j")
	f = appendAttempt(f, attempt("s", 0))
	return binary.AppendUvarint(f, maxChannels+1)
}

func TestServe_RefusesAStreamThatDoesNotIntroduceItself(t *testing.T) {
	for name, c := range map[string]struct {
		frame []byte
		want  string
	}{
		"empty frame":            {nil, "does not start with a hello: truncated"},
		"records first":          {elementFrame(t, 0, records(1)), "does not start with a hello: frame 0x1"},
		"credit first":           {appendCredit(nil, 0, 1), "does not start with a hello: frame 0x41"},
		"cut":                    {helloFrame("e")[:12], "bad hello: truncated"},
		"left over":              {append(helloFrame("e"), 0), "bad hello: 1 bytes left over"},
		"too many channels":      {tooManyChannels(), "hello of 65537 channels, at most 65536"},
		"unknown edge":           {helloFrame("other"), "task r[0]#1 has no channel from s[0]#1 on edge other"},
		"a channel twice":        {helloFrame("e", "e"), "the channel from s[0]#1 to r[0]#1 on edge e is connected already"},
		"channel number too big": {appendHeader(nil, frameHello, maxChannels), "channel 65536 in a frame"},
	} {
		t.Run(name, func(t *testing.T) {
			remotely(t, func(t *testing.T, w *world) {
				w.gate(0, 1, 2)
				w.raw(c.frame)
				if err := <-w.served; err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
			})
		})
	}
}

func TestServe_EndsWithoutHelloWhenTheStreamEnds(t *testing.T) {
	remotely(t, func(t *testing.T, w *world) {
		must(t, w.raw().CloseSend())
		if err := <-w.served; !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want EOF", err)
		}
	})
}

func TestServe_EndsAStreamThatBreaksTheProtocol(t *testing.T) {
	for name, c := range map[string]struct {
		frames [][]byte
		want   string
	}{
		"short frame":             {[][]byte{{1, 2, 3}}, "truncated"},
		"unknown channel":         {[][]byte{elementFrame(t, 1, records(1))}, "frame for channel 1 of 1"},
		"unknown kind":            {[][]byte{appendHeader(nil, 0x30, 0)}, "unknown frame kind 0x30"},
		"hello again":             {[][]byte{helloFrame("e")}, "unknown frame kind 0x40"},
		"credit from the sender":  {[][]byte{appendCredit(nil, 0, 1)}, "unknown frame kind 0x41"},
		"damaged batch":           {[][]byte{append(appendHeader(nil, byte(element.Records), 0), 0x80)}, "bad number"},
		"damaged barrier":         {[][]byte{elementFrame(t, 0, barrier(1))[:8]}, "truncated"},
		"barrier with more":       {[][]byte{append(elementFrame(t, 0, barrier(1)), 7)}, "1 bytes left over"},
		"barrier, final is 2":     {[][]byte{withLast(elementFrame(t, 0, barrier(1)), 2, 0, 0, 0)}, "damaged"},
		"barrier, stop is 3":      {[][]byte{withLast(elementFrame(t, 0, barrier(1)), 0, 3, 0, 0)}, "damaged"},
		"barrier, format is 3":    {[][]byte{withLast(elementFrame(t, 0, barrier(1)), 0, 0, 0, 3)}, "damaged"},
		"more than its credit":    {[][]byte{elementFrame(t, 0, records(1)), elementFrame(t, 0, records(2)), elementFrame(t, 0, records(3))}, "more batches came from s[0]#1 than the 2 it has credit for"},
		"records behind the end":  {[][]byte{elementFrame(t, 0, end), elementFrame(t, 0, records(1))}, "records(1) came from s[0]#1 behind its end of data"},
		"end of data behind that": {[][]byte{elementFrame(t, 0, end), elementFrame(t, 0, end)}, "end-of-data came from s[0]#1 behind its end of data"},
	} {
		t.Run(name, func(t *testing.T) {
			remotely(t, func(t *testing.T, w *world) {
				g := w.gate(0, 1, 2)
				w.raw(append([][]byte{helloFrame("e")}, c.frames...)...)
				err := <-w.served
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				for ok := true; ok; {
					_, _, ok, err = g.Next()
				}
				if ended := strings.Contains(name, "end"); !ended && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("the receiving task learns %v, want %q", err, c.want)
				}
			})
		})
	}
}

func withLast(frame []byte, b ...byte) []byte {
	return append(frame[:len(frame)-len(b)], b...)
}

// serveRaw connects a sender to a receiver that the test plays itself.
func (w *world) serveRaw(play func(s FrameStream) error) *Outputs {
	w.t.Helper()
	n := NewNetwork(Config{Address: here, Frames: w.buffers, Dial: func(ctx context.Context, _ string) (FrameStream, error) {
		p := newPipe(ctx)
		go func() { p.finish(play(serverEnd{p})) }()
		return clientEnd{p}, nil
	}})
	o, err := n.Connect(w.t.Context(), attempt("s", 0), []OutputSpec{w.spec(1)}, func(err error) { w.broken <- err })
	must(w.t, err)
	w.t.Cleanup(o.Close)
	return o
}

func TestSender_RefusesDamagedCredit(t *testing.T) {
	for name, c := range map[string]struct {
		frame []byte
		want  string
	}{
		"cut":             {[]byte{frameCredit, 0}, "truncated"},
		"no number":       {appendHeader(nil, frameCredit, 0), "truncated"},
		"unknown channel": {appendCredit(nil, 1, 1), "unexpected frame 0x41 for channel 1"},
		"unknown kind":    {elementFrame(t, 0, end), "unexpected frame 0x4 for channel 0"},
		"too much":        {appendCredit(nil, 0, maxCredits+1), "4097 credits"},
		"far too much":    {binary.AppendUvarint(appendHeader(nil, frameCredit, 0), 1<<63), "9223372036854775808 credits"},
	} {
		t.Run(name, func(t *testing.T) {
			remotely(t, func(t *testing.T, w *world) {
				w.serveRaw(func(s FrameStream) error {
					if err := s.Send(w.buffer(c.frame)); err != nil {
						return err
					}
					_, err := s.Recv()
					return err
				})
				if err := <-w.broken; !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
			})
		})
	}
}

func TestSender_RefusesCreditThatAddsUpToTooMuch(t *testing.T) {
	remotely(t, func(t *testing.T, w *world) {
		w.serveRaw(func(s FrameStream) error {
			for range 2 {
				if err := s.Send(w.buffer(appendCredit(nil, 0, maxCredits))); err != nil {
					return err
				}
			}
			_, err := s.Recv()
			return err
		})
		if err := <-w.broken; !strings.Contains(err.Error(), "more than 4096 credits for one channel") {
			t.Errorf("got %v", err)
		}
	})
}

func TestSender_SaysWhyTheReceiverEndedTheStream(t *testing.T) {
	remotely(t, func(t *testing.T, w *world) {
		g := w.gate(0, 2, 2)
		o, err := w.networks[here].Connect(t.Context(), attempt("stranger", 0), []OutputSpec{w.spec(1)}, func(err error) { w.broken <- err })
		must(t, err)
		t.Cleanup(o.Close)
		<-w.served
		const want = "has no channel from stranger[0]#1"
		if err := o.Outputs[0].Broadcast(barrier(1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("an event: got %v, want %q", err, want)
		}
		if err := o.Outputs[0].Send(0, numbers{1}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a batch: got %v, want %q", err, want)
		}
		if err := <-w.broken; !strings.Contains(err.Error(), want) {
			t.Errorf("broken: got %v, want %q", err, want)
		}
		if _, _, ok, err := g.Next(); ok || err != nil {
			t.Errorf("the gate is disturbed: %v, %v", ok, err)
		}
	})
}

func TestConnect_SaysWhichExecutorCannotBeReached(t *testing.T) {
	remotely(t, func(t *testing.T, w *world) {
		w.refuse = errors.New("connection refused")
		_, err := w.networks[here].Connect(t.Context(), attempt("s", 0), []OutputSpec{w.spec(1)}, func(error) {})
		if !errors.Is(err, w.refuse) || !strings.Contains(err.Error(), there) {
			t.Errorf("got %v, want the reason and the address", err)
		}
	})
}

func TestConnect_ThatFails_LeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, here)
		g := w.gate(0, 1, 1)
		w.refuse = errors.New("connection refused")
		spec := w.spec(1)
		spec.Receivers = append(spec.Receivers, job.Placement{Attempt: attempt("r", 1), Address: there})
		if _, err := w.networks[here].Connect(t.Context(), attempt("s", 0), []OutputSpec{spec}, func(error) {}); err == nil {
			t.Fatal("Connect worked")
		}
		if _, _, _, err := g.Next(); err == nil || !strings.Contains(err.Error(), "lost its sender s[0]#1") {
			t.Errorf("the receiver that was connected learns %v", err)
		}
	})
}

func TestSend_RecordThatCannotBeSent_IsTheRecordsFault(t *testing.T) {
	remotely(t, func(t *testing.T, w *world) {
		fits := numbersCodec{pad: MaxFrame - frameHeader - 1}
		g := w.networks[there].OpenGate(attempt("r", 0), []GateInput{{Edge: "e", Codec: fits, Senders: attempts("s", 1)}}, 4, func() {})
		defer w.networks[there].CloseGate(g)
		o := w.connect(t.Context(), 0, 1).Outputs[0]
		synctest.Wait()
		err := o.Send(0, numbers{1, -1})
		if !errors.Is(err, ErrRecord) || !errors.Is(err, errNegative) || !strings.Contains(err.Error(), "edge e") {
			t.Errorf("got %v, want ErrRecord with the codec's error and the edge", err)
		}
		o.channels[0].(*remoteSender).codec = numbersCodec{pad: MaxFrame}
		err = o.Send(0, numbers{1})
		if !errors.Is(err, ErrRecord) || !strings.Contains(err.Error(), "use a smaller batch size") {
			t.Errorf("a batch over the limit: got %v, want ErrRecord with a remedy", err)
		}
		o.channels[0].(*remoteSender).codec = fits
		must(t, o.Send(0, numbers{1}))
		if got := drain(t, g); len(got) != 1 {
			t.Errorf("a batch of exactly the limit: got %v", got)
		}
	})
}

func TestGate_CreditsAreWithinLimits(t *testing.T) {
	for given, want := range map[int]int{-1: 1, 0: 1, 1: 1, maxCredits: maxCredits, maxCredits + 1: maxCredits} {
		if g := newGate(attempt("r", 0), nil, given, func() {}); g.credits != want {
			t.Errorf("%d credits become %d, want %d", given, g.credits, want)
		}
	}
}

// FuzzFrame gives damaged frames to every decoder: none may panic, and what one accepts must survive another round.
func FuzzFrame(f *testing.F) {
	f.Add(helloFrame("e", "f"))
	f.Add(appendCredit(nil, 3, 17))
	final := barrier(1 << 40)
	final.Checkpoint.Final = true
	for _, e := range []element.Element{records(1, 2, 3), barrier(-1), final, stopping(3), {Kind: element.Cancel, Checkpoint: element.Checkpoint{ID: 5}}, end} {
		frame, err := appendElement(nil, 1, e, numbersCodec{})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame)
	}
	f.Add(tooManyChannels())
	f.Fuzz(func(t *testing.T, frame []byte) {
		kind, channel, payload, err := parseHeader(frame)
		if err != nil {
			return
		}
		if channel < 0 || channel >= maxChannels {
			t.Fatalf("channel %d", channel)
		}
		if n, err := parseCredit(payload); err == nil {
			if again, err := parseCredit(appendCredit(nil, channel, n)[frameHeader:]); again != n || err != nil {
				t.Fatalf("credit %d becomes %d, %v", n, again, err)
			}
		}
		if h, err := parseHello(payload); err == nil {
			again, err := parseHello(appendHello(nil, h)[frameHeader:])
			if err != nil || len(again.channels) != len(h.channels) || again.sender != h.sender {
				t.Fatalf("hello %v becomes %v, %v", h, again, err)
			}
		}
		if e, err := parseElement(kind, payload, numbersCodec{}); err == nil && e.Kind != element.Records {
			again, err := appendElement(nil, channel, e, numbersCodec{})
			must(t, err)
			if e2, err := parseElement(kind, again[frameHeader:], numbersCodec{}); e2 != e || err != nil {
				t.Fatalf("%+v becomes %+v, %v", e, e2, err)
			}
		}
	})
}
