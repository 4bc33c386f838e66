package stream

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/job"
)

// alarmed is an operator with timers that does what a test says.
type alarmed struct {
	*processOperator[int, int, string]
	in    Collector[int]
	out   *collecting[string]
	do    func(c *Context[int])
	fired func(c *Context[int], ns string, t Timer) error
}

func (a *alarmed) process(c *Context[int], _ int, _ func(string) error) error {
	a.do(c)
	return nil
}

func (a *alarmed) at(t *testing.T, key int, do func(c *Context[int])) {
	t.Helper()
	a.do = do
	if err := a.in.Collect(1, key); err != nil {
		t.Fatal(err)
	}
}

// advance fires event timers up to ts.
func (a *alarmed) advance(t *testing.T, ts Timestamp) {
	t.Helper()
	for {
		more, err := a.AdvanceWatermark(ts)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return
		}
	}
}

// tick fires processing timers up to now.
func (a *alarmed) tick(t *testing.T, now Timestamp) (next Timestamp) {
	t.Helper()
	a.env.Clock.Set(time.UnixMilli(int64(now)))
	for {
		next, err := a.Tick()
		if err != nil {
			t.Fatal(err)
		}
		if next > now {
			return next
		}
	}
}

func newAlarmed(t *testing.T, groups job.KeyGroupRange, namespaces bool, states ...State[int]) *alarmed {
	t.Helper()
	a := &alarmed{out: &collecting[string]{}, fired: func(*Context[int], string, Timer) error { return nil }}
	j := NewJob("test", nil)
	keyed := byItself(From(j, "source", nowhere[int]{}))
	emit := func(c *Context[int], ns string, t Timer, emit func(string) error) error {
		domain := map[TimeDomain]string{EventTime: "e", ProcessingTime: "p"}[t.Domain]
		if err := emit(fmt.Sprint(c.Key(), ns, domain, t.At)); err != nil {
			return err
		}
		return a.fired(c, ns, t)
	}
	var s Stream[string]
	if namespaces {
		s = ProcessWithTimersIn(keyed, "op", a.process, emit, states...)
	} else {
		s = ProcessWithTimers(keyed, "op", a.process, func(c *Context[int], t Timer, e func(string) error) error { return emit(c, "", t, e) }, states...)
	}
	if err := j.Err(); err != nil {
		t.Fatal(err)
	}
	env := testEnv("op")
	env.KeyGroups = groups
	link := must(s.node.Build(env, []any{Collector[string](a.out)}))(t)
	a.in, a.processOperator = link.In.(Collector[int]), link.Operator.(*processOperator[int, int, string])
	return a
}

