package task

import (
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/element"
)

// maxRemembered bounds how many aborted checkpoints a task remembers whose barriers it has not seen.
const maxRemembered = 64

// Core is the checkpoint protocol of one task: aligned, exactly once. It is pure: Step has no effect but the ones it returns.
type Core struct {
	inputs struct {
		open    int    // channels without end of data
		closed  []bool // by channel: its sender has finished, so that it stands at every barrier
		running int    // channels that are not closed
	}

	current  *element.Checkpoint // being aligned
	aligned  []bool              // channels whose barrier of current has come
	missing  int                 // channels whose barrier of current has not come
	firstAt  time.Time           // when the first barrier of current came
	seen     checkpoint.ID       // the highest id that was snapshotted, cancelled or given up
	taken    checkpoint.ID       // the highest id that was snapshotted here
	stopped  checkpoint.ID       // the highest id whose abort the operators have been told
	aborted  []checkpoint.ID     // above seen: their barriers will come to nothing
	notified checkpoint.ID       // the highest id whose completion the operators have been told
	last     checkpoint.ID       // the first that was snapshotted after the end of input: what completes from there on has everything; 0: none
	stop     checkpoint.ID       // was snapshotted and stops the job if it completes: nothing is emitted until its fate is known; 0: none
	flushed  bool                // the operators have been finished, here or before what was restored
	ended    bool                // the end of input has been reached here
	finished bool
}

// Start is what a core begins from; zero: a fresh start.
type Start struct {
	Restored checkpoint.ID // 0: none
	Ended    bool          // the operators had been finished before that
	Stopped  bool          // the job was stopped with it: the task ends its input, flushes nothing, and finishes when it is told again that it has completed
}

// NewCore returns the core of a task with that many input channels, 0 for a source.
func NewCore(channels int, from Start) *Core {
	c := &Core{aligned: make([]bool, channels), seen: from.Restored, notified: from.Restored, flushed: from.Ended}
	if from.Stopped {
		c.stop, c.notified, c.flushed = from.Restored, from.Restored-1, true
	}
	c.inputs.open, c.inputs.running, c.inputs.closed = channels, channels, make([]bool, channels)
	return c
}

// Notified is the highest checkpoint whose completion the task has been told.
func (c *Core) Notified() checkpoint.ID { return c.notified }

// Ended reports whether the operators have been finished: nothing but barriers is to come.
func (c *Core) Ended() bool { return c.flushed }

// Suspended reports whether a source must emit nothing, because the job is being stopped.
func (c *Core) Suspended() bool { return c.stop > 0 }

// Event is what happens to a task. Every event has a stable one-line String.
type Event interface {
	event()
	String() string
}

// Effect is what the task has to do, in the order of the effects. Every effect has a stable one-line String.
type Effect interface {
	effect()
	String() string
}

// The events.
type (
	// Trigger: the coordinator wants a barrier injected here: no task that runs is in front of this one.
	Trigger struct{ Checkpoint element.Checkpoint }
	// Barrier: a barrier came in.
	Barrier struct {
		Channel    int
		Checkpoint element.Checkpoint
	}
	// Cancel: a channel says that it will have no barrier of ID.
	Cancel struct {
		Channel int
		ID      checkpoint.ID
	}
	// Completed: the coordinator says that ID is durable.
	Completed struct{ ID checkpoint.ID }
	// Aborted: the coordinator says that ID will never be durable, and which one is the latest that is; 0: none.
	Aborted struct{ ID, Latest checkpoint.ID }
	// ChannelEnded: a channel has no more records.
	ChannelEnded struct{ Channel int }
	// ChannelClosed: the sender of a channel has finished; nothing more comes on it at all.
	ChannelClosed struct{ Channel int }
	// InputEnded: the source of the chain has no more records.
	InputEnded struct{}
)

// The effects.
type (
	// Block: take nothing from a channel until Unblock.
	Block struct{ Channel int }
	// Unblock: take from all channels again.
	Unblock struct{}
	// Snapshot: send the barrier on, then take the snapshot, with nothing in between.
	Snapshot struct {
		Checkpoint element.Checkpoint
		FirstAt    time.Time // when the first barrier came
	}
	// ForwardCancel: tell the tasks behind this one that they will have no barrier of ID from here.
	ForwardCancel struct{ ID checkpoint.ID }
	// Decline: tell the coordinator that this task has no snapshot of ID.
	Decline struct {
		ID     checkpoint.ID
		Reason checkpoint.Reason
	}
	// StopSnapshot: what is still being persisted for ID is of no use.
	StopSnapshot struct{ ID checkpoint.ID }
	// NotifyComplete: tell the operators.
	NotifyComplete struct{ ID checkpoint.ID }
	// NotifyAborted: tell the operators, which have been snapshotted for ID.
	NotifyAborted struct{ ID checkpoint.ID }
	// EndInput: no more records come. With Flush let the operators emit what they hold, then tell the tasks behind and the job master.
	EndInput struct{ Flush bool }
	// Finish: the task is done. Say so to the tasks behind.
	Finish struct{}
)

func (Trigger) event()       {}
func (Barrier) event()       {}
func (Cancel) event()        {}
func (Completed) event()     {}
func (Aborted) event()       {}
func (ChannelEnded) event()  {}
func (ChannelClosed) event() {}
func (InputEnded) event()    {}

func (Block) effect()          {}
func (Unblock) effect()        {}
func (Snapshot) effect()       {}
func (ForwardCancel) effect()  {}
func (Decline) effect()        {}
func (StopSnapshot) effect()   {}
func (NotifyComplete) effect() {}
func (NotifyAborted) effect()  {}
func (EndInput) effect()       {}
func (Finish) effect()         {}

// Step applies an event and returns what follows from it.
func (c *Core) Step(now time.Time, ev Event) []Effect {
	if c.finished {
		return nil
	}
	switch ev := ev.(type) {
	case Trigger:
		return c.trigger(now, ev.Checkpoint)
	case Barrier:
		return c.barrier(now, ev.Channel, ev.Checkpoint)
	case Cancel:
		return c.cancel(ev.ID)
	case Completed:
		return c.complete(ev.ID)
	case Aborted:
		return append(c.complete(ev.Latest), c.abort(ev.ID)...)
	case ChannelEnded:
		c.inputs.open--
		if c.inputs.open == 0 {
			return c.end()
		}
	case ChannelClosed:
		return c.close(ev.Channel)
	case InputEnded:
		return c.end()
	}
	return nil
}

// end flushes the operators, once, and not if that happened before the checkpoint that the task was restored from: their last output is in it.
func (c *Core) end() []Effect {
	if c.ended {
		return nil
	}
	flush := !c.flushed
	c.flushed, c.ended = true, true
	return []Effect{EndInput{flush}}
}
