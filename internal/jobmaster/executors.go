package jobmaster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/inbox"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/slotpool"
)

// RegisterTaskExecutor implements gateway.JobMaster.
func (m *JobMaster) RegisterTaskExecutor(ctx context.Context, r gateway.Registration, registered func(gateway.Registered)) error {
	if err := gateway.CheckRegistration(r); err != nil {
		return err
	}
	done, err := m.registry.Open()
	if err != nil {
		return err
	}
	defer done()
	client, closer, err := m.cfg.Dial(r.Address)
	if err != nil {
		return &gateway.Error{
			Code: gateway.Unavailable, Message: fmt.Sprintf("connect to executor %s at %s: %v", r.Executor, r.Address, err),
			Remedy: "check that the address that it advertises can be reached from the job master",
		}
	}
	if closer != nil {
		defer func() { _ = closer.Close() }()
	}
	log := m.cfg.Log.With(zap.String("executor", string(r.Executor)), zap.String("incarnation", r.Incarnation))
	err = m.registry.Serve(ctx, r, client, m.cfg.HeartbeatTimeout, func() {
		log.Info("executor registered", zap.String("address", r.Address), zap.Int("slots", r.Slots), zap.Strings("jobs", r.Jobs))
		registered(gateway.Registered{Epoch: m.cfg.Epoch, HeartbeatInterval: m.cfg.HeartbeatInterval, CheckpointDir: m.cfg.Archive.At})
	})
	log.Info("executor lost", zap.String("reason", slotpool.LostBecause(err)))
	return err
}

// Heartbeat implements gateway.JobMaster.
func (m *JobMaster) Heartbeat(ctx context.Context, h gateway.Heartbeat) (gateway.HeartbeatAnswer, error) {
	if h.Epoch != m.cfg.Epoch {
		return gateway.HeartbeatAnswer{}, gateway.StaleEpoch(h.Epoch, m.cfg.Epoch)
	}
	if !m.registry.Touch(h.Executor, h.Incarnation, time.Now()) {
		return gateway.HeartbeatAnswer{}, &gateway.Error{
			Code: gateway.FailedPrecondition, Reason: gateway.ReasonNotRegistered,
			Message: fmt.Sprintf("executor %s, incarnation %s, is not registered", h.Executor, h.Incarnation), Remedy: "register again",
		}
	}
	answer := gateway.HeartbeatAnswer{Completed: map[job.ID]checkpoint.ID{}}
	var order []job.ID
	byJob := map[job.ID][]gateway.TaskReport{}
	for _, t := range h.Tasks {
		id := t.Attempt.Job
		if byJob[id] == nil {
			order = append(order, id)
		}
		byJob[id] = append(byJob[id], t)
	}
	for _, id := range order {
		got, err := m.report(ctx, id, taskReports{executor: h.Executor, reports: byJob[id]})
		if err != nil {
			return gateway.HeartbeatAnswer{}, err
		}
		answer.Unknown = append(answer.Unknown, got.unknown...)
		if got.completed > 0 {
			answer.Completed[id] = got.completed
		}
	}
	return answer, nil
}

// report gives the reports to the job's loop. Attempts of a job that is not there or has ended are unknown.
func (m *JobMaster) report(ctx context.Context, id job.ID, r taskReports) (reportAnswer, error) {
	if l := m.loop(id); l != nil {
		got, err := inbox.Ask(ctx, l.inbox, func(answer chan<- reportAnswer) message {
			r.answer = answer
			return r
		})
		if !errors.Is(err, inbox.ErrEnded) {
			return got, err
		}
	}
	var all reportAnswer
	for _, t := range r.reports {
		all.unknown = append(all.unknown, t.Attempt)
	}
	return all, nil
}

// TaskExecutors implements gateway.Jobs.
func (m *JobMaster) TaskExecutors(context.Context) ([]gateway.ExecutorStatus, error) {
	return m.registry.List(), nil
}
