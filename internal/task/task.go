package task

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/compression"
	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream"
)

// pollRecords is how many records a source may emit between two looks at the mail.
const pollRecords = 512

// Config is what a task is made of.
type Config struct {
	Attempt   job.AttemptID
	Log       *zap.Logger
	Chain     *Chain
	Input     Input // nil for a source
	Outputs   []Output
	KeyGroups job.KeyGroupRange // of the subtask
	Files     StateFiles
	Shared    SharedFiles // nil: no operator has files of its own
	JobMaster JobMaster
	Restore   *Restore // nil: a fresh start
	// Linger is how long records may wait for their batch to fill; negative: not at all.
	Linger time.Duration
	// InlineLimit is the size up to which a piece of state travels in the ack; 0: job.DefaultInlineLimit.
	InlineLimit int
	Compression checkpoint.Compression // of larger pieces
	Encoder     *compression.Encoder   // nil: nothing is compressed
	Decoder     *compression.Decoder   // nil: nothing that is read may be compressed
}

// Task runs one execution attempt.
type Task struct {
	cfg  Config
	core *Core
	mail *mailbox

	times struct {
		buffered  time.Time // since when records wait in the outputs; zero: none
		source    time.Time // when the source that waits is due; zero: when it is woken
		operators time.Time // when an operator wants to be told the time; zero: never
	}
	waiting bool // the source waits
	drained bool // the source has ended
	behind  bool // the source works off a backlog, and the job master was told so
	done    bool

	snapshots sync.WaitGroup
	inFlight  inFlight
	sharing   sharing
	recordsIn atomic.Int64
	out       atomic.Int64
	notified  atomic.Int64
	ended     atomic.Bool
}

// Mailbox is made before the task, because its inputs and its source have to wake it.
type Mailbox struct{ m *mailbox }

// NewMailbox returns the mailbox of a task to be.
func NewMailbox() Mailbox { return Mailbox{newMailbox()} }

// Wake makes the task look at its inputs and its source again. It may be called from any goroutine and never blocks.
func (m Mailbox) Wake() { m.m.wake() }

// Post gives the task an event. It may be called from any goroutine and never blocks. Errors: ErrMailboxFull, ErrMailboxClosed.
func (m Mailbox) Post(ev Event) error { return m.m.post(ev) }

// New returns a task that Run starts.
func New(cfg Config, mail Mailbox) *Task {
	channels := 0
	if cfg.Input != nil {
		channels = cfg.Input.Channels()
	}
	if cfg.InlineLimit == 0 {
		cfg.InlineLimit = job.DefaultInlineLimit
	}
	if cfg.Chain.Clock == nil {
		cfg.Chain.Clock = new(stream.Clock)
	}
	t := &Task{cfg: cfg, mail: mail.m}
	var from Start
	if r := cfg.Restore; r != nil {
		from = Start{Restored: r.Checkpoint, Ended: r.State.Ended, Stopped: r.Stopped}
	}
	t.core = NewCore(channels, from)
	t.notified.Store(int64(t.core.Notified()))
	t.inFlight.init()
	t.sharing.files = cfg.Shared
	if r := cfg.Restore; r != nil {
		t.sharing.restored(r)
	}
	return t
}

// Records returns how many records came in, from inputs or from the source, and went out to other tasks. It may be called from any goroutine.
func (t *Task) Records() (in, out int64) { return t.recordsIn.Load(), t.out.Load() }

// Notified is the highest checkpoint whose completion the operators have been told. It may be called from any goroutine.
func (t *Task) Notified() checkpoint.ID { return checkpoint.ID(t.notified.Load()) }

// Ended reports whether the end of input was reached. It may be called from any goroutine.
func (t *Task) Ended() bool { return t.ended.Load() }

// Run restores, opens, runs and closes the operators. It returns nil when the task is FINISHED, the cause of ctx when it is canceled, else why it
// failed. When it returns, nothing of the task runs any more.
func (t *Task) Run(ctx context.Context) (err error) {
	snapshots, cancel := context.WithCancelCause(ctx)
	err = t.guard(func() error { return t.run(ctx, snapshots) })
	t.mail.close()
	cancel(errTaskEnded)
	t.snapshots.Wait() // what they persist belongs to operators, which must not be closed yet
	if closeErr := t.close(); err == nil {
		err = closeErr
	}
	return err
}

