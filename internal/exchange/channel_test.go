package exchange

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/job"
)

func barrier(id int64) element.Element {
	return element.Element{Kind: element.Barrier, Checkpoint: element.Checkpoint{ID: id, Timestamp: 1700000000123, Dir: "j/chk-1", Base: 3, Format: job.FormatNative}}
}

var end = element.Element{Kind: element.EndOfData}
var closing = element.Element{Kind: element.Closed}

// must fails the test on an error of a call that is expected to succeed.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestChannel_KeepsTheOrderOfBatchesAndEvents(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		const senders, receivers, batches = 2, 3, 40
		var gates []*Gate
		for i := range receivers {
			gates = append(gates, w.gate(i, senders, 3))
		}
		for s := range senders {
			o := w.connect(t.Context(), s, receivers).Outputs[0]
			go func() {
				for v := range batches {
					for r := range receivers {
						if err := o.Send(r, numbers{int64(v), int64(s)}); err != nil {
							t.Error(err)
						}
					}
					if v%10 == 9 {
						if err := o.Broadcast(barrier(int64(v))); err != nil {
							t.Error(err)
						}
					}
				}
				if err := o.Broadcast(element.Element{Kind: element.Cancel, Checkpoint: element.Checkpoint{ID: 77}}); err != nil {
					t.Error(err)
				}
				if err := o.Broadcast(end); err != nil {
					t.Error(err)
				}
			}()
		}
		got := make([]map[int][]string, receivers)
		for i := range got {
			got[i] = map[int][]string{}
		}
		for more := true; more; {
			more = false
			synctest.Wait()
			for i, g := range gates {
				channel, e, ok, err := g.Next()
				must(t, err)
				if ok {
					more = true
					got[i][channel] = append(got[i][channel], received(channel, e))
				}
			}
		}
		for i := range receivers {
			for s := range senders {
				var want []string
				for v := range batches {
					want = append(want, fmt.Sprintf("%d:[%d %d]", s, v, s))
					if v%10 == 9 {
						want = append(want, fmt.Sprintf("%d:barrier(%d)", s, v))
					}
				}
				want = append(want, fmt.Sprintf("%d:cancel(77)", s), fmt.Sprintf("%d:end-of-data", s))
				if !slices.Equal(got[i][s], want) {
					t.Errorf("receiver %d, sender %d:\n got %v\nwant %v", i, s, got[i][s], want)
				}
			}
		}
	})
}

func TestChannel_EventsArriveAsTheyWereSent(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		g := w.gate(0, 1, 1)
		o := w.connect(t.Context(), 0, 1).Outputs[0]
		final := barrier(9)
		final.Checkpoint.Final = true
		sent := []element.Element{barrier(8), final, {Kind: element.Cancel, Checkpoint: element.Checkpoint{ID: 10}}, end}
		for _, e := range sent {
			must(t, o.Broadcast(e))
		}
		synctest.Wait()
		for _, want := range sent {
			if _, got, ok, err := g.Next(); got != want || !ok || err != nil {
				t.Errorf("got %+v, %v, %v, want %+v", got, ok, err, want)
			}
		}
	})
}

func TestChannel_NeverHoldsMoreThanItsCredit(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		for receiver, credits := range []int{1, 2, 3, 8} {
			g := w.gate(receiver, 1, credits)
			o, err := w.networks[here].Connect(t.Context(), attempt("s", 0),
				[]OutputSpec{{Edge: "e", Codec: numbersCodec{}, Receivers: w.spec(4).Receivers[receiver : receiver+1]}}, func(error) {})
			must(t, err)
			s := w.sendAll(o.Outputs[0], 0, 50)
			synctest.Wait()
			if s.sent != credits {
				t.Fatalf("%d batches were sent with %d credits", s.sent, credits)
			}
			for taken := range 50 {
				_, e, ok, err := g.Next()
				if !ok || err != nil || e.Batch.(numbers)[0] != int64(taken) {
					t.Fatalf("batch %d with %d credits: got %v, %v, %v", taken, credits, e, ok, err)
				}
				synctest.Wait()
				if s.sent > taken+1+credits {
					t.Fatalf("%d batches were sent when %d were taken, with %d credits", s.sent, taken+1, credits)
				}
			}
			if s.sent != 50 || s.err != nil {
				t.Fatalf("%d of 50 batches were sent: %v", s.sent, s.err)
			}
			o.Close()
		}
	})
}

