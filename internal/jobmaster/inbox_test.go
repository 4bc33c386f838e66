package jobmaster

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/weirstream/weir/internal/gateway"
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

func TestSender_RefusesWhatDoesNotFit(t *testing.T) {
	s := &sender{calls: make(chan call, senderCapacity)}
	for range senderCapacity {
		if !s.send(nil) {
			t.Fatal("a call was refused while there was room")
		}
	}
	if s.send(nil) {
		t.Error("a call was taken beyond the capacity")
	}
}

func TestBoard_RemembersTheNewestEvents(t *testing.T) {
	b := newBoard()
	b.note(gateway.JobEvent{Text: "first"})
	seen := b.look(0).noted
	for n := range timelineLength + 10 {
		b.note(gateway.JobEvent{Text: fmt.Sprint(n)})
	}
	g := b.look(seen)
	if len(g.events) != timelineLength || g.events[0].Text != "10" || g.events[timelineLength-1].Text != fmt.Sprint(timelineLength+9) {
		t.Errorf("%d events, the first %+v", len(g.events), g.events[0])
	}
	if again := b.look(g.noted); len(again.events) != 0 {
		t.Errorf("events %v are shown twice", again.events)
	}
}
