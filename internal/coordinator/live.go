package coordinator

import "github.com/weirstream/weir/internal/checkpoint"

// LowestPending is the lowest id in a history that is not decided: one that is on its way, else the next; 0 for an empty history, of which nothing
// is known.
func LowestPending(list []Stats) checkpoint.ID {
	lowest, next := checkpoint.ID(0), checkpoint.ID(0)
	for _, s := range list {
		next = max(next, s.ID+1)
		if (s.State == StatePending || s.State == StateFinalizing) && (lowest == 0 || s.ID < lowest) {
			lowest = s.ID
		}
	}
	if lowest > 0 {
		return lowest
	}
	return next
}