func TestChannel_ThatIsStalled_DoesNotHoldUpAnother(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.gate(0, 1, 8) // nobody reads it
		g := w.gate(1, 1, 2)
		o := w.connect(t.Context(), 0, 2).Outputs[0]
		must(t, w.fill(o, 0, 8))
		s := w.sendAll(o, 1, 100)
		if got := drain(t, g); len(got) != 100 || s.err != nil {
			t.Errorf("%d of 100 batches arrived: %v", len(got), s.err)
		}
	})
}

// fill sends n batches and returns when they are sent.
func (w *world) fill(o *Output, receiver, n int) error {
	s := w.sendAll(o, receiver, n)
	synctest.Wait()
	select {
	case <-s.done:
		return s.err
	default:
		return fmt.Errorf("only %d of %d batches could be sent", s.sent, n)
	}
}

func TestChannel_EventsNeedNoCredit(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		g := w.gate(0, 1, 2)
		o := w.connect(t.Context(), 0, 1).Outputs[0]
		must(t, w.fill(o, 0, 2))
		must(t, o.Broadcast(barrier(1)))
		must(t, o.Broadcast(end))
		want := []string{"0:[0]", "0:[1]", "0:barrier(1)", "0:end-of-data"}
		if got := drain(t, g); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestGate_BlockedChannelKeepsItsElements(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		g := w.gate(0, 3, 4)
		for i := range 3 {
			must(t, w.fill(w.connect(t.Context(), i, 1).Outputs[0], 0, 2))
		}
		g.Block(1) // it is in the turn already
		if got, want := drain(t, g), []string{"0:[0]", "2:[0]", "0:[1]", "2:[1]"}; !slices.Equal(got, want) {
			t.Errorf("while channel 1 is blocked: got %v, want %v", got, want)
		}
		g.Block(2)
		g.Unblock()
		if got, want := drain(t, g), []string{"1:[0]", "1:[1]"}; !slices.Equal(got, want) {
			t.Errorf("after Unblock: got %v, want %v", got, want)
		}
	})
}

func TestGate_TakesChannelsInFixedRotation(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		g := w.gate(0, 3, 4)
		for i := range 3 {
			must(t, w.fill(w.connect(t.Context(), i, 1).Outputs[0], 0, 4-i))
		}
		want := []string{"0:[0]", "1:[0]", "2:[0]", "0:[1]", "1:[1]", "2:[1]", "0:[2]", "1:[2]", "0:[3]"}
		if got := drain(t, g); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestSender_ThatEndsInGoodOrder_IsNoLoss(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		g := w.gate(0, 1, 2)
		o := w.connect(t.Context(), 0, 1)
		must(t, w.fill(o.Outputs[0], 0, 2))
		must(t, o.Outputs[0].Broadcast(end))
		must(t, o.Outputs[0].Broadcast(barrier(3)))
		must(t, o.Outputs[0].Broadcast(closing))
		o.Finish()
		o.Close()
		want := []string{"0:[0]", "0:[1]", "0:end-of-data", "0:barrier(3)", "0:closed"}
		if got := drain(t, g); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if n := len(w.broken); n > 0 {
			t.Errorf("broken was called: %v", <-w.broken)
		}
		if w.remote() {
			must(t, <-w.served)
			if n := w.buffers.outstanding(); n > 0 {
				t.Errorf("%d buffers were not given back", n)
			}
		}
	})
}

// TestSender_ThatIsLostAfterItsEndOfData_IsALoss: a barrier of it may be waited for.
func TestSender_ThatIsLostAfterItsEndOfData_IsALoss(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		g := w.gate(0, 1, 2)
		o := w.connect(t.Context(), 0, 1)
		must(t, o.Outputs[0].Broadcast(end))
		synctest.Wait()
		o.Close()
		synctest.Wait()
		if channel, e, ok, err := g.Next(); err != nil || !ok || received(channel, e) != "0:end-of-data" {
			t.Errorf("what came before the loss: %v, %v, %v", e, ok, err)
		}
		if _, _, _, err := g.Next(); err == nil || !strings.Contains(err.Error(), "r[0]#1 lost its sender s[0]#1") {
			t.Errorf("got %v, want an error that names the sender", err)
		}
	})
}

