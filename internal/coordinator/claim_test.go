package coordinator_test

import (
	"slices"
	"testing"

	"github.com/weirstream/weir/internal/checkpoint"
	. "github.com/weirstream/weir/internal/coordinator"
)

// discards lists the directories that effects have deleted.
func discards(effects []Effect) (dirs []string) {
	for _, e := range effects {
		if d, ok := e.(Discard); ok {
			dirs = append(dirs, d.Dir)
		}
	}
	return dirs
}

func TestClaim_TheOriginIsDeletedWhenItIsSubsumed(t *testing.T) {
	for _, c := range []struct {
		name     string
		kind     checkpoint.Kind
		claimed  bool
		retained int
		gone     checkpoint.ID // with which checkpoint the origin goes; 0: never
	}{
		{"not claimed", checkpoint.Checkpoint, false, 1, 0},
		{"a savepoint, not claimed", checkpoint.Savepoint, false, 1, 0},
		{"claimed", checkpoint.Checkpoint, true, 1, 8},
		{"a claimed savepoint", checkpoint.Savepoint, true, 1, 8},
		{"claimed, of three", checkpoint.Checkpoint, true, 3, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			core := manual(t, testGraph(), func(cfg *Config) {
				cfg.Options.Retained = c.retained
				cfg.Restored = &checkpoint.Completed{
					Dir: "/origin", Claimed: c.claimed,
					Metadata: &checkpoint.Metadata{Job: "other", ID: 7, Kind: c.kind},
				}
			})
			for id := checkpoint.ID(8); id < 13; id++ {
				if got := core.Latest().Metadata.ID; got != id-1 {
					t.Fatalf("the latest before %d is %d", id, got)
				}
				effects := take(core, tasksOf(testGraph(), 1), id)
				for _, e := range effects {
					if d, ok := e.(Discard); ok {
						core.Step(epoch0, Discarded{ID: d.ID})
					}
				}
				out := discards(effects)
				if gone := slices.Contains(out, "/origin"); gone != (id == c.gone) {
					t.Errorf("checkpoint %d deletes %v", id, out)
				}
				if n := len(core.Retained()); n > c.retained {
					t.Errorf("%d are retained after %d", n, id)
				}
			}
		})
	}
}

// A job that has no checkpoint yet restores from what it claimed, so that it must not go; with the checkpoints of the job it goes too.
func TestClaim_EndsWithTheJob(t *testing.T) {
	for _, claimed := range []bool{true, false} {
		for _, all := range []bool{true, false} {
			core := manual(t, testGraph(), func(cfg *Config) {
				cfg.Restored = &checkpoint.Completed{Dir: "/origin", Claimed: claimed, Metadata: &checkpoint.Metadata{Job: "other", ID: 7, Kind: checkpoint.Savepoint}}
			})
			out := core.Step(epoch0, TasksStopped{})
			if core.Latest() == nil || len(discards(out)) > 0 {
				t.Errorf("the origin is gone after a failure: %v", out)
			}
			out = core.Step(epoch0, Closed{DeleteAll: all})
			if gone := slices.Contains(discards(out), "/origin"); gone != (claimed && all) {
				t.Errorf("claimed %t, delete all %t: %v", claimed, all, out)
			}
		}
	}
}