func (a *alarmed) open(t *testing.T) *alarmed {
	t.Helper()
	if err := a.Open(); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestTimers_FireOnceInTheOrderOfTheirTimes(t *testing.T) {
	a := newAlarmed(t, allGroups(), false).open(t)
	for i, at := range []Timestamp{30, 10, 20, 10, 30} {
		a.at(t, 1+i%2, func(c *Context[int]) {
			c.SetEventTimer(at)
			c.SetProcessingTimer(at + 5)
			c.SetEventTimer(at) // twice is once
			if c.Watermark() != NoTimestamp || c.ProcessingTime() != 0 {
				t.Errorf("it is %d and %d at first", c.Watermark(), c.ProcessingTime())
			}
		})
	}
	a.at(t, 2, func(c *Context[int]) { c.DeleteEventTimer(10); c.DeleteProcessingTimer(99) })
	a.advance(t, 9)
	expect := func(want ...string) {
		t.Helper()
		var got []string
		for _, r := range a.out.got {
			got = append(got, fmt.Sprint(r.v, "@", max(r.ts, -1)))
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		a.out.got = nil
	}
	expect()
	a.advance(t, 29)
	expect("1e20@20")
	if next := a.tick(t, 25); next != 35 {
		t.Errorf("next is %d, want 35", next)
	}
	expect("2p15@-1", "1p25@-1")
	a.advance(t, 20) // a watermark does not go back
	a.fired = func(c *Context[int], _ string, t Timer) error {
		if c.Watermark() != MaxTimestamp {
			return fmt.Errorf("the watermark is %d at the end", c.Watermark())
		}
		if t.At < 40 {
			c.SetEventTimer(t.At.Add(7 * time.Millisecond)) // fires too
		}
		return nil
	}
	a.advance(t, MaxTimestamp)
	expect("1e30@30", "1e37@37", "1e44@44")
	if next := a.tick(t, 34); next != 35 {
		t.Errorf("the end of the input has fired processing timers: next is %d", next)
	}
}

func TestTimers_AreFiredAFewAtATime(t *testing.T) {
	a := newAlarmed(t, allGroups(), false).open(t)
	const n = 3*maxTimersAtOnce + 7
	for i := range n {
		a.at(t, i, func(c *Context[int]) { c.SetEventTimer(1); c.SetProcessingTimer(1) })
	}
	a.env.Clock.Set(time.UnixMilli(50))
	for calls := 1; ; calls++ {
		next, err := a.Tick()
		if err != nil || len(a.out.got) != min(calls*maxTimersAtOnce, n) {
			t.Fatalf("%d timers were fired by %d calls, %v", len(a.out.got), calls, err)
		}
		if next == MaxTimestamp {
			break
		}
	}
	a.out.got = nil
	for calls := 1; ; calls++ {
		more, err := a.AdvanceWatermark(2)
		if err != nil || len(a.out.got) != min(calls*maxTimersAtOnce, n) {
			t.Fatalf("%d timers were fired by %d calls, %v", len(a.out.got), calls, err)
		}
		if !more {
			break
		}
	}
}

func TestTimers_ErrorsNameTheOperator(t *testing.T) {
	a := newAlarmed(t, allGroups(), false).open(t)
	broken := errors.New("broken")
	a.fired = func(*Context[int], string, Timer) error { return broken }
	a.at(t, 4, func(c *Context[int]) { c.SetEventTimer(1); c.SetProcessingTimer(1) })
	_, event := a.AdvanceWatermark(1)
	a.env.Clock.Set(time.UnixMilli(1))
	_, processing := a.Tick()
	for _, err := range []error{event, processing} {
		var op *OperatorError
		if !errors.Is(err, broken) || !errors.As(err, &op) || op.Operator != "op" {
			t.Errorf("got %v", err)
		}
	}
	if a.RunningKey() != "4" {
		t.Errorf("the key in work is %s", a.RunningKey())
	}
}

func TestTimers_WhereThereAreNone_SaySo(t *testing.T) {
	refused := func(want string, f func()) {
		t.Helper()
		defer func() {
			if r := fmt.Sprint(recover()); !strings.Contains(r, want) {
				t.Errorf("got %v, want %s", r, want)
			}
		}()
		f()
	}
	d := drive(t, allGroups())
	refused("use ProcessWithTimers", func() { d.at(t, 1, func(c *Context[int]) { c.SetEventTimer(1) }) })
	refused("namespace of type string", func() { d.at(t, 1, func(c *Context[int]) { In(c, "x") }) })
	a := newAlarmed(t, allGroups(), true).open(t)
	refused("ProcessWithTimersIn", func() { a.at(t, 1, func(c *Context[int]) { c.SetEventTimer(1) }) })

	j := NewJob("test", nil)
	keyed := byItself(From(j, "source", nowhere[int]{}))
	f := func(*Context[int], int, func(string) error) error { return nil }
	ProcessWithTimers(keyed, "a", f, nil)
	ProcessWithTimersIn[int, string](keyed, "b", f, nil)
	ProcessWithTimersIn(keyed, "c", f, func(*Context[int], float64, Timer, func(string) error) error { return nil })
	for _, want := range []string{"operator a: ProcessWithTimers needs", "operator b: ProcessWithTimersIn needs", `state "_timer_state/event" of operator c: namespace: `} {
		if !strings.Contains(fmt.Sprint(j.Err()), want) {
			t.Errorf("got %v, want %s", j.Err(), want)
		}
	}
}

// set is a timer of the twin.
type set struct {
	key    int
	ns     string
	domain TimeDomain
	at     Timestamp
}

// firstOf gives the timers of a domain up to a time in the order in which they fire but for those of the same time, whose order the twin does not know.
func firstOf(twin map[set]bool, d TimeDomain, until Timestamp) (out []set) {
	for s := range twin {
		if s.domain == d && s.at <= until {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, bySet)
	return out
}

func bySet(a, b set) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.key, b.key), cmp.Compare(a.ns, b.ns))
}

