package slotpool

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/weirstream/weir/internal/job"
)

func executor(id string, slots int, jobs ...string) Executor {
	return Executor{ID: job.ExecutorID(id), Slots: slots, Jobs: jobs}
}

func executorsOf(g Grant) (out []string) {
	for _, s := range g.Slots {
		out = append(out, string(s.Executor))
	}
	return out
}

func TestPool_SlotsAreSpreadEvenly(t *testing.T) {
	for _, c := range []struct {
		count  int
		prefer map[job.ExecutorID]int
		want   []string
	}{
		{1, nil, []string{"b"}},
		{4, nil, []string{"b", "a", "b", "c"}},
		{6, nil, []string{"b", "a", "b", "c", "a", "b"}},
		{3, map[job.ExecutorID]int{"c": 1}, []string{"c", "b", "a"}},
		{3, map[job.ExecutorID]int{"c": 9}, []string{"c", "c", "b"}},
		{2, map[job.ExecutorID]int{"a": 1, "c": 2, "gone": 1}, []string{"a", "c"}},
		{8, nil, nil},
	} {
		var pool Pool
		for _, s := range []Executor{executor("c", 2, "j"), executor("a", 2, "j"), executor("b", 3, "j"), executor("d", 9, "other")} {
			pool.Add(s)
		}
		got := executorsOf(pool.Request(Request{Job: "x", Name: "j", Count: c.count, Prefer: c.prefer}))
		if !slices.Equal(got, c.want) {
			t.Errorf("%d slots, preferring %v: %v, want %v", c.count, c.prefer, got, c.want)
		}
	}
}

// TestPool_AJobThatRestarts_GetsWhatItHadBeforeOthers: what it does not keep goes back to it if it can be served, else to those that wait.
func TestPool_AJobThatRestarts_GetsWhatItHadBeforeOthers(t *testing.T) {
	var pool Pool
	pool.Add(executor("a", 2, "j"))
	pool.Add(executor("b", 2, "j"))
	pool.Request(Request{Job: "y", Name: "j", Order: 2, Count: 4})
	pool.Request(Request{Job: "x", Name: "j", Order: 1, Count: 2})
	again := Request{Job: "y", Name: "j", Order: 2, Count: 3, Keep: map[job.ExecutorID]int{"a": 1}, Prefer: map[job.ExecutorID]int{"a": 1, "b": 2}}
	if got := executorsOf(pool.Request(again)); !slices.Equal(got, []string{"a", "b", "b"}) {
		t.Errorf("it got %v", got)
	}
	pool.Serve(func(id job.ID, g Grant) { t.Errorf("job %s was told %v", id, g) })
	again.Count = 4 // too many now: it must not keep others from what it gives back
	if got := executorsOf(pool.Request(again)); got != nil {
		t.Errorf("it got %v of 3 free slots", got)
	}
	served := map[job.ID][]string{}
	pool.Serve(func(id job.ID, g Grant) { served[id] = executorsOf(g) })
	if !slices.Equal(served["x"], []string{"b", "a"}) {
		t.Errorf("the job that waits got %v", served["x"])
	}
}

// TestPool_ANewRequest_TakesBackWhatTheOldOneWasGiven: a grant that crosses a new request on its way is of no interest to the job any more.
func TestPool_ANewRequest_TakesBackWhatTheOldOneWasGiven(t *testing.T) {
	var pool Pool
	pool.Add(executor("a", 3, "j"))
	pool.Request(Request{Job: "x", Name: "j", Count: 3, Number: 1})
	if g := pool.Request(Request{Job: "x", Name: "j", Count: 2, Number: 2}); len(g.Slots) != 2 || g.Number != 2 {
		t.Errorf("it got %v", g)
	}
	pool.Each(func(_ Executor, free int) {
		if free != 1 {
			t.Errorf("%d slots are free, want 1", free)
		}
	})
}

// TestPool_SlotsOfAnEarlierSession_AreNotKept: a job that has not heard yet that an executor was lost and came back has nothing there.
func TestPool_SlotsOfAnEarlierSession_AreNotKept(t *testing.T) {
	var pool Pool
	pool.Add(executor("a", 2, "j"))
	pool.Request(Request{Job: "x", Name: "j", Count: 2})
	pool.Remove("a")
	pool.Add(executor("a", 2, "j"))
	again := Request{Job: "x", Name: "j", Count: 2, Keep: map[job.ExecutorID]int{"a": 1}}
	if got := executorsOf(pool.Request(again)); !slices.Equal(got, []string{"a", "a"}) {
		t.Errorf("it got %v", got)
	}
}

