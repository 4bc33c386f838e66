package jobmaster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// session is one registration of an executor. Its fields but heartbeat never change.
type session struct {
	reg        gateway.Registration
	client     gateway.TaskExecutor
	registered time.Time
	end        context.CancelCauseFunc
	ended      <-chan struct{}
	heartbeat  time.Time // guarded by registry.mu
}

// over reports that the session has ended.
func (s *session) over() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// registry knows the executors that are registered, and their slots. News for jobs is posted under its lock, so that every loop hears of
// them in the order in which they happened; posting never waits.
type registry struct {
	open sync.WaitGroup // registrations that have not returned
	mu   struct {
		sync.Mutex
		closed   bool
		sessions map[job.ExecutorID]*session
		slots    slotTable
		loops    map[job.ID]*inbox // of jobs that run
	}
}

func newRegistry() *registry {
	r := &registry{}
	r.mu.sessions = map[job.ExecutorID]*session{}
	r.mu.loops = map[job.ID]*inbox{}
	return r
}

const reasonShuttingDown = "SHUTTING_DOWN"

var errShutdown = &gateway.Error{
	Code: gateway.Unavailable, Reason: reasonShuttingDown, Message: "the job master is shutting down", Remedy: "try again when one is running",
}

// enter opens a registration; close waits until open.Done is called for it.
func (r *registry) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		return errShutdown
	}
	r.open.Add(1)
	return nil
}

// begin registers a session. An older one of the same executor is lost first.
func (r *registry) begin(s *session) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		return errShutdown
	}
	if old := r.mu.sessions[s.reg.Executor]; old != nil {
		old.end(&gateway.Error{
			Code: gateway.FailedPrecondition, Reason: gateway.ReasonReplaced,
			Message: fmt.Sprintf("executor %s has registered again, as incarnation %s", s.reg.Executor, s.reg.Incarnation),
			Remedy:  "give each running executor its own id",
		})
		r.lose(old, "it has registered anew")
	}
	r.mu.sessions[s.reg.Executor] = s
	r.mu.slots.add(s)
	r.mu.slots.serve(r.grant)
	return nil
}

// finish ends a session, unless a newer one has done so already.
func (r *registry) finish(s *session, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.sessions[s.reg.Executor] == s {
		r.lose(s, message)
		r.mu.slots.serve(r.grant)
	}
}

// lose takes a session out and tells the jobs. The lock is held.
func (r *registry) lose(s *session, message string) {
	delete(r.mu.sessions, s.reg.Executor)
	r.mu.slots.remove(s)
	for _, b := range r.mu.loops {
		b.post(executorLost{s, message})
	}
}

func (r *registry) grant(id job.ID, g slotGrant) {
	if b := r.mu.loops[id]; b != nil {
		b.post(g)
	}
}

// attach lets a job hear of executors and ask for slots; detach ends that.
func (r *registry) attach(id job.ID, b *inbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.loops[id] = b
}

func (r *registry) detach(id job.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.mu.loops, id)
	r.mu.slots.release(id)
	r.mu.slots.serve(r.grant)
}

func (r *registry) request(req *slotRequest) slotGrant {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.slots.request(req)
}

func (r *registry) release(id job.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.slots.release(id)
	r.mu.slots.serve(r.grant)
}

// close ends every registration and waits until they have returned.
func (r *registry) close() {
	r.mu.Lock()
	r.mu.closed = true
	for _, s := range r.mu.sessions {
		s.end(errShutdown)
	}
	r.mu.Unlock()
	r.open.Wait()
}

// touch notes a heartbeat; nil: the incarnation is not registered.
func (r *registry) touch(id job.ExecutorID, incarnation string, now time.Time) *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.mu.sessions[id]
	if s == nil || s.reg.Incarnation != incarnation {
		return nil
	}
	s.heartbeat = now
	return s
}

func (r *registry) lastHeartbeat(s *session) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return s.heartbeat
}

// with lists the sessions that have a job, and all sessions, ascending by executor id.
func (r *registry) with(name string) (have []*session, all []*session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.mu.slots.executors {
		all = append(all, o.session)
		if o.has(name) {
			have = append(have, o.session)
		}
	}
	return have, all
}

func (r *registry) list() []gateway.ExecutorStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []gateway.ExecutorStatus{}
	for _, o := range r.mu.slots.executors {
		s := o.session
		out = append(out, gateway.ExecutorStatus{
			ID: s.reg.Executor, Address: s.reg.Address, Slots: o.total, FreeSlots: o.free(), Jobs: s.reg.Jobs,
			Registered: s.registered, Heartbeat: s.heartbeat, Version: s.reg.Version,
		})
	}
	return out
}

