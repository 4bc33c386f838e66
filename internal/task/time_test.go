package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream"
)

// fired is what an operator with timers has emitted, each with the milliseconds since the test began.
type fired struct {
	start time.Time
	mu    struct {
		sync.Mutex
		got []string
	}
}

func (f *fired) Collect(_ stream.Timestamp, v string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.got = append(f.mu.got, fmt.Sprint(v, "@", time.Since(f.start).Milliseconds()))
	return nil
}

// got waits until all that is due now has fired.
func (f *fired) got() []string {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.mu.got)
}

type noSource struct{}

func (noSource) Splits(context.Context, int) ([][]byte, error) { return nil, nil }
func (noSource) Open(stream.SourceEnv) (stream.Reader[string], error) {
	return nil, errors.New("not to be opened")
}

// timed makes the task one of a keyed operator: each record sets an event timer, and a processing timer 100 ms later. again makes an event timer set the next.
func (r *rig) timed(again bool) *fired {
	r.t.Helper()
	j := stream.NewJob("test", nil)
	key := stream.KeyBy(stream.From(j, "src", noSource{}), func(s string) string { return s })
	stream.ProcessWithTimers(key, "op", func(c *stream.Context[string], _ string, _ func(string) error) error {
		c.SetEventTimer(5)
		c.SetProcessingTimer(c.ProcessingTime().Add(100 * time.Millisecond))
		return nil
	}, func(c *stream.Context[string], t stream.Timer, emit func(string) error) error {
		if again && t.Domain == stream.EventTime {
			c.SetEventTimer(t.At + 1)
			return nil
		}
		return emit(fmt.Sprint(c.Key(), []string{"event", "processing"}[t.Domain]))
	})
	if err := j.Err(); err != nil {
		r.t.Fatal(err)
	}
	out, chain := &fired{start: time.Now()}, r.cfg.Chain
	chain.Clock = new(stream.Clock)
	r.cfg.KeyGroups = job.KeyGroupRange{End: 8}
	link, err := j.Nodes()[1].Build(&stream.Env{
		Operator: "op", Running: chain.Running, Clock: chain.Clock, Parallelism: 1, MaxParallelism: 8, KeyGroups: r.cfg.KeyGroups,
	}, []any{stream.Collector[string](out)})
	if err != nil {
		r.t.Fatal(err)
	}
	chain.Operators = []Operator{{"op", link.Operator}}
	in := link.In.(stream.Collector[string])
	chain.Deliver = func(_ int, b element.Batch) error {
		for _, v := range b.(batch) {
			if err := in.Collect(stream.NoTimestamp, v); err != nil {
				return err
			}
		}
		return nil
	}
	return out
}

func (f *fired) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := f.got(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTimers_OfATask_FireByItsClock_AndAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0)
		out := r.timed(false)
		r.start()
		r.in.put(0, recordsOf("a"))
		time.Sleep(30 * time.Millisecond)
		r.in.put(1, recordsOf("b"))
		time.Sleep(69 * time.Millisecond)
		out.expect(t)
		time.Sleep(time.Millisecond)
		out.expect(t, "aprocessing@100")
		time.Sleep(30 * time.Millisecond)
		out.expect(t, "aprocessing@100", "bprocessing@130")
		r.in.put(0, recordsOf("c"))
		r.both(element.Element{Kind: element.EndOfData})
		time.Sleep(time.Second)
		events := slices.Sorted(slices.Values(out.got()[2:]))
		if want := []string{"aevent@130", "bevent@130", "cevent@130"}; !slices.Equal(events, want) {
			t.Errorf("at the end fire %q, want the event timers alone", events)
		}
	})
}

func TestTimers_BehindTheBarrierOfAStop_DoNotFire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0)
		out := r.timed(false)
		r.start()
		r.in.put(0, recordsOf("a"))
		synctest.Wait()
		stop := barrierOf(4)
		stop.Checkpoint.Stop = job.StopSuspend
		r.both(stop)
		time.Sleep(time.Second)
		out.expect(t)
		r.post(Aborted{ID: 4})
		time.Sleep(time.Millisecond)
		out.expect(t, "aprocessing@1000") // the job goes on
	})
}

func TestTimers_ThatNeverEnd_LetTheTaskBeCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0)
		r.timed(true)
		r.start()
		r.in.put(0, recordsOf("a"))
		r.both(element.Element{Kind: element.EndOfData})
		if err := r.stop(); !errors.Is(err, errStop) {
			t.Errorf("Run returned %v", err)
		}
	})
}