// TestGate_RefusesWhatCannotBe: after Closed nothing comes, and Closed comes behind the end of data, or behind the barrier of a checkpoint that stops
// the job.
func TestGate_RefusesWhatCannotBe(t *testing.T) {
	g := newGate(attempt("r", 0), []GateInput{{Edge: "e", Senders: attempts("s", 1)}}, 2, func() {})
	if err := g.put(0, closing); err == nil {
		t.Error("Closed is taken before the end of data")
	}
	must(t, g.put(0, end))
	must(t, g.put(0, closing))
	for _, e := range []element.Element{closing, barrier(1), end} {
		if err := g.put(0, e); err == nil {
			t.Errorf("%s is taken behind Closed", e)
		}
	}

	g = newGate(attempt("r", 0), []GateInput{{Edge: "e", Senders: attempts("s", 1)}}, 2, func() {})
	must(t, g.put(0, stopping(1)))
	must(t, g.put(0, records(1)))
	if err := g.put(0, closing); err == nil {
		t.Error("Closed is taken behind records, the stop of the job has failed")
	}
	must(t, g.put(0, stopping(2)))
	must(t, g.put(0, closing))
}

func TestSender_ThatIsLost_IsNamed(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		g := w.gate(0, 2, 2)
		o := w.connect(t.Context(), 1, 1)
		must(t, w.fill(o.Outputs[0], 0, 1))
		synctest.Wait()
		o.Close()
		synctest.Wait()
		if channel, e, ok, err := g.Next(); err != nil || !ok || received(channel, e) != "1:[0]" {
			t.Errorf("what came before the loss: %v, %v, %v", e, ok, err)
		}
		_, _, ok, err := g.Next()
		if ok || err == nil || !strings.Contains(err.Error(), "r[0]#1 lost its sender s[1]#1") {
			t.Errorf("got %v, %v, want an error that names the sender", ok, err)
		}
	})
}

func TestSender_LearnsThatItsReceiverHasEnded(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		g := w.gate(0, 1, 2)
		o := w.connect(t.Context(), 0, 1)
		s := w.sendAll(o.Outputs[0], 0, 10)
		synctest.Wait()
		w.networks[w.recv].CloseGate(g)
		<-s.done
		if s.sent != 2 || !errors.Is(s.err, ErrClosed) || !strings.Contains(s.err.Error(), "r[0]#1") {
			t.Errorf("after %d batches: %v, want ErrClosed with the receiver's name", s.sent, s.err)
		}
		if err := o.Outputs[0].Send(0, numbers{1}); !errors.Is(err, ErrClosed) {
			t.Errorf("the next Send: %v, want ErrClosed", err)
		}
		synctest.Wait()
		if w.remote() != (len(w.broken) == 1) {
			t.Errorf("broken was called %d times", len(w.broken))
		}
	})
}

func TestSender_DoesNotCareForAReceiverThatHasGotEverything(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		g := w.gate(0, 1, 2)
		o := w.connect(t.Context(), 0, 1)
		must(t, o.Outputs[0].Broadcast(end))
		drain(t, g)
		w.networks[w.recv].CloseGate(g)
		synctest.Wait()
		must(t, o.Outputs[0].Broadcast(barrier(1)))
		must(t, o.Outputs[0].Broadcast(closing))
		o.Finish()
		o.Close()
		if len(w.broken) > 0 {
			t.Errorf("broken was called: %v", <-w.broken)
		}
	})
}

func TestSender_ThatIsCanceled_NoLongerWaitsForCredit(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.gate(0, 1, 1)
		ctx, cancel := context.WithCancelCause(t.Context())
		o := w.connect(ctx, 0, 1)
		s := w.sendAll(o.Outputs[0], 0, 10)
		synctest.Wait()
		cause := errors.New("canceled by somebody")
		cancel(cause)
		<-s.done
		if !errors.Is(s.err, cause) {
			t.Errorf("got %v, want the cause", s.err)
		}
		synctest.Wait()
		if len(w.broken) > 0 {
			t.Errorf("broken was called: %v", <-w.broken)
		}
	})
}

