package sim

import (
	"context"
	"errors"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/ha"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/retention"
	"github.com/weirstream/weir/internal/scheduler"
)

// life is that of one process.
type life struct {
	epoch job.LeaderEpoch
	over  bool
	dying bool // it dies in the storage operation that runs; no later one is done
}

var errDied = errors.New("the process has died")

// lead starts a job master on what the one before has left in the records; one that cannot read or write them ends, and is started again.
func (s *Sim) lead() {
	m := &master{s: s, work: s.work, acks: map[coordinator.RequestID]func(checkpoint.Verdict){}}
	m.running = execution{
		sessions: map[job.ExecutorID]*session{}, senders: map[job.ExecutorID]*sender{}, placed: map[job.AttemptID]job.ExecutorID{}, failing: map[job.AttemptID]bool{},
	}
	m.registry = registry{m: m}
	var err error
	m.acting(func(ctx context.Context) {
		m.records.store, err = ha.OpenIn(ctx, s.records, "records")
		if err == nil && m.recorded() == nil {
			s.quietly(func() { err = m.records.store.CreateJob(ctx, s.submission()) })
		}
	})
	if err != nil || m.life.dying {
		s.note("the job master cannot start: %v", err)
		s.after(s.upTo(maxDown), "job master starts again", s.lead)
		return
	}
	m.life.epoch = m.records.store.Epoch()
	s.watch.leads(s, m.life.epoch)
	s.master = m
	m.begin()
}

// submission is the record of the job.
func (s *Sim) submission() ha.Job {
	j := ha.Job{
		ID: s.job, Order: 1, Name: "sim", Graph: s.work.graph, Submitted: s.start,
		Options: job.Options{Checkpoint: s.cfg.Checkpoint, Restart: s.cfg.Restart}.Normalize(),
	}
	if s.origin != nil {
		j.Restore, j.Claimed = s.origin.dir, s.origin.claimed
	}
	return j
}

// recorded is the record of the job that an earlier job master has made; nil: there is none.
func (m *master) recorded() *ha.Record {
	for _, r := range m.records.store.Jobs() {
		if r.Job.ID == m.s.job {
			return &r
		}
	}
	return nil
}

// begin starts a new job, goes on with one that an earlier job master has left, or cleans up after one that has ended.
func (m *master) begin() {
	r, isNew := m.recorded(), false
	if r == nil {
		r, isNew = &ha.Record{Job: m.s.submission()}, true
	}
	m.records.job, m.records.known, m.records.ledger = r.Job, r.Progress, ha.NewLedger(r)
	m.adopt(m.s.planOf(r.Job.Graph.Fingerprint))
	m.sched = scheduler.New(scheduler.Config{
		Job: m.s.job, Graph: r.Job.Graph, Restart: r.Job.Options.Restart, CancelTimeout: cancelTimeout, FirstAttempt: m.records.ledger.FirstAttempt(),
	})
	from := m.readOrigin(isNew)
	if from != nil {
		m.records.ledger.Used(from.Metadata.ID)
	}
	m.coord = m.newCoordinator(from, nil)
	m.s.note("job master %d leads: %+v, end %+v", m.life.epoch, r.Progress, r.End)
	switch {
	case r.End != nil:
		m.s.watch.ends(m.s, *r.End)
		if !r.End.Clean {
			m.cleanUp()
		}
	case isNew:
		m.take(func() { m.feed(scheduler.Start{}) })
	default:
		m.records.recovering = true
		m.recover()
	}
}

func (m *master) newCoordinator(from *checkpoint.Completed, older []*checkpoint.Completed) *coordinator.Core {
	return coordinator.New(coordinator.Config{
		Job: m.s.job, JobName: "sim", Graph: m.records.job.Graph, Epoch: m.life.epoch, Options: m.records.job.Options.Checkpoint,
		Restored: from, Older: older, FirstID: m.records.ledger.FirstID(),
	})
}

// crash ends the process of the job master. Its executors notice, or find out when they hear of the next one.
func (m *master) crash(why string) {
	s := m.s
	if m.life.over {
		return
	}
	s.note("FAULT job master %d dies: %s", m.life.epoch, why)
	m.life.over = true
	s.watch.leaderless(s)
	for _, open := range m.registry.sessions {
		x := open.executor
		notice := s.upTo(200 * time.Millisecond)
		if s.rng.IntN(5) == 0 {
			notice += s.upTo(2 * heartbeatTimeout)
		}
		s.after(notice, "connection to the job master broke", func() { x.forsake(open) })
	}
	s.after(50*time.Millisecond+s.upTo(maxDown), "job master starts", s.lead)
}