func TestPool_ShortMessage(t *testing.T) {
	var pool Pool
	r := Request{Job: "x", Name: "flights", Count: 4}
	if got, want := pool.Request(r).Short.Message, `needs 4 slots on executors that have job "flights"; none is registered with it`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	pool.Add(executor("a", 2, "flights"))
	pool.Add(executor("b", 2, "flights"))
	pool.Request(Request{Job: "y", Name: "flights", Count: 1})
	want := `needs 4 slots on executors that have job "flights"; 2 registered with it, 3 of 4 slots free (1 used by job y)`
	if got := pool.Request(r).Short.Message; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPool_SlotsAreNeverGivenTwice runs random requests, releases and losses, and checks after each that no executor gives more than it has,
// that grants are whole, and that nobody waits who could be served.
func TestPool_SlotsAreNeverGivenTwice(t *testing.T) {
	for seed := range int64(200) {
		random := rand.New(rand.NewSource(seed))
		w := poolWorld{executors: map[job.ExecutorID]Executor{}, held: map[job.ID][]job.Slot{}, counts: map[job.ID]int{}, served: map[job.ID]bool{}}
		for step := range 200 {
			w.step(random, step)
			if fault := w.fault(); fault != "" {
				t.Fatalf("seed %d step %d: %s", seed, step, fault)
			}
		}
	}
}

// poolWorld is what is known of a pool from outside.
type poolWorld struct {
	pool      Pool
	executors map[job.ExecutorID]Executor
	held      map[job.ID][]job.Slot
	counts    map[job.ID]int  // that the job has or waits for
	served    map[job.ID]bool // its latest request was
}

func (w *poolWorld) step(random *rand.Rand, step int) {
	id := job.ID(fmt.Sprintf("j%d", random.Intn(6)))
	name := job.ExecutorID(fmt.Sprintf("e%d", random.Intn(4)))
	switch _, there := w.executors[name]; random.Intn(4) {
	case 0:
		w.request(id, random, step)
	case 1:
		w.pool.Release(id)
		delete(w.held, id)
		delete(w.counts, id)
	case 2:
		if !there {
			// The address tells a later incarnation from an earlier one.
			w.executors[name] = Executor{ID: name, Address: fmt.Sprintf("%s:%d", name, step), Slots: 1 + random.Intn(3), Jobs: []string{"j"}}
			w.pool.Add(w.executors[name])
		}
	case 3:
		w.pool.Remove(name)
		delete(w.executors, name)
	}
	w.pool.Serve(w.granted)
}

// request keeps some of the slots that a job has, and asks for others.
func (w *poolWorld) request(id job.ID, random *rand.Rand, step int) {
	r := Request{Job: id, Name: "j", Order: int(id[1]), Count: 1 + random.Intn(4), Number: step, Keep: map[job.ExecutorID]int{}, Prefer: map[job.ExecutorID]int{}}
	var kept []job.Slot
	for _, s := range w.held[id] {
		if x, there := w.executors[s.Executor]; random.Intn(2) == 0 {
			r.Prefer[s.Executor]++
		} else if there && x.Address == s.Address {
			r.Keep[s.Executor]++
			kept = append(kept, s)
		}
	}
	w.held[id], w.counts[id] = kept, len(kept)+r.Count
	w.granted(id, w.pool.Request(r))
}

func (w *poolWorld) granted(id job.ID, g Grant) {
	if g.Slots != nil {
		w.held[id] = append(slices.Clone(w.held[id]), g.Slots...)
		w.served[id] = true
	} else {
		w.served[id] = false
	}
}

// fault says which promise the pool does not keep.
func (w *poolWorld) fault() string {
	used := map[string]int{} // by address
	for id, slots := range w.held {
		if w.served[id] && len(slots) != w.counts[id] {
			return fmt.Sprintf("job %s was given %d of %d slots", id, len(slots), w.counts[id])
		}
		for _, s := range slots {
			used[s.Address]++
		}
	}
	free := 0
	for _, x := range w.executors {
		if used[x.Address] > x.Slots {
			return fmt.Sprintf("%d of %d slots of %s are in use", used[x.Address], x.Slots, x.ID)
		}
		free += x.Slots - used[x.Address]
	}
	for _, waiter := range w.pool.waiters {
		if waiter.Count <= free {
			return fmt.Sprintf("job %s waits for %d slots, %d are free", waiter.Job, waiter.Count, free)
		}
	}
	if !slices.IsSortedFunc(w.pool.waiters, func(a, b *waiter) int { return a.Order - b.Order }) {
		return "waiters are not in order of submission"
	}
	return ""
}
