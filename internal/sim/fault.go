package sim

import (
	"fmt"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/scheduler"
)

// plant lets every kind of fault happen again and again, until the faults end.
func (s *Sim) plant() {
	f := s.cfg.Faults
	for _, p := range []struct {
		what string
		mean time.Duration
		do   func()
	}{
		{"executor crash", f.ExecutorCrash, func() { s.anyExecutor(func(x *executor) { x.crash("crash") }) }},
		{"partition", f.Partition, func() { s.anyExecutor(s.partition) }},
		{"task error", f.TaskError, func() {
			s.anyTask(func(t *simTask) { t.fail(job.FailureTask, "user error") })
		}},
		{"task hang", f.TaskHang, func() { s.anyTask(s.hang) }},
		{"link break", f.LinkBreak, s.breakLink},
		{"machine crash", f.MachineCrash, s.machineCrash},
		{"job master crash", f.MasterCrash, func() { s.master.crash("crash") }},
		{"job master's machine crash", f.MasterMachineCrash, s.masterMachineCrash},
		{"user request", f.UserRequest, s.userRequest},
		{"storage storm", f.StorageStorm, s.storageStorm},
		{"sweep", f.Sweep, func() { s.master.sweep() }},
		{"stop request", s.cfg.Stop, s.stopRequest},
		{"rescale request", s.cfg.Rescale, s.rescaleRequest},
	} {
		if p.mean > 0 {
			s.plantOne(p.what, p.mean, p.do)
		}
	}
}

func (s *Sim) plantOne(what string, mean time.Duration, do func()) {
	s.after(s.upTo(2*mean), what, func() {
		if s.calm {
			return
		}
		s.faults[what]++
		do()
		s.plantOne(what, mean, do)
	})
}

func (s *Sim) anyExecutor(do func(x *executor)) {
	x := s.executors[s.rng.IntN(len(s.executors))]
	if x.alive && !x.partitioned {
		do(x)
	}
}

func (s *Sim) anyTask(do func(t *simTask)) {
	x := s.executors[s.rng.IntN(len(s.executors))]
	var running []*simTask
	for _, t := range x.tasks {
		if t.live() && t.state == job.TaskRunning && !s.now.Before(t.hung) {
			running = append(running, t)
		}
	}
	if len(running) > 0 {
		do(running[s.rng.IntN(len(running))])
	}
}

// partition cuts an executor off from the job master for a while; it goes on running its tasks.
func (s *Sim) partition(x *executor) {
	s.note("FAULT executor %s is cut off", x.id)
	x.partitioned = true
	s.after(s.upTo(2*heartbeatTimeout), "partition ends", func() {
		x.partitioned = false
		if x.session != nil && x.session.m.life.over {
			x.forsake(x.session)
		}
	})
}

// hang lets the code of a task not return for a while.
func (s *Sim) hang(t *simTask) {
	t.hung = s.now.Add(s.upTo(2 * cancelTimeout))
	s.note("FAULT %s hangs until %s", t.attempt, t.hung.Sub(s.start))
}

func (s *Sim) breakLink() {
	s.anyTask(func(t *simTask) {
		if len(t.inputs) > 0 {
			l := t.inputs[s.rng.IntN(len(t.inputs))]
			s.note("FAULT the channel from %s to %s breaks", l.key.from, l.key.to)
			l.breakOff()
		}
	})
}

// userRequest asks for a checkpoint or a savepoint, each savepoint in a directory of its own.
func (s *Sim) userRequest() {
	if s.master.life.over {
		return
	}
	s.watch.requests++
	r := coordinator.TriggerRequested{Request: coordinator.RequestID(1_000_000 + s.watch.requests), Kind: checkpoint.Checkpoint}
	if s.rng.IntN(2) == 0 {
		r.Kind, r.Directory = checkpoint.Savepoint, checkpoint.SavepointDir(s.job, fmt.Sprint(s.watch.requests))
		r.Format = s.anyFormat()
	}
	s.watch.unanswered[r.Request] = true
	s.master.take(func() { s.master.feed(r) })
}

// interrupt has the user cancel the job, to go on with another one.
func (s *Sim) interrupt() {
	if s.cfg.Resume {
		s.after(s.upTo(s.cfg.FaultsFor), "cancel to resume", s.cancel)
	}
}

// stopRequest asks for a savepoint that ends the job.
func (s *Sim) stopRequest() {
	if s.master.life.over || s.master.rescaling.core.Active() { // it would be refused
		return
	}
	s.watch.requests++
	r := coordinator.TriggerRequested{
		Request: coordinator.RequestID(2_000_000 + s.watch.requests), Kind: checkpoint.Savepoint, Stop: job.StopSuspend + job.StopMode(s.rng.IntN(3)),
		Directory: checkpoint.SavepointDir(s.job, fmt.Sprint(s.watch.requests)), Format: s.anyFormat(),
	}
	s.watch.unanswered[r.Request] = true
	s.master.take(func() { s.master.feed(r) })
}

// killAll lets every executor die within a few milliseconds, once.
func (s *Sim) killAll() {
	if s.faults["kill"]++; s.faults["kill"] > 1 {
		return
	}
	if s.calm { // it begins anew
		s.watch.healed(s)
	}
	for _, x := range s.executors {
		s.after(s.upTo(8*time.Millisecond), "kill", func() { x.crash("the job is about to end") })
	}
	if m := s.master; s.rng.IntN(2) == 0 {
		s.after(s.upTo(8*time.Millisecond), "kill", func() { m.crash("the job is about to end") })
	}
}

// heal ends all faults.
func (s *Sim) heal() {
	s.note("the faults end")
	s.calm = true
	s.watch.healed(s)
	if s.cfg.Cancel {
		s.cancel()
	}
}

// cancel cancels the job as soon as a job master is there.
func (s *Sim) cancel() {
	if s.master.life.over {
		s.after(100*time.Millisecond, "cancel again", s.cancel)
		return
	}
	if s.master.records.ledger.End() != nil {
		return // it is only cleaned up after, and takes no requests
	}
	s.master.take(func() { s.master.feed(scheduler.CancelRequested{}) })
}
