package jobmaster

import (
	"context"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/slotpool"
)

// call is one call to an executor; it feeds its result to the loop by itself.
type call func(ctx context.Context, e gateway.TaskExecutor)

// sender makes the calls of one job to one executor, one after another, so that a trigger never overtakes the deployment before it. It
// belongs to one session of the executor: when that ends, the calls that wait are forgotten, since everything there is lost.
type sender struct {
	session *slotpool.Session
	calls   chan call
	stop    context.CancelFunc
}

// startSender starts a sender. It ends with the session, with ctx, or by stop.
func (l *jobLoop) startSender(ctx context.Context, s *slotpool.Session) *sender {
	ctx, cancel := context.WithCancel(ctx)
	out := &sender{session: s, calls: make(chan call, senderCapacity), stop: cancel}
	l.work.Go(func() {
		select {
		case <-s.Ended():
		case <-ctx.Done():
		}
		cancel()
	})
	l.work.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case c := <-out.calls:
				c(ctx, s.Client)
			}
		}
	})
	return out
}

// send queues a call; false: too many wait.
func (s *sender) send(c call) bool {
	select {
	case s.calls <- c:
		return true
	default:
		return false
	}
}