func TestReceiver_MayBeDeployedAfterItsSender(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		done := make(chan *Outputs)
		go func() {
			o := w.connect(t.Context(), 0, 1)
			if err := o.Outputs[0].Send(0, numbers{42}); err != nil {
				t.Error(err)
			}
			done <- o
		}()
		time.Sleep(awaitGate - time.Second)
		g := w.gate(0, 1, 1)
		<-done
		if got, want := drain(t, g), []string{"0:[42]"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestReceiver_ThatIsNotDeployedInTime_IsAnErrorOfTheSender(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		start := time.Now()
		o, err := w.networks[here].Connect(t.Context(), attempt("s", 0), []OutputSpec{w.spec(1)}, func(err error) { w.broken <- err })
		if w.remote() {
			must(t, err)
			err = <-w.broken
			o.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "task r[0]#1 did not start") {
			t.Errorf("got %v, want an error that names the receiver", err)
		}
		if waited := time.Since(start); waited != awaitGate {
			t.Errorf("waited %v, want %v", waited, awaitGate)
		}
		if n := len(w.networks[w.recv].mu.waiters); n > 0 {
			t.Errorf("%d attempts are still waited for", n)
		}
	})
}

func TestChannel_CannotBeConnectedTwice(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		g := w.gate(0, 1, 2)
		first := w.connect(t.Context(), 0, 1)
		synctest.Wait()
		_, err := w.networks[here].Connect(t.Context(), attempt("s", 0), []OutputSpec{w.spec(1)}, func(err error) { w.broken <- err })
		if w.remote() {
			must(t, err)
			err = <-w.broken
		}
		if err == nil || !strings.Contains(err.Error(), "connected already") {
			t.Errorf("got %v, want a refusal", err)
		}
		must(t, w.fill(first.Outputs[0], 0, 1))
		if got := drain(t, g); len(got) != 1 {
			t.Errorf("the first connection does not work any more: %v", got)
		}
	})
}

func TestGate_KnowsTheEdgeOfAChannel(t *testing.T) {
	g := newGate(attempt("r", 0), []GateInput{
		{Edge: "a", Senders: attempts("s", 2)}, {Edge: "b", Senders: attempts("q", 1)}, {Edge: "c", Senders: attempts("p", 3)},
	}, 1, func() {})
	want := []int{0, 0, 1, 2, 2, 2}
	for channel, edge := range want {
		if got := g.InputOf(channel); got != edge {
			t.Errorf("channel %d is of edge %d, want %d", channel, got, edge)
		}
	}
	if g.Channels() != len(want) || g.InputOf(len(want)) != -1 {
		t.Errorf("%d channels, behind the last is edge %d", g.Channels(), g.InputOf(len(want)))
	}
}

// BenchmarkLocalChannel hands batches over between two goroutines.
func BenchmarkLocalChannel(b *testing.B) {
	n := NewNetwork(Config{Address: here})
	wake := make(chan struct{}, 1)
	g := n.OpenGate(attempt("r", 0), []GateInput{{Edge: "e", Senders: attempts("s", 1)}}, 8, func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	defer n.CloseGate(g)
	o, err := n.Connect(b.Context(), attempt("s", 0),
		[]OutputSpec{{Edge: "e", Receivers: []job.Placement{{Attempt: attempt("r", 0), Address: here}}}}, func(error) {})
	if err != nil {
		b.Fatal(err)
	}
	defer o.Close()
	done := make(chan error)
	b.ReportAllocs()
	b.ResetTimer()
	go func() {
		batch := numbers{1}
		for range b.N {
			if err := o.Outputs[0].Send(0, batch); err != nil {
				done <- err
				return
			}
		}
		done <- o.Outputs[0].Broadcast(end)
	}()
	for {
		_, e, ok, err := g.Next()
		if err != nil {
			b.Fatal(err)
		}
		if e.Kind == element.EndOfData {
			break
		}
		if !ok {
			<-wake
		}
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}
