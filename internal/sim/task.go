package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/task"
)

// credits is how many batches may be under way in a channel.
const credits = 4

// simTask is one execution attempt around the real task core. A turn is what package task does in a turn.
type simTask struct {
	s         *Sim
	load      *workload
	x         *executor
	epoch     job.LeaderEpoch // of the job master that deployed it
	attempt   job.AttemptID
	vertex    int
	restore   *gateway.TaskRestore
	fresh     []int // splits of a source that starts without a checkpoint
	core      *task.Core
	op        operator
	state     job.TaskState
	failure   job.Failure
	endOfData bool
	dead      bool // its process is gone

	mail     []task.Event
	inputs   []*link
	blocked  []bool
	turnOf   int // channel that is looked at first
	outputs  []*output
	due      bool      // a turn is planned
	hung     time.Time // its code does not return before
	canceled bool
	drained  bool

	snapshots []*snapshot
	record    task.SharedRecord
	uploaded  int64 // files
	watched   watchedTask
}

func newTask(x *executor, m *master, d gateway.TaskDeployment) *simTask {
	s := x.s
	t := &simTask{
		s: s, load: m.work, x: x, epoch: m.life.epoch, attempt: d.Attempt, restore: d.Restore, fresh: d.Splits, state: job.TaskInitializing,
		vertex: m.work.index(d.Attempt.Task.Vertex),
	}
	s.watch.deployed(t)
	for _, e := range t.load.graph.Inputs(d.Attempt.Task.Vertex) {
		for _, from := range t.load.peers(e, e.From, d.Attempt) {
			l := s.link(e.ID, from, d.Attempt)
			l.receiver = t
			l.channel = len(t.inputs)
			t.inputs = append(t.inputs, l)
		}
	}
	for _, e := range t.load.graph.Outputs(d.Attempt.Task.Vertex) {
		o := &output{t: t, partitioning: e.Partitioning}
		for _, to := range t.load.peers(e, e.To, d.Attempt) {
			l := s.link(e.ID, d.Attempt, to)
			l.sender = t
			o.links = append(o.links, l)
		}
		t.outputs = append(t.outputs, o)
	}
	t.blocked = make([]bool, len(t.inputs))
	var from task.Start
	if r := d.Restore; r != nil {
		from = task.Start{Restored: r.Checkpoint, Ended: r.State.Ended, Stopped: r.Stopped}
	}
	t.core = task.NewCore(len(t.inputs), from)
	t.watched = newWatchedTask(t, t.core.Notified())
	t.op = newOperator(t)
	if r := d.Restore; r != nil {
		t.record.Restored(r.Checkpoint, r.State.Operators)
	}
	return t
}

// peers are the attempts at the other end of an edge that a has channels with.
func (w *workload) peers(e job.Edge, vertex job.VertexID, a job.AttemptID) []job.AttemptID {
	var out []job.AttemptID
	for i := range w.graph.Vertex(vertex).Parallelism {
		if e.Partitioning != job.Forward || i == a.Task.Subtask {
			out = append(out, job.AttemptID{Job: a.Job, Task: job.TaskID{Vertex: vertex, Subtask: i}, Attempt: a.Attempt})
		}
	}
	return out
}

func elementCheckpoint(e coordinator.SendTrigger) element.Checkpoint {
	return element.Checkpoint{ID: int64(e.ID), Timestamp: e.Timestamp.UnixMilli(), Dir: e.Dir, Final: e.Final, Stop: e.Stop, Base: int64(e.Base), Format: e.Format}
}

// live reports whether anything of the attempt still runs.
func (t *simTask) live() bool { return !t.dead && !t.state.Terminal() }

// startUp restores and opens the operator after a while.
func (t *simTask) startUp() {
	t.x.report(t)
	t.s.after(t.s.upTo(30*time.Millisecond)+t.s.storageDelay(), "start", func() {
		if !t.live() {
			return
		}
		err := t.op.restore()
		if err == nil {
			err = t.op.open()
		}
		if err != nil {
			t.fail(job.FailureInfrastructure, err.Error())
			return
		}
		if t.restore != nil && t.restore.Stopped {
			t.drained = true
			if err := t.step(task.InputEnded{}); err != nil {
				t.fail(job.FailureInfrastructure, err.Error())
				return
			}
		}
		t.state = job.TaskRunning
		t.s.note("%s runs on %s", t.attempt, t.x.id)
		t.x.report(t)
		t.wake()
	})
}

func (t *simTask) post(ev task.Event) {
	t.mail = append(t.mail, ev)
	t.wake()
}

// wake plans a turn.
func (t *simTask) wake() { t.wakeIn(t.s.upTo(time.Millisecond)) }

func (t *simTask) wakeIn(d time.Duration) {
	if t.due || t.state != job.TaskRunning || t.dead {
		return
	}
	if hang := t.hung.Sub(t.s.now); hang > d {
		d = hang
	}
	t.due = true
	t.s.after(d, "turn", func() {
		t.due = false
		if t.state == job.TaskRunning && !t.dead {
			t.turn()
		}
	})
}

// turn is one round of the loop: the mail, then one element of input.
func (t *simTask) turn() {
	if t.s.now.Before(t.hung) {
		t.wake()
		return
	}
	for len(t.mail) > 0 {
		ev := t.mail[0]
		t.mail = t.mail[1:]
		if err := t.step(ev); err != nil {
			t.fail(job.FailureInfrastructure, err.Error())
			return
		}
		if t.state != job.TaskRunning {
			return
		}
	}
	worked, err := t.work()
	if err != nil {
		t.fail(job.FailureInfrastructure, err.Error())
	} else if worked {
		t.wake()
	}
}

