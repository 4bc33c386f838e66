package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/weirstream/weir/internal/gateway"
)

// countingPool knows which buffers are out. It fills what comes back with rubbish, so that who still reads it is found out.
type countingPool struct {
	t  testing.TB
	mu struct {
		sync.Mutex
		out   map[*[]byte]bool
		empty chan struct{} // closed when nothing is out any more, if not nil
		puts  int
	}
}

func newCountingPool(t testing.TB) *countingPool {
	p := &countingPool{t: t}
	p.mu.out = map[*[]byte]bool{}
	return p
}

func (p *countingPool) Get(size int) *[]byte {
	b := new(pool).Get(size)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.out[b] = true
	return b
}

func (p *countingPool) Put(b *[]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.mu.out[b] {
		p.t.Errorf("a buffer of %d bytes came back twice, or is not of the pool", len(*b))
	}
	delete(p.mu.out, b)
	p.mu.puts++
	copy(*b, rubbish)
	if len(p.mu.out) == 0 && p.mu.empty != nil {
		close(p.mu.empty)
		p.mu.empty = nil
	}
}

// wait returns when every buffer is back.
func (p *countingPool) wait() {
	p.mu.Lock()
	if len(p.mu.out) == 0 {
		p.mu.Unlock()
		return
	}
	empty := make(chan struct{})
	p.mu.empty = empty
	n := len(p.mu.out)
	p.mu.Unlock()
	select {
	case <-empty:
	case <-p.t.Context().Done():
		p.t.Errorf("%d buffers never came back", n)
	}
}

// What is in frames: frame i starts at byte i of the pattern, so that each differs from its neighbours.
var (
	pattern = func() []byte {
		b := make([]byte, 6<<20)
		for i := range b {
			b[i] = byte(i % 251)
		}
		return b
	}()
	rubbish = bytes.Repeat([]byte{0xEE}, 6<<20)
)

func frameOf(p *countingPool, i, size int) *[]byte {
	b := p.Get(size)
	copy(*b, pattern[i:])
	return b
}

func checkFrame(t *testing.T, b []byte, i, size int) {
	t.Helper()
	if !bytes.Equal(b, pattern[i:i+size]) {
		t.Errorf("frame %d of %d bytes arrived as %d other bytes", i, size, len(b))
	}
}

// exchange is a server and a connection whose frames come from p.
func exchange(t testing.TB, p *countingPool, handle func(context.Context, FrameStream) error) (*grpc.ClientConn, codec) {
	s := newServer(zap.NewNop(), codec{p})
	RegisterExchange(s, handle)
	return overTCP(t, s), codec{p}
}

var frameSizes = []int{0, 1, 16, 1000, 1024, 4096, 16 << 10, 32 << 10, 100_000, 1 << 20, 5 << 20}

func TestFrames_BothWays_ArriveInOrderAndAreFreedOnce(t *testing.T) {
	const rounds = 10
	p := newCountingPool(t)
	n := rounds * len(frameSizes)
	send := func(s FrameStream) error {
		for i := range n {
			if err := s.Send(frameOf(p, i, frameSizes[i%len(frameSizes)])); err != nil {
				return fmt.Errorf("send frame %d: %w", i, err)
			}
		}
		return s.CloseSend()
	}
	receive := func(s FrameStream) error {
		for i := range n {
			b, err := s.Recv()
			if err != nil {
				return fmt.Errorf("receive frame %d: %w", i, err)
			}
			checkFrame(t, *b, i, frameSizes[i%len(frameSizes)])
			p.Put(b)
		}
		return nil
	}
	both := func(s FrameStream) error {
		sent := make(chan error, 1)
		go func() { sent <- send(s) }()
		return errors.Join(receive(s), <-sent)
	}
	conn, c := exchange(t, p, func(_ context.Context, s FrameStream) error { return both(s) })
	s, err := openExchange(t.Context(), conn, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := both(s); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last frame: %v, want EOF", err)
	}
	p.wait()
	if want := 4 * n; p.mu.puts != want { // twice sent, twice received
		t.Errorf("%d buffers came back, want %d", p.mu.puts, want)
	}
}

