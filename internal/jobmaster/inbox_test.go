package jobmaster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestInbox_IsBoundedForCallersAndOpenForResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newInbox()
		for range inboxCapacity {
			if err := b.offer(t.Context(), cancelRequest{}); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		refused, accepted := make(chan error, 1), make(chan error, 1)
		go func() { refused <- b.offer(ctx, cancelRequest{}) }()
		synctest.Wait()
		cancel(gone)
		if err := <-refused; !errors.Is(err, gone) {
			t.Errorf("offer to a full inbox ended with %v", err)
		}
		b.post(fed{})
		go func() { accepted <- b.offer(t.Context(), cancelRequest{}) }()
		synctest.Wait()
		if got := len(b.take()); got != inboxCapacity+1 {
			t.Errorf("took %d messages, want %d", got, inboxCapacity+1)
		}
		if err := <-accepted; err != nil {
			t.Errorf("offer after take: %v", err)
		}
		close(b.ended)
		for range 2 * inboxCapacity { // with room and end both ready, at most the rest of the room may be taken
			if err := b.offer(t.Context(), cancelRequest{}); errors.Is(err, errLoopEnded) {
				return
			}
		}
		t.Error("an inbox whose loop has ended takes everything")
	})
}

func TestAsk_OfALoopThatEnds_IsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newInbox()
		got := make(chan error, 1)
		go func() {
			_, err := ask(t.Context(), b, func(answer chan<- bool) message { return refusal{answer: answer} })
			got <- err
		}()
		synctest.Wait()
		close(b.ended)
		if err := <-got; !errors.Is(err, errLoopEnded) {
			t.Errorf("ask ended with %v", err)
		}
	})
}
