package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rescale"
	"github.com/weirstream/weir/internal/scheduler"
	"github.com/weirstream/weir/internal/slotpool"
)

// master is one life of the job master: the loop of one job around both cores, as package jobmaster has it, and the registry of executors.
type master struct {
	s        *Sim
	work     *workload
	life     life
	records  records
	registry registry
	sched    *scheduler.Core
	coord    *coordinator.Core
	queue    []fmt.Stringer // events that have not been stepped
	armed    time.Time      // of the latest timer; earlier ones do nothing

	running   execution
	rescaling rescaling
	acks      map[coordinator.RequestID]func(checkpoint.Verdict)
	request   coordinator.RequestID
	open      int // storage calls that have not answered
}

// execution is what the loop knows of the present execution.
type execution struct {
	request   int
	sessions  map[job.ExecutorID]*session
	senders   map[job.ExecutorID]*sender
	deploying []job.Placement
	placed    map[job.AttemptID]job.ExecutorID
	failing   map[job.AttemptID]bool
}

// take applies a message of the inbox, and then everything that follows.
func (m *master) take(apply func()) {
	if m.life.over {
		return
	}
	apply()
	m.settle()
	m.arm()
}

func (m *master) feed(ev fmt.Stringer) { m.queue = append(m.queue, ev) }

func (m *master) settle() {
	for {
		m.record()
		if len(m.queue) == 0 {
			m.deploy()
		}
		if len(m.queue) == 0 {
			return
		}
		ev := m.queue[0]
		m.queue = m.queue[1:]
		m.s.note("-> %s", ev)
		switch ev := ev.(type) {
		case scheduler.Event:
			for _, e := range m.sched.Step(m.s.now, ev) {
				m.s.note("   %s", e)
				m.schedule(e)
			}
		case rescale.Event:
			for _, e := range m.rescaling.core.Step(m.s.now, ev) {
				m.s.note("   %s", e)
				m.rescale(e)
			}
		case coordinator.Event:
			for _, e := range m.coord.Step(m.s.now, ev) {
				m.s.note("   %s", e)
				m.s.watch.effect(m.s, e)
				m.coordinate(e)
			}
		}
	}
}

// arm sets the timer to the earlier deadline of the cores. An executor of deadlines may be late, as any timer.
func (m *master) arm() {
	at, ok := m.sched.Deadline()
	for _, deadline := range []func() (time.Time, bool){m.coord.Deadline, m.rescaling.core.Deadline} {
		if other, has := deadline(); has && (!ok || other.Before(at)) {
			at, ok = other, true
		}
	}
	if !ok || at.Equal(m.armed) {
		return
	}
	m.armed = at
	late := time.Duration(0)
	if m.s.chance(0.2) {
		late = m.s.upTo(50 * time.Millisecond)
	}
	m.s.after(max(at.Sub(m.s.now), 0)+late, "timer", func() {
		if m.armed.Equal(at) {
			m.armed = time.Time{}
			m.take(m.tick)
		}
	})
}

func (m *master) tick() {
	if at, ok := m.sched.Deadline(); ok && !m.s.now.Before(at) {
		m.feed(scheduler.Tick{Random: m.s.rng.Float64()})
	}
	if at, ok := m.coord.Deadline(); ok && !m.s.now.Before(at) {
		m.feed(coordinator.Tick{})
	}
	if at, ok := m.rescaling.core.Deadline(); ok && !m.s.now.Before(at) {
		m.feed(rescale.Tick{})
	}
}

// attempt finds the present attempt of a task; false: id is not it.
func (m *master) attempt(id job.AttemptID) (scheduler.Execution, bool) {
	for _, e := range m.sched.Executions() {
		if e.Task == id.Task && id.Job == m.s.job {
			return e, e.Attempt == id.Attempt
		}
	}
	return scheduler.Execution{}, false
}

