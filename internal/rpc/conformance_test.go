package rpc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// The suite holds every method of the three interfaces to one behaviour, in process and over both transports.

// method is one method with its types hidden.
type method struct {
	name    string
	timeout time.Duration
	call    func(s sides, ctx context.Context, r *rand.Rand) (request, answer any, err error)
	answer  func(r *rand.Rand) any
}

func unary[Q, A any](name string, timeout time.Duration, call func(s sides, ctx context.Context, request Q) (A, error)) method {
	return method{
		name: name, timeout: timeout,
		call: func(s sides, ctx context.Context, r *rand.Rand) (any, any, error) {
			request := randomValue[Q](r)
			answer, err := call(s, ctx, request)
			return request, answer, err
		},
		answer: func(r *rand.Rand) any { return randomValue[A](r) },
	}
}

func methods() []method { return append(processMethods(), jobMethods()...) }

// processMethods are those between the processes.
func processMethods() []method {
	return []method{
		unary("PlanJob", CallTimeout, func(s sides, ctx context.Context, r gateway.PlanJob) (job.Graph, error) {
			g, err := s.executor.PlanJob(ctx, r)
			if err != nil {
				return job.Graph{}, err
			}
			return *g, nil
		}),
		unary("DeployTasks", CallTimeout, func(s sides, ctx context.Context, r gateway.DeployTasks) (none, error) {
			return none{}, s.executor.DeployTasks(ctx, r)
		}),
		unary("CancelTasks", CallTimeout, func(s sides, ctx context.Context, r gateway.CancelTasks) ([]job.AttemptID, error) {
			return s.executor.CancelTasks(ctx, r)
		}),
		unary("TriggerCheckpoint of tasks", CallTimeout, func(s sides, ctx context.Context, r gateway.TriggerCheckpoint) ([]job.AttemptID, error) {
			return s.executor.TriggerCheckpoint(ctx, r)
		}),
		unary("NotifyCheckpointComplete", CallTimeout, func(s sides, ctx context.Context, r gateway.NotifyCheckpointComplete) ([]job.AttemptID, error) {
			return s.executor.NotifyCheckpointComplete(ctx, r)
		}),
		unary("NotifyCheckpointAborted", CallTimeout, func(s sides, ctx context.Context, r gateway.NotifyCheckpointAborted) ([]job.AttemptID, error) {
			return s.executor.NotifyCheckpointAborted(ctx, r)
		}),
		unary("Heartbeat", CallTimeout, func(s sides, ctx context.Context, r gateway.Heartbeat) (gateway.HeartbeatAnswer, error) {
			return s.jobMaster.Heartbeat(ctx, r)
		}),
		unary("UpdateTaskState", CallTimeout, func(s sides, ctx context.Context, r gateway.TaskUpdate) (none, error) {
			return none{}, s.jobMaster.UpdateTaskState(ctx, r)
		}),
		unary("AcknowledgeCheckpoint", CallTimeout, func(s sides, ctx context.Context, r gateway.Ack) (checkpoint.Verdict, error) {
			return s.jobMaster.AcknowledgeCheckpoint(ctx, r)
		}),
		unary("DeclineCheckpoint", CallTimeout, func(s sides, ctx context.Context, r gateway.Decline) (none, error) {
			return none{}, s.jobMaster.DeclineCheckpoint(ctx, r)
		}),
	}
}

// jobMethods are those of gateway.Jobs.
func jobMethods() []method {
	return []method{
		unary("Submit", WaitTimeout, func(s sides, ctx context.Context, r gateway.Submission) (job.ID, error) {
			return s.jobs.Submit(ctx, r)
		}),
		unary("List", CallTimeout, func(s sides, ctx context.Context, _ none) ([]gateway.JobStatus, error) {
			return s.jobs.List(ctx)
		}),
		unary("Get", CallTimeout, func(s sides, ctx context.Context, id job.ID) (gateway.JobStatus, error) {
			return s.jobs.Get(ctx, id)
		}),
		unary("Cancel", WaitTimeout, func(s sides, ctx context.Context, id job.ID) (job.State, error) {
			return s.jobs.Cancel(ctx, id)
		}),
		unary("Stop", WaitTimeout, func(s sides, ctx context.Context, r gateway.StopJob) (gateway.StopResult, error) {
			return s.jobs.Stop(ctx, r)
		}),
		unary("Rescale", WaitTimeout, func(s sides, ctx context.Context, r gateway.RescaleJob) (gateway.RescaleResult, error) {
			return s.jobs.Rescale(ctx, r)
		}),
		unary("TriggerSavepoint", WaitTimeout, func(s sides, ctx context.Context, r gateway.TriggerSavepoint) (gateway.CheckpointResult, error) {
			return s.jobs.TriggerSavepoint(ctx, r)
		}),
		unary("TriggerCheckpoint of a job", WaitTimeout, func(s sides, ctx context.Context, a checkpointArgs) (gateway.CheckpointResult, error) {
			return s.jobs.TriggerCheckpoint(ctx, a.ID, job.LeaderEpoch(a.Checkpoint))
		}),
		unary("DisposeSavepoint", WaitTimeout, func(s sides, ctx context.Context, path job.ID) (none, error) { // which is never empty
			return none{}, s.jobs.DisposeSavepoint(ctx, string(path))
		}),
		unary("Checkpoints", CallTimeout, func(s sides, ctx context.Context, id job.ID) (gateway.CheckpointHistory, error) {
			return s.jobs.Checkpoints(ctx, id)
		}),
		unary("Checkpoint", CallTimeout, func(s sides, ctx context.Context, a checkpointArgs) (gateway.CheckpointDetail, error) {
			return s.jobs.Checkpoint(ctx, a.ID, a.Checkpoint)
		}),
		unary("TaskExecutors", CallTimeout, func(s sides, ctx context.Context, _ none) ([]gateway.ExecutorStatus, error) {
			return s.jobs.TaskExecutors(ctx)
		}),
	}
}