func (t *Task) run(ctx, snapshots context.Context) error {
	t.cfg.Chain.Clock.Set(time.Now()) // what is restored may be of a certain age
	if err := t.restore(ctx); err != nil {
		return err
	}
	for i, op := range t.cfg.Chain.Operators {
		t.enter(i)
		if err := op.Open(); err != nil {
			return err
		}
	}
	if r := t.cfg.Restore; r != nil && r.Stopped {
		// Ahead of Running, because once all tasks run each may finish: who has sent its end needs no receiver any more.
		t.drained = true
		if err := t.step(snapshots, InputEnded{}); err != nil {
			return err
		}
	}
	if source := t.cfg.Chain.Source; source != nil && !t.core.Ended() {
		t.reportBacklog(source.ProcessingBacklog()) // before anybody takes a checkpoint
	}
	t.cfg.JobMaster.Running()
	for !t.done {
		if err := t.turn(ctx, snapshots); err != nil {
			return err
		}
	}
	return nil
}

// turn is one round of the loop: the mail, then one batch of input, then what is due, then what lingers.
func (t *Task) turn(ctx, snapshots context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t.cfg.Chain.Clock.Set(time.Now())
	for _, ev := range t.mail.take() {
		if err := t.step(snapshots, ev); err != nil {
			return err
		}
	}
	if t.done {
		return nil
	}
	worked, err := t.work(snapshots)
	if err != nil {
		return err
	}
	more, err := t.tick()
	if err != nil {
		return err
	}
	if err := t.linger(); err != nil {
		return err
	}
	if !worked && !more {
		t.wait(ctx)
	}
	return nil
}

// step gives the core an event and does what follows.
func (t *Task) step(snapshots context.Context, ev Event) error {
	for _, eff := range t.core.Step(time.Now(), ev) {
		if err := t.execute(snapshots, eff); err != nil {
			return err
		}
	}
	return nil
}

func (t *Task) execute(snapshots context.Context, eff Effect) error {
	switch eff := eff.(type) {
	case Block:
		t.cfg.Input.Block(eff.Channel)
	case Unblock:
		t.cfg.Input.Unblock()
	case Snapshot:
		return t.snapshot(snapshots, eff)
	case ForwardCancel:
		return t.broadcast(element.Element{Kind: element.Cancel, Checkpoint: element.Checkpoint{ID: int64(eff.ID)}})
	case Decline:
		t.cfg.JobMaster.Decline(snapshots, eff.ID, eff.Reason, "")
	case StopSnapshot:
		t.inFlight.stop(eff.ID)
	case NotifyComplete:
		t.notified.Store(int64(eff.ID))
		return t.notify(func(l stream.CheckpointListener) error { return l.CheckpointComplete(int64(eff.ID)) })
	case NotifyAborted:
		return t.notify(func(l stream.CheckpointListener) error { return l.CheckpointAborted(int64(eff.ID)) })
	case EndInput:
		return t.endInput(snapshots, eff.Flush)
	case Finish:
		t.done = true
		return t.broadcast(element.Element{Kind: element.Closed})
	}
	return nil
}

// work does one piece of work and reports whether there was any.
func (t *Task) work(snapshots context.Context) (bool, error) {
	if t.cfg.Chain.Source != nil {
		return t.poll(snapshots)
	}
	channel, e, ok, err := t.cfg.Input.Next()
	if err != nil || !ok {
		return false, err
	}
	switch e.Kind {
	case element.Records:
		t.recordsIn.Add(int64(e.Batch.Len()))
		return true, t.cfg.Chain.Deliver(channel, e.Batch)
	case element.Barrier:
		return true, t.step(snapshots, Barrier{channel, e.Checkpoint})
	case element.Cancel:
		return true, t.step(snapshots, Cancel{channel, checkpoint.ID(e.Checkpoint.ID)})
	case element.EndOfData:
		return true, t.step(snapshots, ChannelEnded{channel})
	case element.Closed:
		return true, t.step(snapshots, ChannelClosed{channel})
	}
	return false, fmt.Errorf("element of unknown kind %d", e.Kind)
}

// poll lets the source emit some records, unless it waits or has ended.
func (t *Task) poll(snapshots context.Context) (bool, error) {
	if t.drained || t.waiting || t.core.Suspended() {
		return false, nil
	}
	if t.core.Ended() { // before the checkpoint that was restored: a source must not begin again
		t.drained = true
		return true, t.step(snapshots, InputEnded{})
	}
	next, err := t.cfg.Chain.Source.Poll(pollRecords)
	t.recordsIn.Store(t.cfg.Chain.Source.Emitted())
	if err != nil {
		return false, err
	}
	t.reportBacklog(!next.Ended() && t.cfg.Chain.Source.ProcessingBacklog())
	if next.Ended() {
		t.drained = true
		return true, t.step(snapshots, InputEnded{})
	}
	t.waiting, t.times.source = next.Waiting()
	return !t.waiting, nil
}

// reportBacklog tells the job master when it has changed.
func (t *Task) reportBacklog(behind bool) {
	if behind != t.behind {
		t.behind = behind
		t.cfg.JobMaster.Backlog(behind)
	}
}

