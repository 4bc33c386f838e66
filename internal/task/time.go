package task

import (
	"context"
	"time"

	"github.com/weirstream/weir/stream"
)

// tick lets the operators do what is due by the clock, and notes when the next thing is. It reports whether there is more to do at once. A task that must
// emit nothing, because its input has ended or because the job is being stopped, fires no timers: they are in the snapshot.
func (t *Task) tick() (more bool, err error) {
	t.times.operators = time.Time{}
	if t.core.Ended() || t.core.Suspended() {
		return false, nil
	}
	now, next := t.cfg.Chain.Clock.Now(), stream.MaxTimestamp
	for i, op := range t.cfg.Chain.Operators {
		l, ok := op.Operator.(stream.TimeListener)
		if !ok {
			continue
		}
		t.enter(i)
		due, err := l.Tick()
		if err != nil {
			return false, err
		}
		next = min(next, due)
	}
	if next < stream.MaxTimestamp {
		t.times.operators = time.UnixMilli(int64(next))
	}
	return next <= now, nil
}

// endOfTime lets an operator fire all its event-time timers, also those that they set.
func (t *Task) endOfTime(ctx context.Context, operator int) error {
	l, ok := t.cfg.Chain.Operators[operator].Operator.(stream.TimeListener)
	for more := ok; more; {
		if ctx.Err() != nil { // a timer may set the next one for ever
			return context.Cause(ctx)
		}
		t.enter(operator)
		var err error
		if more, err = l.AdvanceWatermark(stream.MaxTimestamp); err != nil {
			return err
		}
	}
	return nil
}
