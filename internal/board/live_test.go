package board

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/retention"
)

func TestActivity_NothingBelowItCanStillComplete(t *testing.T) {
	bases := func(ids ...checkpoint.ID) []checkpoint.ID { return ids }
	for _, c := range []struct {
		name    string
		history []coordinator.Stats
		want    retention.Activity
	}{
		{name: "nothing is known"},
		{name: "all decided", history: []coordinator.Stats{{ID: 3, Kind: checkpoint.Checkpoint, State: coordinator.StateCompleted}, {ID: 4, State: coordinator.StateAborted, Base: 2}},
			want: retention.Activity{Lowest: 5, Bases: bases(3)}},
		{name: "pending", history: []coordinator.Stats{{ID: 3, State: coordinator.StateCompleted, Kind: checkpoint.Savepoint}, {ID: 4, State: coordinator.StatePending, Base: 2}, {ID: 5, State: coordinator.StatePending, Base: 2}},
			want: retention.Activity{Lowest: 4, Bases: bases(2)}},
		{name: "finalizing", history: []coordinator.Stats{{ID: 3, State: coordinator.StateFinalizing}, {ID: 4, State: coordinator.StateAborted}}, want: retention.Activity{Lowest: 3}},
		{name: "not in order", history: []coordinator.Stats{{ID: 9, State: coordinator.StatePending, Base: 8}, {ID: 7, State: coordinator.StateFinalizing, Base: 6}, {ID: 8, State: coordinator.StateCompleted, Kind: checkpoint.Checkpoint}},
			want: retention.Activity{Lowest: 7, Bases: bases(8, 6)}},
	} {
		if diff := cmp.Diff(c.want, Activity(c.history)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}
