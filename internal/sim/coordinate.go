package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/scheduler"
	"github.com/weirstream/weir/internal/storage"
)

// coordinate does one effect of the coordinator.
func (m *master) coordinate(e coordinator.Effect) {
	switch e := e.(type) {
	case coordinator.InitLocation:
		if m.reserved(e) {
			m.initLocation(e)
		}
	case coordinator.CallHooks:
		m.callHook(e.ID)
	case coordinator.SendTrigger:
		m.sendTrigger(e)
	case coordinator.AckReply:
		answer := m.acks[e.Request]
		delete(m.acks, e.Request)
		answer(e.Verdict)
	case coordinator.WriteMetadata:
		stall := time.Duration(0)
		if m.s.fault("metadata stalls", m.s.cfg.Faults.MetadataStall) {
			stall = m.s.upTo(maxStall)
		}
		m.storage("write metadata", stall, func(ctx context.Context) coordinator.Event {
			if m.s.fault("storage storm at a metadata write", m.s.cfg.Faults.MetadataStorm) {
				m.s.storageStorm()
			}
			data, err := checkpoint.EncodeMetadata(e.Metadata)
			if err == nil {
				err = m.publish(ctx, e.Dir, data)
			}
			return metadataWritten{coordinator.MetadataWritten{ID: e.ID, Outcome: outcomeOf(err), Err: text(err)}, e.Dir, e.Stops}
		})
	case coordinator.SendNotifyComplete:
		m.notifyComplete(e)
	case coordinator.SendNotifyAborted:
		m.perExecutor(e.Attempts, func(id job.ExecutorID, attempts []job.AttemptID) {
			m.send(id, call{
				what: "notify aborted",
				do:   func(x *executor) { x.notifyAborted(e.ID, e.LatestCompleted, attempts) },
				done: func(err error) { m.abortConfirmed(e.ID, attempts, err) },
			})
		})
	case coordinator.Discard:
		m.storage("discard", 0, func(ctx context.Context) coordinator.Event {
			if e.Claimed {
				return coordinator.Discarded{ID: e.ID, Err: text(m.s.discardClaimed(ctx, e.Dir))}
			}
			return coordinator.Discarded{ID: e.ID, Err: text(storage.DiscardCheckpoint(ctx, m.s.store, e.Dir))}
		})
	case coordinator.RemoveShared:
		m.s.faults["shared files deleted"]++
		m.storage("remove shared files", 0, func(ctx context.Context) coordinator.Event {
			return coordinator.SharedRemoved{Err: text(m.s.removeShared(ctx, m.s.job, e.Files))}
		})
	case coordinator.Completed:
		m.feed(scheduler.CheckpointCompleted{})
		m.completed(e)
	case coordinator.CancelJob:
		m.feed(scheduler.CancelRequested{})
	case coordinator.FailJob:
		m.feed(scheduler.JobFailed{Failure: e.Failure, Attempt: e.Attempt})
	case coordinator.Reply:
		m.checkpointForRescale(e)
	case coordinator.Aborted: // only the watcher wants to know
	}
}

// initLocation makes the directory into which the tasks write.
func (m *master) initLocation(e coordinator.InitLocation) {
	m.storage("init location", 0, func(ctx context.Context) coordinator.Event {
		dir := checkpoint.Dir(m.s.job, e.ID)
		if e.Kind == checkpoint.Savepoint {
			dir = e.Directory
		}
		return coordinator.LocationReady{ID: e.ID, Dir: dir, Err: text(m.s.store.MkdirAll(ctx, dir))}
	})
}

// storage makes a storage call beside the loop; its answer comes back as an event, unless it is nil.
func (m *master) storage(what string, stall time.Duration, f func(ctx context.Context) coordinator.Event) {
	m.open++
	var ev coordinator.Event
	m.beside(what, stall, func(ctx context.Context) { ev = f(ctx) }, func() {
		m.open--
		if ev != nil {
			m.s.watch.stored(m.s, ev)
			m.stored(ev)
		}
	})
}

// metadataWritten is the answer of a write of metadata, with what the records need of a savepoint that stops the job.
type metadataWritten struct {
	coordinator.MetadataWritten
	dir   string
	stops bool
}

// stored takes the answer of a storage call. A savepoint that stops the job has to be recorded before it counts as completed.
func (m *master) stored(ev coordinator.Event) {
	w, isMetadata := ev.(metadataWritten)
	switch r := &m.records; {
	case !isMetadata:
		m.feed(ev)
	case !w.stops || w.Outcome != coordinator.Written || r.ledger.End() != nil:
		m.feed(w.MetadataWritten)
	default:
		r.ledger.Stop(w.dir)
		r.stop = &w.MetadataWritten
	}
}

func (m *master) abortConfirmed(id checkpoint.ID, attempts []job.AttemptID, err error) {
	if err != nil {
		return
	}
	for _, a := range attempts {
		m.feed(coordinator.AbortConfirmed{Attempt: a, ID: id})
	}
}