// linger sends what has waited long enough.
func (t *Task) linger() error {
	buffered := false
	for _, o := range t.cfg.Outputs {
		buffered = buffered || o.Buffered()
	}
	t.count()
	if !buffered {
		t.times.buffered = time.Time{}
		return nil
	}
	if t.cfg.Linger < 0 {
		return t.flush()
	}
	now := time.Now()
	if t.times.buffered.IsZero() {
		t.times.buffered = now
	} else if now.Sub(t.times.buffered) >= t.cfg.Linger {
		return t.flush()
	}
	return nil
}

// wait sleeps until there is mail or input, the source or an operator is due, or records have lingered.
func (t *Task) wait(ctx context.Context) {
	due := t.times.operators
	if t.waiting && !t.times.source.IsZero() && (due.IsZero() || t.times.source.Before(due)) {
		due = t.times.source
	}
	if !t.times.buffered.IsZero() {
		if flush := t.times.buffered.Add(t.cfg.Linger); due.IsZero() || flush.Before(due) {
			due = flush
		}
	}
	var timer <-chan time.Time
	if !due.IsZero() {
		timer = time.After(time.Until(due))
	}
	select {
	case <-t.mail.signal:
		t.waiting = false // whoever woke the task may have been the source
	case <-timer:
		t.waiting = t.waiting && (t.times.source.IsZero() || time.Now().Before(t.times.source))
	case <-ctx.Done():
	}
}

func (t *Task) flush() error {
	t.times.buffered = time.Time{}
	for _, o := range t.cfg.Outputs {
		if err := o.Flush(); err != nil {
			return err
		}
	}
	t.count()
	return nil
}

// count shows the others how many records have been sent.
func (t *Task) count() {
	var sent int64
	for _, o := range t.cfg.Outputs {
		sent += o.Records()
	}
	t.out.Store(sent)
}

// broadcast sends an event behind everything that was emitted before.
func (t *Task) broadcast(e element.Element) error {
	if err := t.flush(); err != nil {
		return err
	}
	for _, o := range t.cfg.Outputs {
		if err := o.Broadcast(e); err != nil {
			return err
		}
	}
	return nil
}

// endInput lets the operators emit what they hold, head first, and says that no more records come: event time has come to its end, and then the
// operators finish.
func (t *Task) endInput(ctx context.Context, flush bool) error {
	if flush {
		for i, op := range t.cfg.Chain.Operators {
			if err := t.endOfTime(ctx, i); err != nil {
				return err
			}
			f, ok := op.Operator.(stream.Finisher)
			if !ok {
				continue
			}
			t.enter(i)
			if err := f.Finish(); err != nil {
				return err
			}
		}
	}
	if err := t.broadcast(element.Element{Kind: element.EndOfData}); err != nil {
		return err
	}
	t.ended.Store(true)
	t.cfg.JobMaster.EndOfData()
	return nil
}

// notify tells every operator that listens, even if one fails; the first error fails the task.
func (t *Task) notify(tell func(stream.CheckpointListener) error) error {
	var first error
	for i, op := range t.cfg.Chain.Operators {
		l, ok := op.Operator.(stream.CheckpointListener)
		if !ok {
			continue
		}
		t.enter(i)
		if err := t.guard(func() error { return tell(l) }); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// close closes every operator, also those that were never opened: they know.
func (t *Task) close() error {
	var first error
	for i, op := range t.cfg.Chain.Operators {
		t.enter(i)
		if err := t.guard(op.Close); err != nil && first == nil {
			first = err
		}
	}
	return first
}

var errTaskEnded = errors.New("the task has ended")

// enter says that an operator's code runs now. Operators that call each other say it themselves.
func (t *Task) enter(operator int) { *t.cfg.Chain.Running = operator }

// guard turns a panic of f into an error that names the operator.
func (t *Task) guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = t.panicked(t.cfg.Chain.Operators[*t.cfg.Chain.Running], r)
		}
	}()
	return f()
}

// panicked is the error of a panic in an operator's code. It is called by the deferred function that has recovered r.
func (t *Task) panicked(op Operator, r any) error {
	if err, ok := r.(error); ok && stream.IsStateFailure(err) {
		return &stream.OperatorError{Operator: op.ID, Err: err} // no fault of the code that it went through
	}
	t.cfg.Log.Error("panic", zap.String("operator", op.ID), zap.Any("value", r), zap.ByteString("stack", debug.Stack()))
	text := fmt.Sprintf("panic: %v", r)
	if at := origin(); at != "" {
		text += " at " + at
	}
	if k, ok := op.Operator.(interface{ RunningKey() string }); ok {
		text += ", key " + k.RunningKey()
	}
	return &stream.OperatorError{Operator: op.ID, Err: errors.New(text)}
}