func (m *master) schedule(e scheduler.Effect) {
	switch e := e.(type) {
	case scheduler.RequestSlots:
		m.running.request++
		m.registry.request(slotpool.Request{Number: m.running.request, Count: e.Count, Keep: slotpool.PerExecutor(e.Keep), Prefer: slotpool.PerExecutor(e.Prefer)})
	case scheduler.ReleaseSlots:
		m.running.request++
		m.running.deploying = nil
		m.stopSenders()
		clear(m.running.sessions)
		m.registry.release()
	case scheduler.Deploy:
		m.prepare(e.Placements)
	case scheduler.CancelTasks:
		m.cancelTasks(e.Placements)
	case scheduler.DropExecutor:
		if s := m.running.senders[e.Executor]; s != nil {
			m.registry.finish(s.session, e.Message)
		}
	case scheduler.JobStatusChanged:
		m.s.watch.status(m.s, e)
		if e.To == job.Running {
			m.tellRescale(rescale.Deployed{})
		}
		if e.To.Terminal() {
			m.tellRescale(rescale.Ended{State: e.To})
			m.setEnd(e)
		}
	case scheduler.TasksRunning:
		m.s.watch.running = true
		m.tellRescale(rescale.Running{Graph: m.rescaling.graph})
		m.feed(coordinator.TasksRunning{Tasks: m.coordinated(e), Random: m.s.rng.Float64()})
	case scheduler.TasksStopped:
		m.s.watch.running = false
		if e.Attempts != nil {
			m.s.faults["failover of a region"]++
		}
		m.feed(coordinator.TasksStopped{Reason: e.AbortReason(), Attempts: e.Attempts})
	case scheduler.TaskFinished:
		m.feed(coordinator.TaskFinished{Attempt: e.Attempt})
	case scheduler.EndOfDataReached:
		m.feed(coordinator.EndOfDataReached{})
	case scheduler.Replanned:
		m.replanned(e.Graph)
	case scheduler.ReplanFailed:
		m.s.faults["plan on trial failed"]++
		m.tellRescale(rescale.Failed{Failure: e.Failure})
	case scheduler.Waiting:
		if e.Detail != "" {
			m.tellRescale(rescale.Short{})
		}
	case scheduler.RegionsRestart:
	}
}

func (m *master) coordinated(e scheduler.TasksRunning) []coordinator.Task {
	out := make([]coordinator.Task, len(e.Placements))
	for i, p := range e.Placements {
		out[i] = coordinator.Task{
			Attempt: p.Attempt, Source: m.s.work.graph.IsSource(p.Attempt.Task.Vertex), Finished: slices.Contains(e.Finished, p.Attempt),
		}
	}
	return out
}

func (m *master) executorLost(s *session, message string) {
	if m.running.sessions[s.executor.id] == s {
		delete(m.running.sessions, s.executor.id)
		m.feed(scheduler.ExecutorLost{Executor: s.executor.id, Message: message})
	}
}

func (m *master) granted(g slotpool.Grant) {
	if g.Number != m.running.request {
		return
	}
	if g.Slots == nil {
		m.feed(scheduler.SlotsShort{Required: g.Short.Required, Available: g.Short.Available, Message: g.Short.Message})
		return
	}
	for _, slot := range g.Slots {
		m.running.sessions[slot.Executor] = m.registry.session(slot.Executor)
	}
	m.feed(scheduler.SlotsAllocated{Slots: g.Slots})
}

func (m *master) prepare(placements []job.Placement) {
	r := &m.running
	r.deploying = append(r.deploying, placements...)
	tasks, used := map[job.TaskID]bool{}, map[job.ExecutorID]bool{}
	for _, p := range placements {
		tasks[p.Attempt.Task] = true
		m.records.ledger.ReserveAttempt(p.Attempt.Attempt)
	}
	maps.DeleteFunc(r.placed, func(a job.AttemptID, _ job.ExecutorID) bool { return tasks[a.Task] })
	maps.DeleteFunc(r.failing, func(a job.AttemptID, _ bool) bool { return tasks[a.Task] })
	for _, p := range placements {
		r.placed[p.Attempt] = p.Executor
	}
	for _, executor := range r.placed {
		used[executor] = true
	}
	for _, executor := range slices.Sorted(maps.Keys(r.senders)) {
		if s := r.senders[executor]; !used[executor] || s.session != r.sessions[executor] {
			s.stop()
			delete(r.senders, executor)
		}
	}
	for _, p := range placements {
		if r.senders[p.Executor] == nil {
			s := &sender{m: m, session: r.sessions[p.Executor]}
			s.session.senders = append(s.session.senders, s)
			r.senders[p.Executor] = s
		}
	}
}

