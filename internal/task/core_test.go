package task

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/job"
)

// TestTranscripts runs testdata: commands are events, the output is the effects; -rewrite writes what the core does now. Commands:
//
//	new [channels=2] [restored=N] [ended] [stopped]
//	trigger ID [final]         barrier CHANNEL ID [final]      cancel CHANNEL ID      both with [suspend] or [drain]
//	completed ID               aborted ID [latest=N]
//	end CHANNEL                close CHANNEL                   end-input                       state
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var core *Core
		now := time.UnixMilli(1_700_000_000_000)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			now = now.Add(time.Second)
			switch d.Cmd {
			case "new":
				channels := 2
				d.MaybeScanArgs(t, "channels", &channels)
				restored := 0
				d.MaybeScanArgs(t, "restored", &restored)
				core = NewCore(channels, Start{Restored: checkpoint.ID(restored), Ended: d.HasArg("ended"), Stopped: d.HasArg("stopped")})
				return "ok"
			case "state":
				out := fmt.Sprintf("notified %d, ended %t", core.Notified(), core.Ended())
				if core.Suspended() {
					out += ", suspended"
				}
				return out
			}
			return lines(core.Step(now, parseEvent(t, d)))
		})
	})
}

func lines(effects []Effect) string {
	if len(effects) == 0 {
		return "none"
	}
	var out []string
	for _, e := range effects {
		out = append(out, e.String())
	}
	return strings.Join(out, "\n")
}

func parseEvent(t *testing.T, d *datadriven.TestData) Event {
	number := func(i int) int {
		n, err := strconv.Atoi(d.CmdArgs[i].Key)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return n
	}
	cp := func(i int) element.Checkpoint {
		out := element.Checkpoint{ID: int64(number(i)), Final: d.HasArg("final")}
		for _, mode := range []job.StopMode{job.StopSuspend, job.StopDrain} {
			if d.HasArg(mode.String()) {
				out.Stop = mode
			}
		}
		return out
	}
	switch d.Cmd {
	case "trigger":
		return Trigger{cp(0)}
	case "barrier":
		return Barrier{number(0), cp(1)}
	case "cancel":
		return Cancel{number(0), checkpoint.ID(number(1))}
	case "completed":
		return Completed{checkpoint.ID(number(0))}
	case "aborted":
		latest := 0
		d.MaybeScanArgs(t, "latest", &latest)
		return Aborted{checkpoint.ID(number(0)), checkpoint.ID(latest)}
	case "end":
		return ChannelEnded{number(0)}
	case "close":
		return ChannelClosed{number(0)}
	case "end-input":
		return InputEnded{}
	}
	d.Fatalf(t, "unknown command %q", d.Cmd)
	return nil
}

// TestFinished_TakesNothing: whatever comes after Finish is of no interest to a task that is done.
func TestFinished_TakesNothing(t *testing.T) {
	c := NewCore(1, Start{})
	now := time.UnixMilli(1)
	c.Step(now, ChannelEnded{0})
	c.Step(now, Barrier{0, element.Checkpoint{ID: 1, Final: true}})
	if got := c.Step(now, Completed{1}); !slices.Contains(got, Effect(Finish{})) {
		t.Fatalf("after the final checkpoint: %v, want Finish", got)
	}
	for _, ev := range []Event{
		Completed{2}, Aborted{2, 1}, Barrier{0, element.Checkpoint{ID: 2}}, Cancel{0, 2}, Trigger{element.Checkpoint{ID: 2}}, ChannelEnded{0}, ChannelClosed{0}, InputEnded{},
	} {
		if got := c.Step(now, ev); len(got) > 0 {
			t.Errorf("%s after Finish: %v, want nothing", ev, got)
		}
	}
}

// TestSnapshot_SaysWhenTheFirstBarrierCame: the alignment time of the metrics runs from there.
func TestSnapshot_SaysWhenTheFirstBarrierCame(t *testing.T) {
	first := time.UnixMilli(1000)
	c := NewCore(2, Start{})
	c.Step(first, Barrier{1, element.Checkpoint{ID: 1}})
	got := c.Step(first.Add(time.Second), Barrier{0, element.Checkpoint{ID: 1}})
	if s, ok := got[0].(Snapshot); !ok || !s.FirstAt.Equal(first) {
		t.Errorf("effects %v, want a snapshot with first barrier at %s", got, first)
	}
	s, ok := NewCore(0, Start{}).Step(first, Trigger{element.Checkpoint{ID: 1}})[0].(Snapshot)
	if !ok || !s.FirstAt.Equal(first) {
		t.Errorf("snapshot of a source: first at %s, want %s", s.FirstAt, first)
	}
}
