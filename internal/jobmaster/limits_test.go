package jobmaster

import (
	"fmt"
	"testing"

	"github.com/weirstream/weir/internal/gateway"
)

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
