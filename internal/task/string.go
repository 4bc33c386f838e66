package task

import (
	"fmt"

	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/job"
)

// The strings below are lines of logs and transcripts: one each, stable.

func describe(cp element.Checkpoint) string {
	switch {
	case cp.Final:
		return fmt.Sprintf("%d final", cp.ID)
	case cp.Stop != job.StopNone:
		return fmt.Sprintf("%d %s", cp.ID, cp.Stop)
	}
	return fmt.Sprint(cp.ID)
}

// String is one line.
func (e Trigger) String() string { return "Trigger " + describe(e.Checkpoint) }

// String is one line.
func (e Barrier) String() string {
	return fmt.Sprintf("Barrier %s on %d", describe(e.Checkpoint), e.Channel)
}

// String is one line.
func (e Cancel) String() string { return fmt.Sprintf("Cancel %d on %d", e.ID, e.Channel) }

// String is one line.
func (e Completed) String() string { return fmt.Sprintf("Completed %d", e.ID) }

// String is one line.
func (e Aborted) String() string { return fmt.Sprintf("Aborted %d latest=%d", e.ID, e.Latest) }

// String is one line.
func (e ChannelEnded) String() string { return fmt.Sprintf("ChannelEnded %d", e.Channel) }

// String is one line.
func (e ChannelClosed) String() string { return fmt.Sprintf("ChannelClosed %d", e.Channel) }

// String is one line.
func (InputEnded) String() string { return "InputEnded" }

// String is one line.
func (e Block) String() string { return fmt.Sprintf("Block %d", e.Channel) }

// String is one line.
func (Unblock) String() string { return "Unblock" }

// String is one line.
func (e Snapshot) String() string { return "Snapshot " + describe(e.Checkpoint) }

// String is one line.
func (e ForwardCancel) String() string { return fmt.Sprintf("ForwardCancel %d", e.ID) }

// String is one line.
func (e Decline) String() string { return fmt.Sprintf("Decline %d %s", e.ID, e.Reason) }

// String is one line.
func (e StopSnapshot) String() string { return fmt.Sprintf("StopSnapshot %d", e.ID) }

// String is one line.
func (e NotifyComplete) String() string { return fmt.Sprintf("NotifyComplete %d", e.ID) }

// String is one line.
func (e NotifyAborted) String() string { return fmt.Sprintf("NotifyAborted %d", e.ID) }

// String is one line.
func (e EndInput) String() string { return fmt.Sprintf("EndInput flush=%t", e.Flush) }

// String is one line.
func (Finish) String() string { return "Finish" }
