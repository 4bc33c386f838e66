package sim

import (
	"errors"
	"time"
)

// What callers get when a call has no answer.
var (
	errTimeout  = errors.New("no answer in time")
	errCanceled = errors.New("the call was given up")
	errBroken   = errors.New("the connection broke")
	errRefused  = errors.New("no job master is there")
)

// senderCapacity is how many calls may wait for one executor.
const senderCapacity = 256

// call is a call of the job master to an executor.
type call struct {
	what string
	do   func(x *executor)
	done func(err error) // on the loop
	// ordered: it is never overtaken. Others may come late, when their caller has given up and has sent the next: a server handles calls
	// side by side. A deployment must not, and executors see to that.
	ordered bool
}

// sender makes the calls of one execution to one executor, one after another.
type sender struct {
	m       *master
	session *session
	calls   []call
	busy    func(error) // ends the call that is under way; nil: none
	stopped bool
}

// send queues a call; false: too many wait.
func (s *sender) send(c call) bool {
	if len(s.calls) >= senderCapacity {
		return false
	}
	s.calls = append(s.calls, c)
	s.pump()
	return true
}

// stop forgets the calls that wait and gives up the one that is under way, which may have been done.
func (s *sender) stop() {
	if s.stopped {
		return
	}
	s.stopped = true
	if end := s.busy; end != nil {
		s.m.s.after(0, "call given up", func() { end(errCanceled) })
	}
}

func (s *sender) pump() {
	if s.busy != nil || s.stopped || s.session.over || s.m.life.over || len(s.calls) == 0 {
		return
	}
	c := s.calls[0]
	s.calls = s.calls[1:]
	over := false
	s.busy = func(err error) {
		if over {
			return
		}
		over = true
		s.busy = nil
		s.m.take(func() { c.done(err) })
		s.pump()
	}
	s.transmit(c, s.busy)
}

// transmit carries a request and its answer. Requests of one session arrive in their order, but for those that are overtaken.
func (s *sender) transmit(c call, end func(error)) {
	sim, x, session := s.m.s, s.session.executor, s.session
	sim.after(callTimeout, c.what+" times out", func() { end(errTimeout) })
	if sim.fault("request lost", sim.cfg.Faults.RequestLost) {
		return
	}
	arrival := sim.now.Add(sim.latency())
	if arrival.Before(session.lastArrival) {
		arrival = session.lastArrival
	}
	if !c.ordered && sim.fault("request overtaken", sim.cfg.Faults.Slow/4) {
		arrival = arrival.Add(callTimeout/2 + sim.upTo(callTimeout))
	} else {
		session.lastArrival = arrival
	}
	twice := sim.fault("request repeated", sim.cfg.Faults.Duplicate)
	lost := sim.fault("answer lost", sim.cfg.Faults.AnswerLost)
	sim.after(arrival.Sub(sim.now), c.what, func() {
		if !x.reaches(session) {
			return
		}
		c.do(x)
		if twice {
			c.do(x)
		}
		if !lost {
			sim.after(sim.latency(), c.what+" answered", func() { end(nil) })
		}
	})
}

// call carries a call of an executor to the job master that is there when it arrives, which may be another one than the executor knows. done is
// called once, if the incarnation still lives.
func (x *executor) call(what string, do func(m *master), done func(err error)) {
	s, incarnation, over := x.s, x.incarnation, false
	end := func(err error) {
		if !over && x.alive && x.incarnation == incarnation {
			over = true
			done(err)
		}
	}
	s.after(callTimeout, what+" times out", func() { end(errTimeout) })
	if x.partitioned || s.fault("request lost", s.cfg.Faults.RequestLost) {
		return
	}
	lost := s.fault("answer lost", s.cfg.Faults.AnswerLost)
	s.after(s.latency(), what, func() {
		var err error
		m := s.master
		if m.life.over {
			err = errRefused
		} else {
			do(m)
		}
		if !lost && !x.partitioned && (err != nil || !m.life.over) {
			s.after(s.latency(), what+" answered", func() { end(err) })
		}
	})
	if s.fault("request repeated", s.cfg.Faults.Duplicate) {
		s.after(s.latency()+s.upTo(2*time.Second), what+" again", func() {
			if !s.master.life.over {
				do(s.master)
			}
		})
	}
}

// latency of one way.
func (s *Sim) latency() time.Duration {
	d := 100*time.Microsecond + s.upTo(2*time.Millisecond)
	if s.chance(s.cfg.Faults.Slow) {
		d += s.upTo(800 * time.Millisecond)
	}
	return d
}
