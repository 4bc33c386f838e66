package jobmaster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/recovery"
	"github.com/weirstream/weir/internal/slotpool"
)

// Submit implements gateway.Jobs. Everything that can be found wrong is found before the job exists.
func (m *JobMaster) Submit(ctx context.Context, r gateway.Submission) (job.ID, error) {
	choice, err := m.chooseOrigin(ctx, r)
	if err != nil {
		return "", err
	}
	if r.Options, err = recovery.Adopt(r, choice); err != nil {
		return "", err
	}
	if err := gateway.CheckOptions(r.Options); err != nil {
		return "", err
	}
	if r.Options.Checkpoint.IntervalDuringBacklog == 0 {
		r.Options.Checkpoint.IntervalDuringBacklog = m.cfg.Rules.IntervalDuringBacklog
	}
	graph, err := plan(ctx, m.registry, gateway.PlanJob{JobName: r.JobName, Params: r.Params, Options: r.Options})
	if err != nil {
		return "", err
	}
	from, err := m.fitOrigin(r, choice, graph)
	if err != nil {
		return "", err
	}
	s := spec{
		id: m.cfg.NewID(), order: m.nextOrder(), name: r.JobName, params: r.Params, options: r.Options.Effective(),
		graph: graph, submitted: time.Now(), restored: from.Completed,
	}
	if s.hooks, err = m.cfg.openHooks(ctx, s); err != nil {
		return "", err
	}
	l := newJobLoop(&m.cfg, m.registry, s)
	if err := m.record(ctx, l); err != nil {
		return "", err
	}
	l.log.Info("job submitted", zap.String("name", r.JobName), zap.Any("params", r.Params), zap.String("restore", r.RestorePath))
	for _, r := range from.Remarks {
		l.note(r)
	}
	if err := m.start(ctx, l); err != nil {
		m.forget(ctx, []job.ID{l.id}) // it has not begun
		return "", err
	}
	return l.id, nil
}

// plan has an executor that has the job make its graph. One that cannot be reached gives way to the next.
func plan(ctx context.Context, registry *slotpool.Registry, r gateway.PlanJob) (*job.Graph, error) {
	if r.JobName == "" {
		return nil, &gateway.Error{
			Code: gateway.InvalidArgument, Reason: gateway.ReasonBadParameter, Message: "the submission names no job", Remedy: "name the job to run",
		}
	}
	have, all := registry.With(r.JobName)
	if len(all) == 0 {
		return nil, &gateway.Error{
			Code: gateway.Unavailable, Reason: gateway.ReasonNoExecutors, Message: "no task executor is registered",
			Remedy: "start a taskexecutor with --jobmaster set to this job master, then try again",
		}
	}
	if len(have) == 0 {
		return nil, unknownJobName(r.JobName, all)
	}
	ctx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	var last error
	for _, s := range have {
		graph, err := s.Client.PlanJob(ctx, r)
		if err == nil {
			return graph, nil
		}
		last = fmt.Errorf("plan job %s on executor %s: %w", r.JobName, s.Registration.Executor, err)
		if code := gateway.CodeOf(err); code != gateway.Unavailable && code != gateway.DeadlineExceeded {
			break
		}
	}
	return nil, last
}

func unknownJobName(name string, all []*slotpool.Session) error {
	var names []string
	for _, s := range all {
		names = append(names, s.Registration.Jobs...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return &gateway.Error{
		Code: gateway.NotFound, Reason: gateway.ReasonUnknownJobName, Message: fmt.Sprintf("no registered task executor has job %q", name),
		Remedy: "jobs that exist: " + strings.Join(names, ", "),
	}
}
