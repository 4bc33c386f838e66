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
	"github.com/weirstream/weir/internal/slotpool"
)

// Submit implements gateway.Jobs. Everything that can be found wrong is found before the job exists.
func (m *JobMaster) Submit(ctx context.Context, r gateway.Submission) (job.ID, error) {
	if err := checkOptions(r.Options); err != nil {
		return "", err
	}
	if r.Options.Checkpoint.IntervalDuringBacklog == 0 {
		r.Options.Checkpoint.IntervalDuringBacklog = m.cfg.Rules.IntervalDuringBacklog
	}
	graph, err := m.plan(ctx, gateway.PlanJob{JobName: r.JobName, Params: r.Params, Options: r.Options})
	if err != nil {
		return "", err
	}
	from, err := m.readOrigin(ctx, r, graph)
	if err != nil {
		return "", err
	}
	l := newJobLoop(&m.cfg, m.registry, spec{
		id: m.cfg.NewID(), order: m.nextOrder(), name: r.JobName, params: r.Params, options: effective(r.Options),
		graph: graph, submitted: time.Now(), restored: from.completed,
	})
	if err := m.record(ctx, l); err != nil {
		return "", err
	}
	l.log.Info("job submitted", zap.String("name", r.JobName), zap.Any("params", r.Params), zap.String("restore", r.RestorePath))
	for _, r := range from.remarks {
		l.note(r)
	}
	if err := m.start(ctx, l); err != nil {
		m.forget(ctx, []job.ID{l.id}) // it has not begun
		return "", err
	}
	return l.id, nil
}

// effective fills in the defaults, but leaves the parallelism alone: the executors must plan from the very options that the graph was
// planned from.
func effective(o job.Options) job.Options {
	full := o.Normalize()
	full.Parallelism, full.MaxParallelism = o.Parallelism, o.MaxParallelism
	return full
}

// plan has an executor that has the job make its graph. One that cannot be reached gives way to the next.
func (m *JobMaster) plan(ctx context.Context, r gateway.PlanJob) (*job.Graph, error) {
	if r.JobName == "" {
		return nil, &gateway.Error{
			Code: gateway.InvalidArgument, Reason: gateway.ReasonBadParameter, Message: "the submission names no job", Remedy: "name the job to run",
		}
	}
	have, all := m.registry.With(r.JobName)
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

// checkOptions refuses options that no job can run with. The names are those of the flags of weir run.
func checkOptions(o job.Options) error {
	c, r, x := o.Checkpoint, o.Restart, o.Exchange
	for _, check := range []struct {
		bad        bool
		flag, want string
		value      any
	}{
		{o.Parallelism < 0, "--parallelism", "at least 1", o.Parallelism},
		{
			o.MaxParallelism < 0 || o.MaxParallelism > job.MaxMaxParallelism, "--max-parallelism",
			fmt.Sprintf("1 to %d", job.MaxMaxParallelism), o.MaxParallelism,
		},
		{o.Parallelism > o.Normalize().MaxParallelism, "--parallelism", "at most --max-parallelism", o.Parallelism},
		{c.MinPause < 0, "--checkpoint-min-pause", "0 or more", c.MinPause},
		{
			c.IntervalDuringBacklog > 0 && c.IntervalDuringBacklog < o.Normalize().Checkpoint.Interval, "--checkpoint-interval-during-backlog",
			"0, or no less than --checkpoint-interval", c.IntervalDuringBacklog,
		},
		{c.IntervalDuringBacklog > 0 && c.IntervalDuringBacklog < c.MinPause, "--checkpoint-interval-during-backlog", "0, or no less than --checkpoint-min-pause", c.IntervalDuringBacklog},
		{c.Timeout < 0, "--checkpoint-timeout", "more than 0", c.Timeout},
		{
			c.MaxConcurrent < 0 || c.MaxConcurrent > job.MaxConcurrentCheckpoints, "--checkpoint-max-concurrent",
			fmt.Sprintf("1 to %d", job.MaxConcurrentCheckpoints), c.MaxConcurrent,
		},
		{c.Retained < 0, "--checkpoint-retained", "at least 1", c.Retained},
		{c.TolerableFailures < 0, "--checkpoint-tolerable-failures", "0 or more", c.TolerableFailures},
		{!knownStrategy(r.Strategy), "--restart-strategy", "exponential-delay, fixed-delay, failure-rate or none", r.Strategy},
		{r.InitialDelay < 0, "--restart-delay", "0 or more", r.InitialDelay},
		{r.MaxDelay < 0, "--restart-max-delay", "0 or more", r.MaxDelay},
		{r.Multiplier < 0 || r.Multiplier > 0 && r.Multiplier < 1, "--restart-multiplier", "at least 1", r.Multiplier},
		{r.Jitter < 0 || r.Jitter > 1, "--restart-jitter", "0 to 1", r.Jitter},
		{r.ResetAfter < 0, "--restart-reset-after", "0 or more", r.ResetAfter},
		{r.Attempts < 0, "--restart-attempts", "0 or more", r.Attempts},
		{r.Window < 0, "--restart-window", "0 or more", r.Window},
		{x.BatchSize < 0, "--batch-size", "at least 1", x.BatchSize},
		{x.Credits < 0, "--credits", "at least 1", x.Credits},
	} {
		if check.bad {
			return &gateway.Error{
				Code: gateway.InvalidArgument, Reason: gateway.ReasonBadParameter,
				Message: fmt.Sprintf("%s is %v", check.flag, check.value), Remedy: "it can be " + check.want,
			}
		}
	}
	return nil
}

func knownStrategy(s job.Strategy) bool {
	return slices.Contains([]job.Strategy{"", job.ExponentialDelay, job.FixedDelay, job.FailureRate, job.NoRestart}, s)
}
