package coordinator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/checkpoint"
	. "github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/retention"
)

func TestActivity_NothingBelowItCanStillComplete(t *testing.T) {
	bases := func(ids ...checkpoint.ID) []checkpoint.ID { return ids }
	for _, c := range []struct {
		name    string
		history []Stats
		want    retention.Activity
	}{
		{name: "nothing is known"},
		{name: "all decided", history: []Stats{{ID: 3, Kind: checkpoint.Checkpoint, State: StateCompleted}, {ID: 4, State: StateAborted, Base: 2}},
			want: retention.Activity{Lowest: 5, Bases: bases(3)}},
		{name: "pending", history: []Stats{{ID: 3, State: StateCompleted, Kind: checkpoint.Savepoint}, {ID: 4, State: StatePending, Base: 2}, {ID: 5, State: StatePending, Base: 2}},
			want: retention.Activity{Lowest: 4, Bases: bases(2)}},
		{name: "finalizing", history: []Stats{{ID: 3, State: StateFinalizing}, {ID: 4, State: StateAborted}}, want: retention.Activity{Lowest: 3}},
		{name: "not in order", history: []Stats{{ID: 9, State: StatePending, Base: 8}, {ID: 7, State: StateFinalizing, Base: 6}, {ID: 8, State: StateCompleted, Kind: checkpoint.Checkpoint}},
			want: retention.Activity{Lowest: 7, Bases: bases(8, 6)}},
	} {
		if diff := cmp.Diff(c.want, Activity(c.history)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}
