package exchange

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/job"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// numbers is a batch; a negative number cannot be encoded.
type numbers []int64

func (n numbers) Len() int { return len(n) }

var errNegative = errors.New("negative number")

// numbersCodec writes varints. Each value is preceded by pad zero bytes.
type numbersCodec struct{ pad int }

func (c numbersCodec) Encode(dst []byte, b element.Batch) ([]byte, error) {
	for _, v := range b.(numbers) {
		if v < 0 {
			return dst, errNegative
		}
		dst = append(dst, make([]byte, c.pad)...)
		dst = binary.AppendVarint(dst, v)
	}
	return dst, nil
}

func (c numbersCodec) Decode(src []byte) (element.Batch, error) {
	var out numbers
	for len(src) > 0 {
		v, n := binary.Varint(src[min(c.pad, len(src)):])
		if n <= 0 {
			return nil, errors.New("bad number")
		}
		out, src = append(out, v), src[c.pad+n:]
	}
	return out, nil
}

// buffers counts the buffers of frames and panics when one is given back twice.
type buffers struct {
	mu  sync.Mutex
	out map[*[]byte]bool
}

func (b *buffers) Get(size int) *[]byte {
	buf := make([]byte, size)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.out[&buf] = true
	return &buf
}

func (b *buffers) Put(buf *[]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.out[buf] {
		panic("a frame's buffer is given back twice")
	}
	delete(b.out, buf)
}

func (b *buffers) outstanding() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.out)
}

// pipe is a stream in memory with the behaviour that the exchange may expect of one. The transport holds window frames in each direction.
type pipe struct {
	ctx      context.Context // ends with the client's
	up, down chan *[]byte
	sendOnce sync.Once
	served   chan struct{} // the handler has returned
	err      error         // of the handler
}

const window = 4

func newPipe(ctx context.Context) *pipe {
	return &pipe{ctx: ctx, up: make(chan *[]byte, window), down: make(chan *[]byte, window), served: make(chan struct{})}
}

// finish is the return of the handler.
func (p *pipe) finish(err error) {
	p.err = err
	close(p.served)
}

type clientEnd struct{ *pipe }

func (c clientEnd) Send(b *[]byte) error {
	select {
	case <-c.served:
		return io.EOF
	default:
	}
	select {
	case c.up <- b:
		return nil
	case <-c.served:
		return io.EOF
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

func (c clientEnd) Recv() (*[]byte, error) {
	select {
	case b := <-c.down:
		return b, nil
	case <-c.ctx.Done():
		return nil, c.ctx.Err()
	case <-c.served:
	}
	select {
	case b := <-c.down:
		return b, nil
	default:
	}
	if c.err != nil {
		return nil, c.err
	}
	return nil, io.EOF
}

func (c clientEnd) CloseSend() error {
	c.sendOnce.Do(func() { close(c.up) })
	return nil
}

type serverEnd struct{ *pipe }

func (s serverEnd) Send(b *[]byte) error {
	select {
	case s.down <- b:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

func (s serverEnd) Recv() (*[]byte, error) {
	select {
	case b, ok := <-s.up:
		if !ok {
			return nil, io.EOF
		}
		return b, nil
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

func (serverEnd) CloseSend() error { return nil }

const here, there = "here:1", "there:1"

// world is two executors: senders are at the address here, receivers at recv, which is either.
type world struct {
	t        *testing.T
	recv     string
	buffers  *buffers
	networks map[string]*Network
	served   chan error // results of the streams
	broken   chan error
	refuse   error // of Dial
}

// everywhere runs a test with receivers in the same process and in another one, each in a bubble.
func everywhere(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	for name, recv := range map[string]string{"local": here, "remote": there} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, newWorld(t, recv)) })
		})
	}
}

func remotely(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newWorld(t, there)) })
}

func newWorld(t *testing.T, recv string) *world {
	w := &world{
		t: t, recv: recv, buffers: &buffers{out: map[*[]byte]bool{}}, networks: map[string]*Network{},
		served: make(chan error, 100), broken: make(chan error, 100),
	}
	for _, address := range []string{here, there} {
		w.networks[address] = NewNetwork(Config{Address: address, Frames: w.buffers, Dial: w.dial})
	}
	return w
}

func (w *world) dial(ctx context.Context, address string) (FrameStream, error) {
	if w.refuse != nil {
		return nil, w.refuse
	}
	ctx, cancel := context.WithCancel(ctx)
	p := newPipe(ctx)
	go func() {
		err := w.networks[address].Serve(ctx, serverEnd{p})
		p.finish(err)
		w.served <- err
		<-ctx.Done() // what is in the pipe can be read until the client ends
		cancel()
	}()
	return clientEnd{p}, nil
}

func (w *world) remote() bool { return w.recv == there }

func attempt(vertex string, subtask int) job.AttemptID {
	return job.AttemptID{Job: "j", Task: job.TaskID{Vertex: job.VertexID(vertex), Subtask: subtask}, Attempt: 1}
}

func attempts(vertex string, n int) (out []job.AttemptID) {
	for i := range n {
		out = append(out, attempt(vertex, i))
	}
	return out
}

// gate opens the receiving end of subtask i of vertex "r": one edge "e" from n senders of vertex "s".
func (w *world) gate(i, senders, credits int) *Gate {
	g := w.networks[w.recv].OpenGate(attempt("r", i),
		[]GateInput{{Edge: "e", Codec: numbersCodec{}, Senders: attempts("s", senders)}}, credits, func() {})
	w.t.Cleanup(func() { w.networks[w.recv].CloseGate(g) })
	return g
}

// spec is the edge "e" to n receivers.
func (w *world) spec(receivers int) OutputSpec {
	spec := OutputSpec{Edge: "e", Codec: numbersCodec{}}
	for _, a := range attempts("r", receivers) {
		spec.Receivers = append(spec.Receivers, job.Placement{Attempt: a, Address: w.recv})
	}
	return spec
}

// connect opens the sending end of subtask i of vertex "s".
func (w *world) connect(ctx context.Context, i, receivers int) *Outputs {
	w.t.Helper()
	o, err := w.networks[here].Connect(ctx, attempt("s", i), []OutputSpec{w.spec(receivers)}, func(err error) { w.broken <- err })
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(o.Close)
	return o
}

// sendAll sends batches of one number, counting up, on a goroutine until n are sent or there is an error.
func (w *world) sendAll(o *Output, receiver, n int) *sending {
	s := &sending{done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for v := range n {
			if s.err = o.Send(receiver, numbers{int64(v)}); s.err != nil {
				return
			}
			s.sent++
		}
	}()
	return s
}

// sending is looked at only while its goroutine is blocked or done.
type sending struct {
	sent int
	err  error
	done chan struct{}
}

// received is an element in words, with its channel.
func received(channel int, e element.Element) string {
	if e.Kind == element.Records {
		return fmt.Sprintf("%d:%v", channel, []int64(e.Batch.(numbers)))
	}
	return fmt.Sprintf("%d:%s", channel, e)
}

// drain takes all that is there, until nothing more comes without doing anything else.
func drain(t *testing.T, g *Gate) (out []string) {
	t.Helper()
	for {
		synctest.Wait()
		channel, e, ok, err := g.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return out
		}
		out = append(out, received(channel, e))
	}
}
