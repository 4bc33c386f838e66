package coordinator_test

import (
	"testing"

	"github.com/weirstream/weir/internal/checkpoint"
	. "github.com/weirstream/weir/internal/coordinator"
)

func TestLowestPending_NothingBelowItCanStillComplete(t *testing.T) {
	for _, c := range []struct {
		name    string
		history []Stats
		want    checkpoint.ID
	}{
		{name: "nothing is known"},
		{name: "all decided", history: []Stats{{ID: 3, State: StateCompleted}, {ID: 4, State: StateAborted}}, want: 5},
		{name: "pending", history: []Stats{{ID: 3, State: StateCompleted}, {ID: 4, State: StatePending}, {ID: 5, State: StatePending}}, want: 4},
		{name: "finalizing", history: []Stats{{ID: 3, State: StateFinalizing}, {ID: 4, State: StateAborted}}, want: 3},
		{name: "not in order", history: []Stats{{ID: 9, State: StatePending}, {ID: 7, State: StateFinalizing}, {ID: 8, State: StateCompleted}}, want: 7},
	} {
		if got := LowestPending(c.history); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
