package board

import (
	"fmt"
	"testing"

	"github.com/weirstream/weir/internal/gateway"
)

func TestBoard_RemembersTheNewestEvents(t *testing.T) {
	b := New()
	b.Note(gateway.JobEvent{Text: "first"})
	seen := b.Look(0).Noted
	for n := range timelineLength + 10 {
		b.Note(gateway.JobEvent{Text: fmt.Sprint(n)})
	}
	g := b.Look(seen)
	if len(g.Events) != timelineLength || g.Events[0].Text != "10" || g.Events[timelineLength-1].Text != fmt.Sprint(timelineLength+9) {
		t.Errorf("%d events, the first %+v", len(g.Events), g.Events[0])
	}
	if again := b.Look(g.Noted); len(again.Events) != 0 {
		t.Errorf("events %v are shown twice", again.Events)
	}
}