type timerMoment struct {
	moment
	timers map[set]bool
}

// Half of the snapshots are encoded beside the operator.
func TestTimers_RandomOperations_AndRestoresAtAnyParallelism(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	a, twin := newAlarmed(t, allGroups(), true).open(t), map[set]bool{}
	var got []set
	a.fired = func(c *Context[int], ns string, f Timer) error {
		got = append(got, set{c.Key(), ns, f.Domain, f.At})
		return nil
	}
	times := map[TimeDomain]Timestamp{}
	var moments []*timerMoment
	var readers sync.WaitGroup
	for round := range 30 {
		m := &timerMoment{moment{snap: must(a.SnapshotKeyed())(t), data: map[int][]byte{}}, maps.Clone(twin)}
		moments = append(moments, m)
		if round%2 == 0 {
			readers.Go(m.encode)
		}
		for range 400 {
			s := set{rng.IntN(30), fmt.Sprint("n", rng.IntN(3)), TimeDomain(rng.IntN(2)), Timestamp(rng.IntN(500)) + times[0]}
			a.at(t, s.key, func(c *Context[int]) { twin[s] = a.change(In(c, s.ns), s, rng.IntN(3) > 0) })
			maps.DeleteFunc(twin, func(_ set, there bool) bool { return !there })
		}
		d := TimeDomain(round % 2)
		times[d] += Timestamp(rng.IntN(200))
		want := firstOf(twin, d, times[d])
		if got = nil; d == EventTime {
			a.advance(t, times[d])
		} else {
			a.tick(t, times[d])
		}
		if !slices.IsSortedFunc(got, func(a, b set) int { return cmp.Compare(a.at, b.at) }) {
			t.Fatalf("not in the order of time: %v", got)
		}
		slices.SortFunc(got, bySet)
		if !slices.Equal(got, want) {
			t.Fatalf("fired %v\nwant  %v", got, want)
		}
		for _, s := range want {
			delete(twin, s)
		}
	}
	readers.Wait()
	for i, m := range moments {
		if i%2 != 0 {
			m.encode()
		}
		m.restored(t, a.Schemas(), 1+i%3)
	}
}

// change sets or deletes a timer and tells whether it is set now.
func (*alarmed) change(c *Context[Namespaced[int, string]], s set, set bool) bool {
	switch {
	case s.domain == EventTime && set:
		c.SetEventTimer(s.at)
	case s.domain == EventTime:
		c.DeleteEventTimer(s.at)
	case set:
		c.SetProcessingTimer(s.at)
	default:
		c.DeleteProcessingTimer(s.at)
	}
	return set
}

// restored gives the snapshot to as many subtasks and compares what fires.
func (m *timerMoment) restored(t *testing.T, written []StateSchema, parallelism int) {
	t.Helper()
	if m.fault != nil {
		t.Fatal(m.fault)
	}
	left := maps.Clone(m.timers)
	for i := range parallelism {
		groups := job.KeyGroups(i, parallelism, testMaxParallelism)
		a := newAlarmed(t, groups, true)
		for g := groups.Start; g < groups.End; g++ {
			if err := a.RestoreGroup(g, written, m.data[g]); err != nil {
				t.Fatal(err)
			}
		}
		last := NoTimestamp
		a.open(t).fired = func(c *Context[int], ns string, f Timer) error {
			s := set{c.Key(), ns, f.Domain, f.At}
			if !left[s] || f.At < last {
				return fmt.Errorf("%v fires behind %d; is it there: %t", s, last, left[s])
			}
			last = f.At
			delete(left, s)
			return nil
		}
		a.advance(t, MaxTimestamp)
		last = NoTimestamp
		a.tick(t, 1_000_000)
	}
	if len(left) != 0 {
		t.Errorf("no subtask of %d fires %v", parallelism, left)
	}
}
