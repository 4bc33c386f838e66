package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/slotpool"
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
}

// registry knows the sessions; the pool has their slots.
type registry struct {
	m        *master
	sessions []*session // ascending by executor
	pool     slotpool.Pool
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
	r.pool.Add(slotpool.Executor{ID: x.id, Address: string(x.id), Slots: x.slots, Jobs: []string{simName}})
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
	r.pool.Remove(s.executor.id)
	r.m.executorLost(s, message)
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

// simName is the name of the jobs, of which one is there at a time.
const simName = "sim"

func (r *registry) request(q slotpool.Request) {
	q.Job, q.Name, q.Order = r.m.s.job, simName, 1
	if g := r.pool.Request(q); q.Count > 0 {
		r.m.granted(g)
	}
}

func (r *registry) release() { r.pool.Release(r.m.s.job) }

func (r *registry) serve() {
	r.pool.Serve(func(_ job.ID, g slotpool.Grant) { r.m.granted(g) })
}

func (r *registry) session(id job.ExecutorID) *session {
	for _, s := range r.sessions {
		if s.executor.id == id {
			return s
		}
	}
	return nil
}
