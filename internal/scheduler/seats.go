package scheduler

import (
	"slices"

	"github.com/weirstream/weir/internal/job"
)

// seats are the slots that the job needs, those that it has and those that it waits for. A task keeps its seat, and a seat the executor that it
// was on if that has a free slot when the seat needs one: a restarted task comes back to where it was.
type seats struct {
	of     map[job.TaskID]int // by task; nil before the first slots have come
	slots  []job.Slot         // by seat: what it has, or had last
	held   []bool             // by seat
	asked  []int              // seats for which slots were requested, ascending
	opened bool               // a request is open
}

func newSeats(g *job.Graph) seats {
	n := g.MaxVertexParallelism()
	return seats{slots: make([]job.Slot, n), held: make([]bool, n)}
}

// begun reports whether slots were ever asked for.
func (s *seats) begun() bool { return s.opened || s.of != nil }

// complete reports whether a region has all its slots.
func (s *seats) complete(r *region) bool {
	for _, t := range r.tasks {
		if s.of == nil || !s.held[s.of[t.attempt.Task]] {
			return false
		}
	}
	return true
}

// wanted are the seats that regions need slots for: those that are not held, and those that no other region is in. The latter are given back with
// the request, since a job that waits for slots must not keep others from having those that it does not use.
func (s *seats) wanted(regions []*region, others []*region) []int {
	if s.of == nil {
		return s.all()
	}
	used := make([]bool, len(s.slots))
	for _, r := range others {
		for _, t := range r.tasks {
			used[s.of[t.attempt.Task]] = true
		}
	}
	var out []int
	for _, r := range regions {
		for _, t := range r.tasks {
			if at := s.of[t.attempt.Task]; !s.held[at] || !used[at] {
				out = append(out, at)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (s *seats) all() []int {
	out := make([]int, len(s.slots))
	for i := range out {
		out[i] = i
	}
	return out
}

// request opens a request for slots for the given seats, in the place of one that may be open.
func (s *seats) request(wanted []int) RequestSlots {
	for _, at := range wanted {
		s.held[at] = false
	}
	s.asked, s.opened = wanted, true
	e := RequestSlots{Count: len(wanted)}
	for at, slot := range s.slots {
		switch {
		case s.held[at]:
			e.Keep = append(e.Keep, slot.Executor)
		case slices.Contains(wanted, at) && slot.Executor != "":
			e.Prefer = append(e.Prefer, slot.Executor)
		}
	}
	return e
}

// missing are the seats without a slot.
func (s *seats) missing() []int {
	var out []int
	for at, held := range s.held {
		if !held {
			out = append(out, at)
		}
	}
	return out
}

// keep gives back all slots that are not in a seat, and withdraws a request that may be open.
func (s *seats) keep() RequestSlots {
	e := s.request(nil)
	s.opened = false
	return e
}

// fill takes the slots that were asked for; false: there are too few.
func (s *seats) fill(g *job.Graph, slots []job.Slot) bool {
	asked := s.asked
	if len(slots) < len(asked) {
		return false
	}
	s.asked, s.opened = nil, false
	if s.of == nil {
		copy(s.slots, slots)
		s.of = place(g, s.slots)
	} else {
		refill(s, g, asked, slots)
	}
	for _, at := range asked {
		s.held[at] = true
	}
	return true
}

// lose takes the slots of an executor out that is gone.
func (s *seats) lose(executor job.ExecutorID) {
	for at := range s.slots {
		if s.slots[at].Executor == executor {
			s.held[at] = false
		}
	}
}

// release forgets all slots and the open request; false: there was nothing.
func (s *seats) release() bool {
	any := s.opened || slices.Contains(s.held, true)
	s.asked, s.opened = nil, false
	clear(s.held)
	return any
}
