package node

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/masterhook"
	"github.com/weirstream/weir/internal/plan"
	"github.com/weirstream/weir/stream"
)

// hookOpener opens the master hooks of the jobs that this program has, by running their definitions.
func hookOpener(jobs []stream.Definition) masterhook.Opener {
	return func(r masterhook.Request) ([]masterhook.Hook, error) {
		i := slices.IndexFunc(jobs, func(d stream.Definition) bool { return d.Name == r.Graph.Name })
		if i < 0 {
			return nil, hookError(r, "this job master has no such job",
				"start the job master from the program that has the job (its command jobmaster), or submit the job without the hook")
		}
		p, err := plan.New(jobs[i], r.Graph.Params, r.Options)
		if err != nil {
			return nil, err
		}
		if diff := plan.Diff(r.Graph, p.Graph); diff != "" {
			return nil, hookError(r, "the job of this job master is of another build: "+diff, "start the job master and the task executors from one build")
		}
		hooks := make([]masterhook.Hook, len(p.Hooks))
		for i, h := range p.Hooks {
			hook, err := h.Open(stream.HookEnv{Job: r.Graph.Name, JobID: string(r.Job), LeaderEpoch: uint64(r.Epoch)})
			if err == nil && hook == nil {
				err = errors.New("there is none")
			}
			if err != nil {
				return nil, fmt.Errorf("master hook %s: %w", h.ID, err)
			}
			hooks[i] = hook
		}
		return hooks, nil
	}
}

func hookError(r masterhook.Request, what, remedy string) error {
	return &gateway.Error{
		Code: gateway.FailedPrecondition, Reason: masterhook.ReasonMasterHooks,
		Message: fmt.Sprintf("job %s has the master hooks %q, but %s", r.Graph.Name, r.Graph.MasterHooks, what), Remedy: remedy,
	}
}