func (m *master) sendTrigger(e coordinator.SendTrigger) {
	m.perExecutor(e.Attempts, func(id job.ExecutorID, attempts []job.AttemptID) {
		failed := func(a job.AttemptID, why string) {
			m.feed(coordinator.TriggerFailed{ID: e.ID, Attempt: a, Err: "executor " + string(id) + ": " + why})
		}
		var unknown []job.AttemptID
		sent := m.send(id, call{
			what: "trigger",
			do:   func(x *executor) { unknown = x.trigger(e, attempts) },
			done: func(err error) {
				if err != nil {
					failed(attempts[0], err.Error())
				}
				for _, a := range unknown {
					failed(a, "it does not run this attempt")
				}
			},
		})
		if !sent {
			failed(attempts[0], "not reachable")
		}
	})
}

func (m *master) send(id job.ExecutorID, c call) bool {
	s := m.running.senders[id]
	return s != nil && s.send(c)
}

func (m *master) notifyComplete(e coordinator.SendNotifyComplete) {
	m.perExecutor(e.Attempts, func(id job.ExecutorID, attempts []job.AttemptID) {
		var unknown []job.AttemptID
		m.send(id, call{
			what: "notify complete",
			do:   func(x *executor) { unknown = x.notifyComplete(e.ID, attempts) },
			done: func(err error) {
				if err != nil {
					return
				}
				for _, a := range attempts {
					if !slices.Contains(unknown, a) {
						m.feed(coordinator.NotifyConfirmed{Attempt: a, ID: e.ID})
					}
				}
			},
		})
	})
}

// acknowledge, decline, update and heartbeat are what executors call. The coordinator itself has the fence for the first two.
func (m *master) acknowledge(epoch job.LeaderEpoch, a job.AttemptID, id checkpoint.ID, state checkpoint.SubtaskState, answer func(checkpoint.Verdict)) {
	m.take(func() {
		m.request++
		m.acks[m.request] = answer
		m.feed(coordinator.Ack{Request: m.request, Epoch: epoch, Attempt: a, ID: id, State: state})
	})
}

func (m *master) decline(epoch job.LeaderEpoch, a job.AttemptID, id checkpoint.ID, reason checkpoint.Reason) {
	m.take(func() {
		if _, known := m.attempt(a); known || epoch != m.life.epoch {
			m.feed(coordinator.Decline{Epoch: epoch, Attempt: a, ID: id, Reason: reason})
		}
	})
}

func (m *master) update(epoch job.LeaderEpoch, u scheduler.TaskStateChanged) (known bool) {
	if epoch != m.life.epoch {
		return false
	}
	m.take(func() {
		if _, known = m.attempt(u.Attempt); known {
			m.feed(u)
		}
	})
	return known
}

// taskReport is one task in a heartbeat.
type taskReport struct {
	attempt   job.AttemptID
	state     job.TaskState
	endOfData bool
	notified  checkpoint.ID
}

// heartbeat answers the attempts that are unknown and the latest completed checkpoint; false: the incarnation is not registered here.
func (m *master) heartbeat(epoch job.LeaderEpoch, x *executor, incarnation int, reports []taskReport) (unknown []job.AttemptID, completed checkpoint.ID, ok bool) {
	if epoch != m.life.epoch || !m.registry.touch(x, incarnation) {
		return nil, 0, false
	}
	m.take(func() {
		for _, r := range reports {
			e, present := m.attempt(r.attempt)
			if !present || e.Executor != x.id || e.State.Terminal() && e.State != job.TaskFinished {
				unknown = append(unknown, r.attempt)
				continue
			}
			if m.believes(r) {
				m.feed(scheduler.TaskStateChanged{Attempt: r.attempt, State: r.state, EndOfData: r.endOfData})
			}
			if r.notified > 0 && !m.s.cfg.SilentHeartbeats {
				m.feed(coordinator.NotifyConfirmed{Attempt: r.attempt, ID: r.notified})
			}
		}
		if own := m.coord.Retained(); len(own) > 0 && !m.s.cfg.SilentHeartbeats {
			completed = own[len(own)-1].Metadata.ID
		}
	})
	return unknown, completed, true
}

// believes reports whether the state in a heartbeat is taken over: a failure only from the second heartbeat that tells of it.
func (m *master) believes(r taskReport) bool {
	if r.state != job.TaskFailed {
		return true
	}
	seen := m.running.failing[r.attempt]
	m.running.failing[r.attempt] = true
	return seen
}

func outcomeOf(err error) coordinator.WriteOutcome {
	switch {
	case err == nil:
		return coordinator.Written
	case errors.Is(err, storage.ErrUncertain):
		return coordinator.Uncertain
	}
	return coordinator.NotWritten
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