func TestFrames_SendThatFails_FreesTheBuffer(t *testing.T) {
	p := newCountingPool(t)
	conn, c := exchange(t, p, func(ctx context.Context, s FrameStream) error {
		<-ctx.Done()
		return ctx.Err()
	})
	tests := map[string]func(s FrameStream, cancel func()) error{
		"after the end of the context": func(s FrameStream, cancel func()) error {
			cancel()
			_, _ = s.Recv() // returns when the end is known
			return s.Send(p.Get(4096))
		},
		"after CloseSend": func(s FrameStream, _ func()) error {
			if err := s.CloseSend(); err != nil {
				t.Error(err)
			}
			return s.Send(p.Get(4096))
		},
		"too large": func(s FrameStream, _ func()) error { return s.Send(p.Get(MaxMessageBytes + 1)) },
	}
	for name, send := range tests {
		ctx, cancel := context.WithCancel(t.Context())
		s, err := openExchange(ctx, conn, c)
		if err != nil {
			t.Fatal(err)
		}
		if err := send(s, cancel); err == nil {
			t.Errorf("%s: a frame was sent", name)
		}
		cancel()
		p.wait()
	}
}

func TestFrames_ErrorOfTheHandler_ReachesTheSender(t *testing.T) {
	p := newCountingPool(t)
	want := &gateway.Error{Code: gateway.NotFound, Reason: gateway.ReasonUnknownAttempt, Message: "no such channel", Remedy: "deploy again"}
	conn, c := exchange(t, p, func(_ context.Context, s FrameStream) error {
		b, err := s.Recv()
		if err != nil {
			return err
		}
		p.Put(b)
		return want
	})
	s, err := openExchange(t.Context(), conn, c)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil { // until it is known that the stream is over
		err = s.Send(frameOf(p, 0, 32<<10))
	}
	if !errors.Is(err, io.EOF) {
		t.Errorf("send ended with %v", err)
	}
	_, err = s.Recv()
	checkError(t, "recv", err, want)
}

func TestFrames_WithoutAServer_SayWhere(t *testing.T) {
	lis := listen(t)
	addr := lis.Addr().String()
	if err := lis.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := OpenExchange(t.Context(), dial(t, addr))
	if err == nil {
		_, err = s.Recv()
	}
	if gateway.CodeOf(err) != gateway.Unavailable || !bytes.Contains([]byte(err.Error()), []byte(addr)) {
		t.Errorf("got %v, want that %s is unavailable", err, addr)
	}
}

func TestPool_GivesBuffersOfEverySize(t *testing.T) {
	p := &pool{}
	for size := 0; size <= 5<<20; size = size*3/2 + 1 {
		b := p.Get(size)
		if len(*b) != size {
			t.Fatalf("asked for %d bytes, got %d", size, len(*b))
		}
		*b = append(*b, make([]byte, size/3)...) // a sender that writes more than it had asked for
		p.Put(b)
		if b := p.Get(size); len(*b) != size || cap(*b) < size {
			t.Fatalf("asked for %d bytes, got %d of %d", size, len(*b), cap(*b))
		}
	}
	p.Put(&[]byte{1, 2, 3}) // too small to keep
	for range 10 {
		if b := p.Get(100); cap(*b) < 1<<minFrameBits {
			t.Fatalf("got a buffer of %d bytes", cap(*b))
		}
	}
}

// BenchmarkExchange is one way, both ends in this process, so that both share its cores.
func BenchmarkExchange(b *testing.B) {
	const size = 32 << 10
	s := NewServer(zap.NewNop())
	received := make(chan int, 1)
	RegisterExchange(s, func(_ context.Context, s FrameStream) error {
		n := 0
		for {
			f, err := s.Recv()
			if err != nil {
				received <- n
				return nil
			}
			n++
			PutFrame(f)
		}
	})
	stream, err := OpenExchange(b.Context(), overTCP(b, s))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if err := stream.Send(GetFrame(size)); err != nil {
			b.Fatal(err)
		}
		n++
	}
	if err := stream.CloseSend(); err != nil {
		b.Fatal(err)
	}
	if got := <-received; got != n {
		b.Fatalf("%d of %d frames arrived", got, n)
	}
}