// step gives the core an event and does what follows.
func (t *simTask) step(ev task.Event) error {
	for _, eff := range t.core.Step(t.s.now, ev) {
		if _, quiet := eff.(task.Block); !quiet {
			t.s.note("      %s: %s on %s", t.attempt, eff, ev)
		}
		if err := t.execute(eff); err != nil {
			return err
		}
	}
	return nil
}

func (t *simTask) execute(eff task.Effect) error {
	switch eff := eff.(type) {
	case task.Block:
		t.blocked[eff.Channel] = true
	case task.Unblock:
		clear(t.blocked)
	case task.Snapshot:
		return t.snapshot(eff)
	case task.ForwardCancel:
		t.watched.over[eff.ID] = true
		return t.broadcast(element.Element{Kind: element.Cancel, Checkpoint: element.Checkpoint{ID: int64(eff.ID)}})
	case task.Decline:
		t.decline(eff.ID, eff.Reason)
	case task.StopSnapshot:
		t.stopSnapshots(func(snap *snapshot) bool { return snap.id() == eff.ID })
	case task.NotifyComplete:
		t.s.watch.notified(t, eff.ID)
		return t.op.complete(eff.ID)
	case task.NotifyAborted:
		t.s.watch.notifiedAborted(t, eff.ID)
	case task.EndInput:
		return t.endInput(eff.Flush)
	case task.Finish:
		if err := t.broadcast(element.Element{Kind: element.Closed}); err != nil {
			return err
		}
		t.s.watch.finish(t)
		t.end(job.TaskFinished, job.Failure{})
	default:
		return fmt.Errorf("unknown effect %T", eff)
	}
	return nil
}

func (t *simTask) decline(id checkpoint.ID, reason checkpoint.Reason) {
	a := t.attempt
	t.x.call("decline", func(m *master) { m.decline(t.epoch, a, id, reason) }, func(error) {})
}

func (t *simTask) endInput(flush bool) error {
	if flush {
		t.op.finish()
	}
	if err := t.broadcast(element.Element{Kind: element.EndOfData}); err != nil {
		return err
	}
	t.endOfData = true
	t.x.report(t)
	return nil
}

// work does one piece of work and reports whether there was any. It stops while an output has no credit.
func (t *simTask) work() (bool, error) {
	for _, o := range t.outputs {
		for _, l := range o.links {
			if l.records >= credits && !l.broken {
				return false, nil // the receiver wakes this task when it has taken a batch
			}
		}
	}
	if src, ok := t.op.(*sourceOp); ok {
		return t.poll(src)
	}
	for i := range t.inputs {
		channel := (t.turnOf + i) % len(t.inputs)
		l := t.inputs[channel]
		if t.blocked[channel] || len(l.queue) == 0 {
			continue
		}
		t.turnOf = (channel + 1) % len(t.inputs)
		return true, t.input(channel, l.take())
	}
	for _, l := range t.inputs {
		if l.broken && !l.closed {
			return false, fmt.Errorf("lost the sender %s", l.key.from)
		}
	}
	return false, nil
}

func (t *simTask) input(channel int, e element.Element) error {
	switch e.Kind {
	case element.Records:
		b := e.Batch.(batch)
		t.watched.process(t, channel, b)
		t.op.process(b.records)
		return t.flush()
	case element.Barrier:
		t.watched.barriers[channel] = checkpoint.ID(e.Checkpoint.ID)
		return t.step(task.Barrier{Channel: channel, Checkpoint: e.Checkpoint})
	case element.Cancel:
		t.watched.canceled = max(t.watched.canceled, checkpoint.ID(e.Checkpoint.ID))
		return t.step(task.Cancel{Channel: channel, ID: checkpoint.ID(e.Checkpoint.ID)})
	case element.EndOfData:
		return t.step(task.ChannelEnded{Channel: channel})
	case element.Closed:
		t.watched.closed[channel] = true
		return t.step(task.ChannelClosed{Channel: channel})
	}
	return errors.New("element of unknown kind")
}

// poll lets the source emit some records.
func (t *simTask) poll(src *sourceOp) (bool, error) {
	if t.drained || t.core.Suspended() {
		return false, nil
	}
	if src.ended() || t.core.Ended() {
		t.drained = true
		return true, t.step(task.InputEnded{})
	}
	if wait := src.next.Sub(t.s.now); wait > 0 {
		t.wakeIn(wait)
		return false, nil
	}
	src.poll()
	return true, t.flush()
}

// cancel ends the attempt soon, or when its code returns.
func (t *simTask) cancel() {
	if !t.live() || t.canceled {
		return
	}
	t.canceled = true
	t.s.after(max(t.hung.Sub(t.s.now), 0)+t.s.upTo(5*time.Millisecond), "cancel", func() {
		if t.live() {
			t.end(job.TaskCanceled, job.Failure{})
		}
	})
}

func (t *simTask) fail(class job.FailureClass, message string) {
	t.end(job.TaskFailed, job.Failure{Class: class, Message: message})
}

// end ends the attempt in good order: its process lives.
func (t *simTask) end(state job.TaskState, failure job.Failure) {
	t.s.note("      %s %s %s", t.attempt, state, failure)
	t.state, t.failure = state, failure
	t.stopSnapshots(func(*snapshot) bool { return true })
	t.disconnect(state == job.TaskFinished)
	t.x.report(t)
}

// die ends the attempt with its process.
func (t *simTask) die() {
	t.dead = true
	t.snapshots = nil
	t.disconnect(false)
}

func (t *simTask) stopSnapshots(which func(*snapshot) bool) {
	for _, snap := range slices.Clone(t.snapshots) {
		if which(snap) {
			snap.stopped = true
		}
	}
}
