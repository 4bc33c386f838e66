package task

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/element"
)

// TestAligner_AgainstGate plays random channels into a core, with a gate that obeys Block and Unblock, and checks what alignment promises:
// a snapshot is taken when each channel stands exactly at its barrier; each id is snapshotted at most once and they ascend; a blocked
// channel is never read; when all channels are at rest nothing is blocked for a checkpoint that cannot come any more. Channels may close
// early: such a one stands at every barrier. When all have, the task is triggered.
func TestAligner_AgainstGate(t *testing.T) {
	for seed := range uint64(3000) {
		if err := playGate(rand.New(rand.NewPCG(seed, 7))); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// gate is the dumb twin of an input gate with some channels of events.
type gate struct {
	core    *Core
	queues  [][]element.Element
	at      []checkpoint.ID // the latest barrier that was read
	blocked []bool
	closed  []bool
	taken   []checkpoint.ID
	log     []string
}

func playGate(rng *rand.Rand) error {
	channels := 1 + rng.IntN(4)
	g := &gate{core: NewCore(channels, Start{}), queues: make([][]element.Element, channels), at: make([]checkpoint.ID, channels), blocked: make([]bool, channels), closed: make([]bool, channels)}
	ids := checkpoint.ID(1 + rng.IntN(8))
	closing := 0
	for c := range channels {
		last := ids
		if rng.IntN(4) == 0 {
			last = checkpoint.ID(rng.IntN(int(ids) + 1))
			closing++
		}
		for id := checkpoint.ID(1); id <= last; id++ {
			cp := element.Checkpoint{ID: int64(id)}
			switch n := rng.IntN(20); {
			case n < 2 && id < ids: // lost: the sender never had the trigger
			case n < 4 && id < ids:
				g.queues[c] = append(g.queues[c], element.Element{Kind: element.Cancel, Checkpoint: cp})
			default:
				g.queues[c] = append(g.queues[c], element.Element{Kind: element.Barrier, Checkpoint: cp})
			}
		}
		if last < ids || rng.IntN(8) == 0 {
			g.queues[c] = append(g.queues[c], element.Element{Kind: element.Closed})
		}
	}
	triggered := false
	for {
		if closing == channels && !triggered && rng.IntN(4) == 0 {
			triggered = true
			if err := g.step(Trigger{element.Checkpoint{ID: int64(ids)}}); err != nil {
				return err
			}
		}
		if rng.IntN(6) == 0 {
			id := 1 + rng.Int64N(int64(ids))
			if id < int64(ids) {
				if err := g.step(Aborted{ID: checkpoint.ID(id)}); err != nil {
					return err
				}
			}
		}
		var open []int
		for c := range channels {
			if !g.blocked[c] && len(g.queues[c]) > 0 {
				open = append(open, c)
			}
		}
		if len(open) == 0 && (triggered || closing < channels) {
			break
		}
		if len(open) == 0 {
			continue
		}
		if err := g.read(open[rng.IntN(len(open))]); err != nil {
			return err
		}
	}
	// The last checkpoint has a barrier on every channel and is never canceled, so it must have been taken and nothing may be left.
	for c := range channels {
		if g.blocked[c] || len(g.queues[c]) > 0 {
			return fmt.Errorf("channel %d hangs: %v", c, g.log)
		}
	}
	if len(g.taken) == 0 || g.taken[len(g.taken)-1] != ids {
		return fmt.Errorf("took %v, want the last to be %d: %v", g.taken, ids, g.log)
	}
	return nil
}

func (g *gate) read(channel int) error {
	e := g.queues[channel][0]
	g.queues[channel] = g.queues[channel][1:]
	id := checkpoint.ID(e.Checkpoint.ID)
	if e.Kind == element.Closed {
		g.closed[channel] = true
		return g.step(ChannelClosed{channel})
	}
	if e.Kind == element.Cancel {
		return g.step(Cancel{channel, id})
	}
	g.at[channel] = id
	return g.step(Barrier{channel, e.Checkpoint})
}

func (g *gate) step(ev Event) error {
	effects := g.core.Step(time.UnixMilli(1), ev)
	g.log = append(g.log, fmt.Sprintf("%s -> %v", ev, effects))
	for _, eff := range effects {
		switch eff := eff.(type) {
		case Block:
			if g.blocked[eff.Channel] {
				return fmt.Errorf("channel %d is blocked twice: %v", eff.Channel, g.log)
			}
			g.blocked[eff.Channel] = true
		case Unblock:
			clear(g.blocked)
		case Snapshot:
			id := checkpoint.ID(eff.Checkpoint.ID)
			if len(g.taken) > 0 && id <= g.taken[len(g.taken)-1] {
				return fmt.Errorf("snapshot of %d after %v: %v", id, g.taken, g.log)
			}
			for c, at := range g.at {
				if at != id && !g.closed[c] {
					return fmt.Errorf("snapshot of %d with channels at %v: %v", id, g.at, g.log)
				}
			}
			g.taken = append(g.taken, id)
		}
	}
	return nil
}

// TestAborted_RemembersABoundedNumber: ids whose barriers never come must not pile up, and the newest are the ones that matter.
func TestAborted_RemembersABoundedNumber(t *testing.T) {
	c := NewCore(1, Start{})
	now := time.UnixMilli(1)
	for id := range checkpoint.ID(10 * maxRemembered) {
		c.Step(now, Aborted{ID: id + 1})
	}
	if len(c.aborted) != maxRemembered {
		t.Errorf("%d ids are remembered, want %d", len(c.aborted), maxRemembered)
	}
	last := int64(10 * maxRemembered)
	got := c.Step(now, Barrier{0, element.Checkpoint{ID: last}})
	if want := []Effect{ForwardCancel{checkpoint.ID(last)}}; !slices.Equal(got, want) {
		t.Errorf("barrier of the latest aborted checkpoint: %v, want %v", got, want)
	}
	c.Step(now, Barrier{0, element.Checkpoint{ID: last + 1}})
	if len(c.aborted) != 0 {
		t.Errorf("after a later snapshot %d ids are still remembered", len(c.aborted))
	}
}
