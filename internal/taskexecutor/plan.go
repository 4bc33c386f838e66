package taskexecutor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/plan"
	"github.com/weirstream/weir/stream"
)

// PlanJob implements gateway.TaskExecutor.
func (e *Executor) PlanJob(ctx context.Context, r gateway.PlanJob) (*job.Graph, error) {
	p, err := e.program(r.JobName, r.Params, r.Options)
	if err != nil {
		return nil, err
	}
	if r.WithoutSplits {
		return p.Graph, nil
	}
	if err := p.FindSplits(ctx); err != nil {
		return nil, badParameter(fmt.Errorf("job %s: %w", r.JobName, err))
	}
	return p.Graph, nil
}

func (e *Executor) program(name string, params map[string]string, opts job.Options) (*plan.Program, error) {
	i := slices.IndexFunc(e.cfg.Jobs, func(d stream.Definition) bool { return d.Name == name })
	if i < 0 {
		return nil, &gateway.Error{
			Code: gateway.NotFound, Reason: gateway.ReasonUnknownJobName,
			Message: fmt.Sprintf("executor %s has no job %q", e.cfg.ID, name),
			Remedy:  "it has: " + strings.Join(e.jobNames(), ", "),
		}
	}
	p, err := plan.New(e.cfg.Jobs[i], params, opts)
	if err != nil {
		return nil, badParameter(err)
	}
	return p, nil
}

func (e *Executor) jobNames() []string {
	names := make([]string, len(e.cfg.Jobs))
	for i, d := range e.cfg.Jobs {
		names[i] = d.Name
	}
	return names
}

func badParameter(err error) error {
	return &gateway.Error{Code: gateway.InvalidArgument, Reason: gateway.ReasonBadParameter, Message: err.Error()}
}