func onEachTransport(t *testing.T, test func(t *testing.T, s sides)) {
	for name, connect := range transports {
		t.Run(name, func(t *testing.T) { test(t, connect(t)) })
	}
}

func TestConformance_RequestsAndAnswers_ArriveEqual(t *testing.T) {
	onEachTransport(t, func(t *testing.T, s sides) {
		for _, m := range methods() {
			for seed := range uint64(20) {
				r := rand.New(rand.NewPCG(seed, 5))
				want := m.answer(r)
				var got any
				s.fake.on = func(_ context.Context, request any) (any, error) {
					got = request
					return want, nil
				}
				request, answer, err := m.call(s, t.Context(), r)
				if err != nil {
					t.Fatalf("%s: %v", m.name, err)
				}
				if a, ok := request.(checkpointArgs); ok && m.name == "TriggerCheckpoint of a job" {
					request = triggerArgs{ID: a.ID, Epoch: job.LeaderEpoch(a.Checkpoint)}
				}
				if diff := cmp.Diff(request, got, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("%s: request (-sent +arrived):\n%s", m.name, diff)
				}
				if diff := cmp.Diff(want, answer, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("%s: answer (-sent +arrived):\n%s", m.name, diff)
				}
			}
		}
	})
}

// sentErrors are errors of implementations.
func sentErrors() []error {
	whole := &gateway.Error{
		Code: gateway.FailedPrecondition, Reason: gateway.ReasonJobTerminal, Message: "job x is FINISHED", Remedy: "submit it again",
		Job: "x", Checkpoint: 7,
	}
	out := []error{
		whole, fmt.Errorf("cancel: %w", whole),
		&gateway.Error{Code: gateway.NotFound, Message: "nothing but a message"}, fmt.Errorf("wrapped: %w", gateway.JobNotFound("j")),
		errors.New("an error that nobody has classified"),
	}
	for code := range codeToGRPC {
		out = append(out, &gateway.Error{Code: code, Reason: "R", Message: fmt.Sprintf("of code %d", code), Remedy: "m"})
	}
	return out
}

func TestConformance_Errors_ArriveEqual(t *testing.T) {
	onEachTransport(t, func(t *testing.T, s sides) {
		for _, m := range methods() {
			for _, want := range sentErrors() {
				s.fake.on = func(context.Context, any) (any, error) { return nil, want }
				_, _, got := m.call(s, t.Context(), rand.New(rand.NewPCG(1, 6)))
				checkError(t, m.name, got, want)
			}
		}
	})
}

// checkError compares what callers look at: the text, and the fields of the gateway.Error.
func checkError(t *testing.T, what string, got, want error) {
	t.Helper()
	if got == nil || got.Error() != want.Error() || gateway.CodeOf(got) != gateway.CodeOf(want) {
		t.Fatalf("%s: got error %v of code %d, want %v of code %d", what, got, gateway.CodeOf(got), want, gateway.CodeOf(want))
	}
	var g, w *gateway.Error
	if errors.As(got, &g) && errors.As(want, &w) {
		g.Message = w.Message // the text, with what wraps it, is compared above
		if *g != *w {
			t.Fatalf("%s: got %+v, want %+v", what, *g, *w)
		}
	}
}

func TestConformance_ContextErrors_CanBeRecognised(t *testing.T) {
	onEachTransport(t, func(t *testing.T, s sides) {
		for _, m := range methods() {
			for _, want := range []error{context.Canceled, fmt.Errorf("wait: %w", context.DeadlineExceeded)} {
				s.fake.on = func(context.Context, any) (any, error) { return nil, want }
				_, _, got := m.call(s, t.Context(), rand.New(rand.NewPCG(1, 7)))
				if root := errors.Unwrap(want); !errors.Is(got, want) && (root == nil || !errors.Is(got, root)) {
					t.Fatalf("%s: got %v, want %v", m.name, got, want)
				}
			}
		}
	})
}

func TestConformance_CancelOfTheCaller_EndsTheCall(t *testing.T) {
	onEachTransport(t, func(t *testing.T, s sides) {
		for _, m := range methods() {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			s.fake.on = func(ctx context.Context, _ any) (any, error) {
				cancel()
				<-ctx.Done()
				close(ended)
				return nil, ctx.Err()
			}
			if _, _, err := m.call(s, ctx, rand.New(rand.NewPCG(1, 8))); !errors.Is(err, context.Canceled) {
				t.Fatalf("%s: %v, want that the call was canceled", m.name, err)
			}
			<-ended
		}
	})
}

func TestClients_WithoutADeadline_SetOne(t *testing.T) {
	s := transports["bufconn"](t)
	const tolerance = 5 * time.Second
	for _, m := range methods() {
		var left time.Duration
		s.fake.on = func(ctx context.Context, _ any) (any, error) {
			if deadline, ok := ctx.Deadline(); ok {
				left = time.Until(deadline)
			}
			return nil, errors.New("enough")
		}
		_, _, _ = m.call(s, t.Context(), rand.New(rand.NewPCG(1, 9)))
		if left > m.timeout || left < m.timeout-tolerance {
			t.Errorf("%s: %s are left of %s", m.name, left, m.timeout)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		_, _, _ = m.call(s, ctx, rand.New(rand.NewPCG(1, 9)))
		cancel()
		if left < time.Hour-tolerance {
			t.Errorf("%s: the caller's hour became %s", m.name, left)
		}
	}
}
