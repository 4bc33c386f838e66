package timer

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirstream/weir/internal/job"
)

const groups = 8

// rows is a table in a Go map.
type rows struct {
	of    map[Timer[int]]uint64
	fault error
}

func (r *rows) check(hash uint64, t Timer[int]) {
	if job.KeyGroupOf(hash, groups) != job.KeyGroupOf(mix(t.Key), groups) {
		panic("a timer is in another key group than its key")
	}
}

func (r *rows) Get(hash uint64, t Timer[int]) (uint64, bool) {
	r.check(hash, t)
	n, ok := r.of[t]
	return n, ok
}

func (r *rows) Put(hash uint64, t Timer[int], n uint64) { r.check(hash, t); r.of[t] = n }
func (r *rows) Delete(hash uint64, t Timer[int])        { r.check(hash, t); delete(r.of, t) }

func (r *rows) Range(f func(Timer[int], uint64) error) error {
	for t, n := range r.of {
		if err := f(t, n); err != nil {
			return err
		}
	}
	return r.fault
}

func mix(k int) uint64 { return uint64(k) * 0x9E3779B97F4A7C15 }

func newQueue() (*Queue[int], *rows) {
	r := &rows{of: map[Timer[int]]uint64{}}
	return New[int](r, mix, groups, nil), r
}

// The twin is a list in the order of setting, sorted by time when it is asked.
func TestQueue_RandomOperations_EqualsASortedList(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		q, r := newQueue()
		var twin []Timer[int]
		for step := range 20_000 {
			timer := Timer[int]{rng.IntN(20), rng.Int64N(40)}
			phase := step / 2000 % 3 // growing, shrinking, mixed
			switch op := rng.IntN(10); {
			case op < 6-2*phase:
				q.Set(mix(timer.Key), timer.Key, timer.At)
				if !slices.Contains(twin, timer) {
					twin = append(twin, timer)
				}
			case op < 8:
				q.Delete(mix(timer.Key), timer.Key, timer.At)
				twin = slices.DeleteFunc(twin, func(o Timer[int]) bool { return o == timer })
			case op < 9:
				until := rng.Int64N(60) - 5
				got, ok := q.Take(until)
				want, first := earliest(twin)
				if ok != (first >= 0 && want.At <= until) || ok && got != want {
					t.Fatalf("seed %d: took %v, %t until %d, want %v", seed, got, ok, until, want)
				}
				if ok {
					twin = slices.Delete(twin, first, first+1)
				}
			case rng.IntN(20) == 0: // a restore keeps the order, since rows have their numbers
				q = New[int](r, mix, groups, nil)
				if err := q.Load(); err != nil {
					t.Fatal(err)
				}
			}
			at, ok := q.Next()
			if want, first := earliest(twin); ok != (first >= 0) || ok && at != want.At {
				t.Fatalf("seed %d: next is %d, %t, want %v", seed, at, ok, want)
			}
			if q.Len() != len(twin) || len(r.of) != len(twin) {
				t.Fatalf("seed %d: %d timers, %d rows, want %d", seed, q.Len(), len(r.of), len(twin))
			}
		}
	}
}

func earliest(list []Timer[int]) (Timer[int], int) {
	first := -1
	for i, t := range list {
		if first < 0 || cmp.Less(t.At, list[first].At) {
			first = i
		}
	}
	if first < 0 {
		return Timer[int]{}, -1
	}
	return list[first], first
}

// The same timer is set and deleted again and again, as that of an idle time is by every record.
func TestQueue_DeletedTimers_TakeNoRoom(t *testing.T) {
	q, _ := newQueue()
	for i := range 100_000 {
		q.Set(mix(1), 1, int64(i))
		q.Delete(mix(1), 1, int64(i))
		q.Set(mix(2), 2, 7)
		q.Delete(mix(2), 2, 7)
		if len(q.heap) > 3*minStale {
			t.Fatalf("the heap has %d items for no timer", len(q.heap))
		}
	}
	for i := range 100_000 {
		q.Set(mix(i), i, int64(i))
	}
	for range 100_000 - 10 {
		q.Take(1 << 60)
	}
	if cap(q.heap) > 4*minRoom {
		t.Errorf("the heap has room for %d items, %d are left", cap(q.heap), q.Len())
	}
}

func TestQueue_ATimerSetWhileTimersAreTaken_ComesInItsTurn(t *testing.T) {
	q, _ := newQueue()
	q.Set(mix(1), 1, 10)
	q.Set(mix(1), 1, 30)
	var got []int64
	for {
		timer, ok := q.Take(30)
		if !ok {
			break
		}
		got = append(got, timer.At)
		if timer.At == 10 {
			q.Set(mix(1), 1, 20)
			q.Set(mix(1), 1, 5)
			q.Set(mix(1), 1, 31)
		}
	}
	if !slices.Equal(got, []int64{10, 5, 20, 30}) {
		t.Errorf("got %v", got)
	}
}

func TestQueue_LoadOfABrokenTable_IsAnError(t *testing.T) {
	q, r := newQueue()
	r.fault = errors.New("broken")
	if err := q.Load(); !errors.Is(err, r.fault) {
		t.Errorf("got %v", err)
	}
}