func (m *master) stopSenders() {
	for _, id := range slices.Sorted(maps.Keys(m.running.senders)) {
		m.running.senders[id].stop()
	}
	clear(m.running.senders)
}

// deploy sends the tasks out, once no checkpoint is FINALIZING.
func (m *master) deploy() {
	if m.running.deploying == nil || !m.coord.Settled() || !m.records.ledger.AttemptReserved() || !m.records.ledger.PlanRecorded() {
		return
	}
	if m.tellCoordinator() {
		return
	}
	placements := slices.DeleteFunc(m.running.deploying, func(p job.Placement) bool {
		e, present := m.attempt(p.Attempt)
		return !present || e.State != job.TaskDeploying // its executor is lost by now
	})
	m.running.deploying = nil
	from := m.coord.Latest()
	if from != nil {
		if _, err := m.s.readMetadata(from.Dir); err != nil {
			m.s.violate("I3", "restore from checkpoint %d: %v", from.Metadata.ID, err)
			return
		}
		m.s.note("   restores from %d", from.Metadata.ID)
	}
	m.s.watch.restores(m.s, from)
	if m.s.plans.due && len(placements) > 0 {
		m.s.plans.due = false
		m.s.watch.begins(m.s, placements, from)
	}
	tasks, err := gateway.Deployments(m.s.work.graph, placements, from)
	if err != nil {
		m.s.violate("I3", "restore: %v", err)
		return
	}
	for _, executor := range slices.Sorted(maps.Keys(tasks)) {
		m.sendDeploy(executor, tasks[executor])
	}
}

func (m *master) sendDeploy(id job.ExecutorID, tasks []gateway.TaskDeployment) {
	var attempts []job.AttemptID
	for _, t := range tasks {
		attempts = append(attempts, t.Attempt)
	}
	m.running.senders[id].send(call{
		what: "deploy", ordered: true,
		do: func(x *executor) { x.deploy(m, tasks) },
		done: func(err error) {
			if err != nil {
				m.feed(scheduler.DeployFailed{
					Executor: id, Attempts: attempts, Failure: job.Failure{Class: job.FailureInfrastructure, Message: err.Error()},
				})
			}
		},
	})
}

func (m *master) cancelTasks(placements []job.Placement) {
	var sent, unsent []job.AttemptID
	for _, a := range attemptsOf(placements) {
		if slices.ContainsFunc(m.running.deploying, func(p job.Placement) bool { return p.Attempt == a }) {
			unsent = append(unsent, a)
		} else {
			sent = append(sent, a)
		}
	}
	if len(unsent) > 0 {
		m.feed(scheduler.TasksUnknown{Attempts: unsent})
	}
	m.perExecutor(sent, func(id job.ExecutorID, attempts []job.AttemptID) {
		s := m.running.senders[id]
		if s == nil || s.session.over {
			m.feed(scheduler.TasksUnknown{Attempts: attempts})
			return
		}
		var unknown []job.AttemptID
		s.send(call{
			what: "cancel",
			do:   func(x *executor) { unknown = x.cancel(attempts) },
			done: func(err error) {
				if err == nil && len(unknown) > 0 {
					m.feed(scheduler.TasksUnknown{Attempts: unknown})
				}
			},
		})
	})
}

// perExecutor groups attempts by where they are. Attempts of earlier executions are left out.
func (m *master) perExecutor(attempts []job.AttemptID, f func(job.ExecutorID, []job.AttemptID)) {
	groups := map[job.ExecutorID][]job.AttemptID{}
	for _, a := range attempts {
		if executor, ok := m.running.placed[a]; ok {
			groups[executor] = append(groups[executor], a)
		}
	}
	for _, executor := range slices.Sorted(maps.Keys(groups)) {
		f(executor, groups[executor])
	}
}

func attemptsOf(placements []job.Placement) []job.AttemptID {
	out := make([]job.AttemptID, len(placements))
	for i, p := range placements {
		out[i] = p.Attempt
	}
	return out
}