// RegisterTaskExecutor implements gateway.JobMaster.
func (m *JobMaster) RegisterTaskExecutor(ctx context.Context, r gateway.Registration, registered func(gateway.Registered)) error {
	if err := checkRegistration(r); err != nil {
		return err
	}
	if err := m.registry.enter(); err != nil {
		return err
	}
	defer m.registry.open.Done()
	client, closer, err := m.cfg.Dial(r.Address)
	if err != nil {
		return &gateway.Error{
			Code: gateway.Unavailable, Message: fmt.Sprintf("connect to executor %s at %s: %v", r.Executor, r.Address, err),
			Remedy: "check that the address that it advertises can be reached from the job master",
		}
	}
	if closer != nil {
		defer func() { _ = closer.Close() }()
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	now := time.Now()
	s := &session{reg: r, client: client, registered: now, heartbeat: now, end: end, ended: ctx.Done()}
	if err := m.registry.begin(s); err != nil {
		return err
	}
	log := m.cfg.Log.With(zap.String("executor", string(r.Executor)), zap.String("incarnation", r.Incarnation))
	log.Info("executor registered", zap.String("address", r.Address), zap.Int("slots", r.Slots), zap.Strings("jobs", r.Jobs))
	registered(gateway.Registered{Epoch: m.cfg.Epoch, HeartbeatInterval: m.cfg.HeartbeatInterval, CheckpointDir: m.cfg.CheckpointDir})
	err = m.watchHeartbeats(ctx, s)
	m.registry.finish(s, lostBecause(err))
	log.Info("executor lost", zap.String("reason", lostBecause(err)))
	return err
}

func checkRegistration(r gateway.Registration) error {
	bad := func(format string, args ...any) error {
		return &gateway.Error{
			Code: gateway.InvalidArgument, Reason: gateway.ReasonBadParameter, Message: fmt.Sprintf(format, args...),
			Remedy: "correct the settings of the executor",
		}
	}
	switch {
	case r.Executor == "":
		return bad("the registration names no executor id")
	case r.Incarnation == "":
		return bad("the registration of executor %s names no incarnation", r.Executor)
	case r.Address == "":
		return bad("the registration of executor %s names no address", r.Executor)
	case r.Slots < 1:
		return bad("executor %s offers %d slots, at least 1 is needed", r.Executor, r.Slots)
	}
	return nil
}

// watchHeartbeats returns why the session has ended.
func (m *JobMaster) watchHeartbeats(ctx context.Context, s *session) error {
	timer := time.NewTimer(m.cfg.HeartbeatTimeout)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
		left := time.Until(m.registry.lastHeartbeat(s).Add(m.cfg.HeartbeatTimeout))
		if left <= 0 {
			return &gateway.Error{
				Code: gateway.Unavailable, Message: fmt.Sprintf("no heartbeat of executor %s within %s", s.reg.Executor, m.cfg.HeartbeatTimeout),
				Remedy: "it must register again",
			}
		}
		timer.Reset(left)
	}
}

func lostBecause(err error) string {
	if errors.Is(err, context.Canceled) {
		return "its connection broke"
	}
	return err.Error()
}

// Heartbeat implements gateway.JobMaster.
func (m *JobMaster) Heartbeat(ctx context.Context, h gateway.Heartbeat) (gateway.HeartbeatAnswer, error) {
	if h.Epoch != m.cfg.Epoch {
		return gateway.HeartbeatAnswer{}, gateway.StaleEpoch(h.Epoch, m.cfg.Epoch)
	}
	s := m.registry.touch(h.Executor, h.Incarnation, time.Now())
	if s == nil {
		return gateway.HeartbeatAnswer{}, &gateway.Error{
			Code: gateway.FailedPrecondition, Reason: gateway.ReasonNotRegistered,
			Message: fmt.Sprintf("executor %s, incarnation %s, is not registered", h.Executor, h.Incarnation), Remedy: "register again",
		}
	}
	answer := gateway.HeartbeatAnswer{Completed: map[job.ID]checkpoint.ID{}}
	var order []job.ID
	byJob := map[job.ID][]gateway.TaskReport{}
	for _, t := range h.Tasks {
		id := t.Attempt.Job
		if byJob[id] == nil {
			order = append(order, id)
		}
		byJob[id] = append(byJob[id], t)
	}
	for _, id := range order {
		got, err := m.report(ctx, id, taskReports{executor: h.Executor, reports: byJob[id]})
		if err != nil {
			return gateway.HeartbeatAnswer{}, err
		}
		answer.Unknown = append(answer.Unknown, got.unknown...)
		if got.completed > 0 {
			answer.Completed[id] = got.completed
		}
	}
	return answer, nil
}

// report gives the reports to the job's loop. Attempts of a job that is not there or has ended are unknown.
func (m *JobMaster) report(ctx context.Context, id job.ID, r taskReports) (reportAnswer, error) {
	if l := m.loop(id); l != nil {
		got, err := ask(ctx, l.inbox, func(answer chan<- reportAnswer) message {
			r.answer = answer
			return r
		})
		if !errors.Is(err, errLoopEnded) {
			return got, err
		}
	}
	var all reportAnswer
	for _, t := range r.reports {
		all.unknown = append(all.unknown, t.Attempt)
	}
	return all, nil
}

// TaskExecutors implements gateway.Jobs.
func (m *JobMaster) TaskExecutors(context.Context) ([]gateway.ExecutorStatus, error) {
	return m.registry.list(), nil
}
