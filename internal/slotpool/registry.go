package slotpool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// Session is one registration of an executor.
type Session struct {
	Registration gateway.Registration
	Client       gateway.TaskExecutor
	registered   time.Time
	end          context.CancelCauseFunc
	ended        <-chan struct{}
	heartbeat    time.Time // guarded by Registry.mu
}

// Ended is closed when the session has ended.
func (s *Session) Ended() <-chan struct{} { return s.ended }

// Over reports that the session has ended.
func (s *Session) Over() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// Holder is a job that has slots or asks for them. The registry calls it under its lock, so it must not wait, nor call the registry.
type Holder interface {
	// ExecutorLost: a session has ended, and with it all that ran there.
	ExecutorLost(s *Session, message string)
	// Granted is news of the request that waits.
	Granted(Allocation)
}

// Allocation is a Grant with the sessions of its slots.
type Allocation struct {
	Grant
	Sessions map[job.ExecutorID]*Session
}

// Registry holds the sessions and the pool.
type Registry struct {
	open sync.WaitGroup // registrations that have not returned
	mu   struct {
		sync.Mutex
		closed   bool
		sessions map[job.ExecutorID]*Session
		pool     Pool
		holders  map[job.ID]Holder
	}
}

// New makes a registry that knows nobody.
func New() *Registry {
	r := &Registry{}
	r.mu.sessions = map[job.ExecutorID]*Session{}
	r.mu.holders = map[job.ID]Holder{}
	return r
}

// Open begins a registration; Close waits until the function that it returns is called.
func (r *Registry) Open() (done func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		return nil, gateway.ShuttingDown()
	}
	r.open.Add(1)
	return r.open.Done, nil
}

// Serve registers an executor, calls registered, and returns why the session has ended: ctx has, there was no heartbeat within the timeout, a
// newer session of the executor has begun, or the session was dropped.
func (r *Registry) Serve(ctx context.Context, g gateway.Registration, client gateway.TaskExecutor, timeout time.Duration, registered func()) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	now := time.Now()
	s := &Session{Registration: g, Client: client, registered: now, heartbeat: now, end: end, ended: ctx.Done()}
	if err := r.begin(s); err != nil {
		return err
	}
	registered()
	err := r.watch(ctx, s, timeout)
	r.finish(s, LostBecause(err))
	return err
}

// LostBecause says in words why a session has ended.
func LostBecause(err error) string {
	if errors.Is(err, context.Canceled) {
		return "its connection broke"
	}
	return err.Error()
}

// begin registers a session. An older one of the same executor is lost first.
func (r *Registry) begin(s *Session) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		return gateway.ShuttingDown()
	}
	g := s.Registration
	if old := r.mu.sessions[g.Executor]; old != nil {
		old.end(&gateway.Error{
			Code: gateway.FailedPrecondition, Reason: gateway.ReasonReplaced,
			Message: fmt.Sprintf("executor %s has registered again, as incarnation %s", g.Executor, g.Incarnation),
			Remedy:  "give each running executor its own id",
		})
		r.lose(old, "it has registered anew")
	}
	r.mu.sessions[g.Executor] = s
	r.mu.pool.Add(Executor{ID: g.Executor, Address: g.Address, Slots: g.Slots, Jobs: g.Jobs})
	r.serve()
	return nil
}

// watch returns why the session has ended.
func (r *Registry) watch(ctx context.Context, s *Session, timeout time.Duration) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
		left := time.Until(r.lastHeartbeat(s).Add(timeout))
		if left <= 0 {
			return &gateway.Error{
				Code: gateway.Unavailable, Message: fmt.Sprintf("no heartbeat of executor %s within %s", s.Registration.Executor, timeout),
				Remedy: "it must register again",
			}
		}
		timer.Reset(left)
	}
}

// Drop ends a session for a cause.
func (r *Registry) Drop(s *Session, cause *gateway.Error) {
	s.end(cause)
	r.finish(s, cause.Message)
}

// finish ends a session, unless a newer one has done so already.
func (r *Registry) finish(s *Session, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.sessions[s.Registration.Executor] == s {
		r.lose(s, message)
		r.serve()
	}
}

// lose takes a session out and tells the jobs. The lock is held.
func (r *Registry) lose(s *Session, message string) {
	delete(r.mu.sessions, s.Registration.Executor)
	r.mu.pool.Remove(s.Registration.Executor)
	for _, h := range r.mu.holders {
		h.ExecutorLost(s, message)
	}
}

// serve gives slots to those that wait. The lock is held.
func (r *Registry) serve() {
	r.mu.pool.Serve(func(id job.ID, g Grant) {
		if h := r.mu.holders[id]; h != nil {
			h.Granted(r.allocation(g))
		}
	})
}

func (r *Registry) allocation(g Grant) Allocation {
	a := Allocation{Grant: g, Sessions: map[job.ExecutorID]*Session{}}
	for _, s := range g.Slots {
		a.Sessions[s.Executor] = r.mu.sessions[s.Executor]
	}
	return a
}

// Attach lets a job hear of executors and ask for slots; Detach ends that and gives its slots back.
func (r *Registry) Attach(id job.ID, h Holder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.holders[id] = h
}

// Detach is the end of Attach.
func (r *Registry) Detach(id job.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.mu.holders, id)
	r.mu.pool.Release(id)
	r.serve()
}

// Request asks for slots; see Pool.Request. If the request must wait its Holder hears of it again.
func (r *Registry) Request(q Request) Allocation {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.allocation(r.mu.pool.Request(q))
	r.serve() // with what the job has given back
	return a
}

// Release gives all slots of a job back, and withdraws its request.
func (r *Registry) Release(id job.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.pool.Release(id)
	r.serve()
}

// Close ends every registration and waits until they have returned.
func (r *Registry) Close() {
	r.mu.Lock()
	r.mu.closed = true
	for _, s := range r.mu.sessions {
		s.end(gateway.ShuttingDown())
	}
	r.mu.Unlock()
	r.open.Wait()
}

// Touch notes a heartbeat; false: the incarnation is not registered.
func (r *Registry) Touch(id job.ExecutorID, incarnation string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.mu.sessions[id]
	if s == nil || s.Registration.Incarnation != incarnation {
		return false
	}
	s.heartbeat = now
	return true
}

func (r *Registry) lastHeartbeat(s *Session) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return s.heartbeat
}

// With lists the sessions that have a job, and all sessions, ascending by executor id.
func (r *Registry) With(name string) (have []*Session, all []*Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.pool.Each(func(x Executor, _ int) {
		s := r.mu.sessions[x.ID]
		all = append(all, s)
		if x.Has(name) {
			have = append(have, s)
		}
	})
	return have, all
}

// Free is how many slots are free on executors that have a job of this name.
func (r *Registry) Free(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	r.mu.pool.Each(func(x Executor, free int) {
		if x.Has(name) {
			n += free
		}
	})
	return n
}

// List describes all executors, ascending by id.
func (r *Registry) List() []gateway.ExecutorStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []gateway.ExecutorStatus{}
	r.mu.pool.Each(func(x Executor, free int) {
		s := r.mu.sessions[x.ID]
		out = append(out, gateway.ExecutorStatus{
			ID: x.ID, Address: x.Address, Slots: x.Slots, FreeSlots: free, Jobs: x.Jobs,
			Registered: s.registered, Heartbeat: s.heartbeat, Version: s.Registration.Version,
		})
	})
	return out
}
