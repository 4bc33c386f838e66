package inbox

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestInbox_IsBoundedForCallersAndOpenForResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New[string]()
		for range Capacity {
			if err := b.Offer(t.Context(), "x"); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		refused, accepted := make(chan error, 1), make(chan error, 1)
		go func() { refused <- b.Offer(ctx, "x") }()
		synctest.Wait()
		cancel(gone)
		if err := <-refused; !errors.Is(err, gone) {
			t.Errorf("offer to a full inbox ended with %v", err)
		}
		b.Post("y")
		go func() { accepted <- b.Offer(t.Context(), "x") }()
		synctest.Wait()
		if got := len(b.Take()); got != Capacity+1 {
			t.Errorf("took %d messages, want %d", got, Capacity+1)
		}
		if err := <-accepted; err != nil {
			t.Errorf("offer after take: %v", err)
		}
		b.End()
		for range 2 * Capacity { // with room and end both ready, at most the rest of the room may be taken
			if err := b.Offer(t.Context(), "x"); errors.Is(err, ErrEnded) {
				return
			}
		}
		t.Error("an inbox whose loop has ended takes everything")
	})
}

func TestAsk_OfALoopThatEnds_IsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New[string]()
		got := make(chan error, 1)
		go func() {
			_, err := Ask(t.Context(), b, func(chan<- bool) string { return "x" })
			got <- err
		}()
		synctest.Wait()
		b.End()
		if err := <-got; !errors.Is(err, ErrEnded) {
			t.Errorf("ask ended with %v", err)
		}
	})
}