// forsake ends the session at a job master that has died, unless nothing tells the executor so.
func (x *executor) forsake(open *session) {
	if x.alive && x.incarnation == open.incarnation && !x.partitioned {
		x.reset("the job master has died")
	}
}

// acting does something that an instance of the job master does in one go, and in which it may die.
func (m *master) acting(f func(ctx context.Context)) {
	m.s.durable.actor = m
	f(context.Background())
	m.s.durable.actor = nil
}

// beside does something with the storage beside the loop. What has not begun when the process dies is not done.
func (m *master) beside(what string, stall time.Duration, f func(ctx context.Context), answered func()) {
	before := m.s.upTo(stall)
	m.s.after(before+m.s.storageDelay(), what, func() {
		if m.life.over {
			return
		}
		m.acting(f)
		if m.life.dying {
			m.crash("in " + what)
			return
		}
		m.s.after(stall-before+m.s.storageDelay(), what+" answered", func() { m.take(answered) })
	})
}

// retry does something beside the loop until it succeeds.
func (m *master) retry(what string, f func(ctx context.Context) error, done func()) {
	var err error
	m.beside(what, 0, func(ctx context.Context) { err = f(ctx) }, func() {
		if err == nil {
			done()
			return
		}
		m.s.note("%s: %v", what, err)
		m.s.after(m.s.upTo(time.Second), what+" again", func() {
			if !m.life.over {
				m.retry(what, f, done)
			}
		})
	})
}

// recover reads the checkpoints of the job and then starts it.
func (m *master) recover() {
	var got retention.Recovery
	var latest *checkpoint.Completed
	var older []*checkpoint.Completed
	var files []string
	m.retry("recover", func(ctx context.Context) (err error) {
		if got, latest, err = m.readCheckpoints(ctx); err == nil {
			older, files, err = m.readOlder(ctx, got)
		}
		return err
	}, func() {
		if m.sched.State().Terminal() {
			return // it was canceled meanwhile
		}
		m.records.recovering = false
		m.records.ledger.Used(got.LastID)
		if latest != nil {
			m.records.ledger.Used(latest.Metadata.ID)
		}
		if got.Latest > 0 {
			m.records.ledger.Completed(latest.Metadata.ID)
		}
		m.s.watch.recovered(m.s, latest)
		m.coord = m.newCoordinator(latest, older)
		m.feed(scheduler.Start{})
		m.removeUnfinished(got, latest, older, files)
	})
}

func (m *master) readCheckpoints(ctx context.Context) (retention.Recovery, *checkpoint.Completed, error) {
	files, err := m.s.filesOf(ctx, checkpoint.JobDir(m.s.job))
	if err != nil {
		return retention.Recovery{}, nil, err
	}
	known := m.records.known
	if known.Stopped != "" {
		known.Completed = 0 // it does not go on from any of them
	}
	r, err := retention.Recover(m.s.job, files, known.Reserved, known.Completed)
	if err != nil {
		m.s.violate("I3", "job master %d: %v: completed was %d", m.life.epoch, err, known.Completed)
	}
	if err == nil && known.Stopped != "" {
		r.Latest, r.Older = 0, nil
		return r, m.readStop(known.Stopped), nil
	}
	if err != nil || r.Latest == 0 {
		return r, m.readOrigin(true), err
	}
	dir := checkpoint.Dir(m.s.job, r.Latest)
	c := &checkpoint.Completed{Dir: dir}
	data, err := m.s.store.ReadFile(ctx, dir+"/"+checkpoint.MetadataFile, checkpoint.MaxMetadataBytes)
	if err != nil {
		return r, nil, err
	}
	if c.Metadata, err = checkpoint.DecodeMetadata(data); err != nil {
		m.s.violate("I3", "job master %d: checkpoint %d: %v", m.life.epoch, r.Latest, err)
		return r, nil, err
	}
	return r, c, m.publish(ctx, dir, data) // what can be read need not survive a crash of the machine
}

// completed notes that the job has a checkpoint.
func (m *master) completed(e coordinator.Completed) {
	if e.Kind != checkpoint.Checkpoint {
		return
	}
	m.records.ledger.Completed(e.ID)
}
