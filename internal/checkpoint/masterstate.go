package checkpoint

import (
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/job"
)

func validateMasterStates(states []MasterState) error {
	if len(states) > MaxMasterStates {
		return fmt.Errorf("states of %d master hooks, at most %d are possible", len(states), MaxMasterStates)
	}
	for i, s := range states {
		switch {
		case s.Hook == "":
			return fmt.Errorf("state of a master hook without an id")
		case i > 0 && s.Hook <= states[i-1].Hook:
			return fmt.Errorf("state of master hook %s after that of %s", s.Hook, states[i-1].Hook)
		case s.State == nil:
			return fmt.Errorf("master hook %s has no state", s.Hook)
		case len(s.State) > MaxMasterStateBytes:
			return fmt.Errorf("master hook %s has %d bytes of state, at most %d are possible", s.Hook, len(s.State), MaxMasterStateBytes)
		}
		if err := checkTexts(s.Hook); err != nil {
			return err
		}
	}
	return nil
}

// MasterState is what a master hook has kept in the checkpoint; nil: nothing.
func (md *Metadata) MasterState(hook string) []byte {
	for _, s := range md.MasterStates {
		if s.Hook == hook {
			return s.State
		}
	}
	return nil
}

// UnmatchedHooks are the master hooks with state in the checkpoint that the job does not have.
func (md *Metadata) UnmatchedHooks(g *job.Graph) (hooks []string) {
	for _, s := range md.MasterStates {
		if !slices.Contains(g.MasterHooks, s.Hook) {
			hooks = append(hooks, s.Hook)
		}
	}
	return hooks
}

// withoutHooks leaves the states out that the job has no hooks for.
func withoutHooks(states []MasterState, g *job.Graph) []MasterState {
	return slices.DeleteFunc(slices.Clone(states), func(s MasterState) bool { return !slices.Contains(g.MasterHooks, s.Hook) })
}

// compareHooks says for each master hook what a restore would do: those of the job in its order, then the dropped ones.
func compareHooks(md *Metadata, g *job.Graph) (out []Comparison) {
	for _, id := range g.MasterHooks {
		c := Comparison{Hook: id, Outcome: Matched}
		if md.MasterState(id) == nil {
			c.Outcome, c.Detail = New, "the checkpoint has no state of it"
		}
		out = append(out, c)
	}
	for _, id := range md.UnmatchedHooks(g) {
		out = append(out, Comparison{Hook: id, Outcome: Dropped, Detail: "the job has no such master hook"})
	}
	return out
}
