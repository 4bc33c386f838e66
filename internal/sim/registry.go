package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/scheduler"
)

// session is one registration of an executor.
type session struct {
	m           *master
	executor    *executor
	incarnation int
	over        bool
	heartbeat   time.Time
	lastArrival time.Time // of a request at the executor
	senders     []*sender // that may have a call under way
	used        int       // slots
}

// registry knows the sessions, and the slots of the one job.
type registry struct {
	m        *master
	sessions []*session // ascending by executor
	waiting  struct{ number, count int }
}

// begin registers an incarnation. An older session of the same executor is lost first.
func (r *registry) begin(x *executor, incarnation int) *session {
	for _, old := range r.sessions {
		if old.executor == x {
			if old.incarnation == incarnation {
				return old // the registration came twice
			}
			r.lose(old, "it has registered anew")
			break
		}
	}
	s := &session{m: r.m, executor: x, incarnation: incarnation, heartbeat: r.m.s.now}
	r.sessions = append(r.sessions, s)
	slices.SortFunc(r.sessions, func(a, b *session) int { return cmp.Compare(a.executor.id, b.executor.id) })
	r.m.s.note("registered %s, incarnation %d", x.id, incarnation)
	r.watch(s)
	r.serve()
	return s
}

// watch ends a session without heartbeats.
func (r *registry) watch(s *session) {
	left := s.heartbeat.Add(heartbeatTimeout).Sub(r.m.s.now)
	r.m.s.after(left, "heartbeat check", func() {
		switch {
		case s.over || r.m.life.over:
		case r.m.s.now.Sub(s.heartbeat) >= heartbeatTimeout:
			r.m.take(func() { r.finish(s, "no heartbeat") })
		default:
			r.watch(s)
		}
	})
}

// finish ends a session, unless that has happened already.
func (r *registry) finish(s *session, message string) {
	if !s.over {
		r.lose(s, message)
		r.serve()
	}
}

func (r *registry) lose(s *session, message string) {
	s.over = true
	r.sessions = slices.DeleteFunc(r.sessions, func(o *session) bool { return o == s })
	r.m.feed(scheduler.ExecutorLost{Executor: s.executor.id, Message: message})
	for _, c := range s.senders {
		if end := c.busy; end != nil {
			r.m.s.after(0, "call broken", func() { end(errBroken) })
		}
	}
	x := s.executor
	r.m.s.after(r.m.s.latency(), "session ended", func() {
		if x.alive && x.incarnation == s.incarnation && !x.partitioned {
			x.reset("the session has ended")
		}
	})
}

func (r *registry) touch(x *executor, incarnation int) bool {
	for _, s := range r.sessions {
		if s.executor == x && s.incarnation == incarnation {
			s.heartbeat = r.m.s.now
			return true
		}
	}
	return false
}

func (r *registry) request(number, count int) {
	r.waiting.number, r.waiting.count = number, count
	if free := r.free(); free < count {
		r.m.feed(scheduler.SlotsShort{Required: count, Available: free, Message: fmt.Sprintf("%d of %d slots", free, count)})
		return
	}
	r.serve()
}

func (r *registry) release() {
	r.waiting.count = 0
	for _, s := range r.sessions {
		s.used = 0
	}
}

func (r *registry) free() int {
	free := 0
	for _, s := range r.sessions {
		free += s.executor.slots - s.used
	}
	return free
}

// serve gives all slots of the request or none: each from the executor with the most free ones.
func (r *registry) serve() {
	count := r.waiting.count
	if count == 0 || r.free() < count {
		return
	}
	r.waiting.count = 0
	var out []*session
	for range count {
		best := slices.MinFunc(r.sessions, func(a, b *session) int {
			return cmp.Compare(b.executor.slots-b.used, a.executor.slots-a.used)
		})
		best.used++
		out = append(out, best)
	}
	r.m.granted(r.waiting.number, out)
}
