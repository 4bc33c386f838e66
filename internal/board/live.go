package board

import (
	"slices"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/retention"
)

// Activity tells from a history what a job may still write, and on what base. Of an empty history nothing is known.
func Activity(list []coordinator.Stats) retention.Activity {
	var out retention.Activity
	var next, latest checkpoint.ID
	for _, s := range list {
		next = max(next, s.ID+1)
		if s.State == coordinator.StatePending || s.State == coordinator.StateFinalizing {
			if out.Lowest == 0 || s.ID < out.Lowest {
				out.Lowest = s.ID
			}
			addBase(&out, s.Base)
		}
		if s.State == coordinator.StateCompleted && s.Kind == checkpoint.Checkpoint {
			latest = max(latest, s.ID)
		}
	}
	if out.Lowest == 0 {
		out.Lowest = next
	}
	addBase(&out, latest)
	return out
}

// addBase adds a base, 0 for none.
func addBase(a *retention.Activity, base checkpoint.ID) {
	if base > 0 && !slices.Contains(a.Bases, base) {
		a.Bases = append(a.Bases, base)
	}
}
