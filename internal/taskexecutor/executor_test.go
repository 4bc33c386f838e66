package taskexecutor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/stream"
)

func bubble(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newRig(t)) })
}

func TestRequests_AreFencedFirst(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.m.registrations(errUnavailable, nil)
		r.start()
		ctx, one := t.Context(), []job.AttemptID{attempt("src", 1)}
		requests := func(epoch job.LeaderEpoch) map[string]func() ([]job.AttemptID, error) {
			return map[string]func() ([]job.AttemptID, error){
				"deploy": func() ([]job.AttemptID, error) { return nil, r.e.DeployTasks(ctx, gateway.DeployTasks{Epoch: epoch}) },
				"cancel": func() ([]job.AttemptID, error) {
					return r.e.CancelTasks(ctx, gateway.CancelTasks{Epoch: epoch, Attempts: one})
				},
				"trigger": func() ([]job.AttemptID, error) {
					return r.e.TriggerCheckpoint(ctx, gateway.TriggerCheckpoint{Epoch: epoch, Attempts: one})
				},
				"complete": func() ([]job.AttemptID, error) {
					return r.e.NotifyCheckpointComplete(ctx, gateway.NotifyCheckpointComplete{Epoch: epoch, Attempts: one})
				},
				"aborted": func() ([]job.AttemptID, error) {
					return r.e.NotifyCheckpointAborted(ctx, gateway.NotifyCheckpointAborted{Epoch: epoch, Attempts: one})
				},
			}
		}
		for name, call := range requests(7) {
			if _, err := call(); !hasReason(err, gateway.Unavailable, gateway.ReasonNotRegistered) {
				t.Errorf("%s before the registration: %v", name, err)
			}
		}
		if r.e.Registered() {
			t.Error("it is registered")
		}
		r.m.registrations(nil, nil)
		time.Sleep(registerMaxPause)
		r.expect("register e1 i1 [idle]")
		for _, epoch := range []job.LeaderEpoch{6, 8} {
			for name, call := range requests(epoch) {
				if _, err := call(); !hasReason(err, gateway.FailedPrecondition, gateway.ReasonStaleEpoch) {
					t.Errorf("%s of epoch %d: %v", name, epoch, err)
				}
			}
		}
		for name, call := range requests(7) {
			if name == "deploy" {
				continue
			}
			if unknown, err := call(); err != nil || !slices.Equal(unknown, one) {
				t.Errorf("%s for an attempt that is not here: %v, %v", name, unknown, err)
			}
		}
	})
}

func TestDeploy_RunsReportsAndCancels(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.registered().running(1)
		ctx, src := t.Context(), []job.AttemptID{attempt("src", 1)}
		if unknown, err := r.e.CancelTasks(ctx, gateway.CancelTasks{Epoch: 7, Attempts: src}); err != nil || len(unknown) > 0 {
			t.Errorf("cancel: %v, %v", unknown, err)
		}
		// the receiver loses its sender
		if got := r.m.take(); !slices.Contains(got, "src[0]#1 CANCELED") || !slices.Contains(got, "out[0]#1 FAILED") {
			t.Errorf("got %q", got)
		}
		if unknown, err := r.e.CancelTasks(ctx, gateway.CancelTasks{Epoch: 7, Attempts: src}); err != nil || len(unknown) != 1 {
			t.Errorf("cancel again: %v, %v; want it unknown", unknown, err)
		}
		r.running(2)
	})
}

func TestDeploy_TwiceIsAcceptedTwice(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.registered().running(2)
		r.deploy(r.deployment(2))
		r.expect()
		if err := r.e.DeployTasks(t.Context(), r.deployment(1)); !hasReason(err, gateway.NotFound, gateway.ReasonUnknownAttempt) {
			t.Errorf("an older attempt: %v", err)
		}
		r.expect()
	})
}

func TestDeploy_Refuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*gateway.DeployTasks)
		code   gateway.Code
		want   string
	}{
		"unknown job":   {func(d *gateway.DeployTasks) { d.Graph.Name = "other" }, gateway.NotFound, `executor e1 has no job "other" (it has: idle)`},
		"bad parameter": {func(d *gateway.DeployTasks) { d.Graph.Params = map[string]string{"x": ""} }, gateway.InvalidArgument, `no parameter "x"`},
		"another build": {func(d *gateway.DeployTasks) {
			d.Graph.Fingerprint = "x"
			d.Graph.Vertices[0].Operators[0].Signature = "-> string"
		}, gateway.FailedPrecondition, "another build of job idle: operator src differs"},
		"unknown vertex": {func(d *gateway.DeployTasks) { d.Tasks[1].Attempt.Task.Vertex = "none" }, gateway.InvalidArgument, "attempt none[0]#1 is of no task of job idle"},
		"subtask":        {func(d *gateway.DeployTasks) { d.Tasks[1].Attempt.Task.Subtask = 1 }, gateway.InvalidArgument, "attempt out[1]#1 is of no task"},
		"negative":       {func(d *gateway.DeployTasks) { d.Tasks[1].Attempt.Task.Subtask = -1 }, gateway.InvalidArgument, "is of no task"},
		"another job":    {func(d *gateway.DeployTasks) { d.Tasks[1].Attempt.Job = "j2" }, gateway.InvalidArgument, "is of no task"},
		"unknown split":  {func(d *gateway.DeployTasks) { d.Tasks[0].Splits = []int{1} }, gateway.InvalidArgument, "is to read split 1, its source has 1"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.registered()
				d := r.deployment(1)
				c.change(&d)
				err := r.e.DeployTasks(t.Context(), d)
				if gateway.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				r.expect()
				r.running(1) // nothing of it is left
			})
		})
	}
}

func TestTrigger_TaskThatDoesNotRunYetDeclines(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.src.opening = make(chan struct{})
		r.registered()
		r.deploy(r.deployment(1, "src"))
		r.deploy(r.deployment(1, "out"))
		r.m.take()
		trigger := gateway.TriggerCheckpoint{Epoch: 7, ID: 3, Dir: "j1/chk-3", Timestamp: time.Now(), Attempts: []job.AttemptID{attempt("src", 1)}}
		if unknown, err := r.e.TriggerCheckpoint(t.Context(), trigger); err != nil || len(unknown) > 0 {
			t.Errorf("got %v, %v", unknown, err)
		}
		r.expect(fmt.Sprintf("decline 3 src[0]#1 %s the task is INITIALIZING", checkpoint.TaskNotReady))
		close(r.src.opening)
		r.expect("src[0]#1 RUNNING")
	})
}

func TestCheckpoint_GoesThroughTheTasks(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.registered().running(1)
		both := []job.AttemptID{attempt("src", 1), attempt("out", 1)}
		trigger := gateway.TriggerCheckpoint{Epoch: 7, ID: 3, Dir: "j1/chk-3", Timestamp: time.Now(), Attempts: both[:1]}
		if unknown, err := r.e.TriggerCheckpoint(t.Context(), trigger); err != nil || len(unknown) > 0 {
			t.Errorf("got %v, %v", unknown, err)
		}
		got := r.m.take()
		slices.Sort(got)
		if want := []string{"ack 3 out[0]#1", "ack 3 src[0]#1"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		for _, a := range r.m.acks {
			if a.Epoch != 7 || a.Attempt.Task.Vertex == "src" && len(a.State.Operators) != 1 {
				t.Errorf("the ack is %+v", a)
			}
		}
		done := gateway.NotifyCheckpointComplete{Epoch: 7, ID: 3, Attempts: append(both, attempt("src", 9))}
		if unknown, err := r.e.NotifyCheckpointComplete(t.Context(), done); err != nil || !slices.Equal(unknown, both[:0:0]) && (len(unknown) != 1 || unknown[0].Attempt != 9) {
			t.Errorf("got %v, %v", unknown, err)
		}
		aborted := gateway.NotifyCheckpointAborted{Epoch: 7, ID: 5, LatestCompleted: 4, Attempts: both[:1]}
		if _, err := r.e.NotifyCheckpointAborted(t.Context(), aborted); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for _, task := range r.m.lastHeartbeat().Tasks {
			want := map[job.VertexID]checkpoint.ID{"src": 4, "out": 3}[task.Attempt.Task.Vertex]
			if task.NotifiedCheckpoint != want {
				t.Errorf("%s was told of %d, want %d", task.Attempt, task.NotifiedCheckpoint, want)
			}
		}
	})
}

func TestReports_AreRepeatedInOrderUntilTheyAreTaken(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var down atomic.Bool
		var refused atomic.Int32
		r.m.onState = func(gateway.TaskUpdate) error {
			if down.Load() {
				refused.Add(1)
				return errUnavailable
			}
			return nil
		}
		r.registered()
		down.Store(true)
		r.deploy(r.deployment(1, "out")) // nobody sends to it
		synctest.Wait()
		if _, err := r.e.CancelTasks(t.Context(), gateway.CancelTasks{Epoch: 7, Attempts: []job.AttemptID{attempt("out", 1)}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
		r.expect()
		if n := refused.Load(); n < 5 || n > 20 {
			t.Errorf("tried %d times in 500 ms", n)
		}
		time.Sleep(600 * time.Millisecond)
		if tasks := r.m.lastHeartbeat().Tasks; len(tasks) != 1 || tasks[0].State != job.TaskCanceled {
			t.Errorf("the heartbeat has %+v, want the task as CANCELED", tasks)
		}
		down.Store(false)
		time.Sleep(reportRetry)
		r.expect("out[0]#1 INITIALIZING", "out[0]#1 RUNNING", "out[0]#1 CANCELED")
		time.Sleep(time.Second)
		synctest.Wait()
		if tasks := r.m.lastHeartbeat().Tasks; len(tasks) != 0 {
			t.Errorf("the heartbeat still has %+v", tasks)
		}
	})
}

func TestReports_ThatAreRefusedAreNotRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var told atomic.Int32
		r.m.onState = func(u gateway.TaskUpdate) error {
			told.Add(1)
			return gateway.UnknownAttempt(u.Attempt)
		}
		r.registered()
		r.deploy(r.deployment(1, "out"))
		synctest.Wait()
		if _, err := r.e.CancelTasks(t.Context(), gateway.CancelTasks{Epoch: 7, Attempts: []job.AttemptID{attempt("out", 1)}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if told.Load() != 3 || len(r.e.snapshot()) != 0 {
			t.Errorf("told %d times, %d tasks left; want 3 and none", told.Load(), len(r.e.snapshot()))
		}
	})
}

func TestHeartbeat_SaysWhatRunsAndActsOnTheAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.src.emit = 3
		var answer atomic.Pointer[gateway.HeartbeatAnswer]
		answer.Store(&gateway.HeartbeatAnswer{})
		r.m.answer = func(gateway.Heartbeat) (gateway.HeartbeatAnswer, error) { return *answer.Load(), nil }
		r.registered().running(1)
		answer.Store(&gateway.HeartbeatAnswer{Completed: map[job.ID]checkpoint.ID{testJob: 5, "other": 9}})
		time.Sleep(time.Second)
		synctest.Wait()
		hb := r.m.lastHeartbeat()
		if hb.Executor != "e1" || hb.Incarnation != "i1" || hb.Epoch != 7 || len(hb.Tasks) != 2 {
			t.Fatalf("the heartbeat is %+v", hb)
		}
		out, src := hb.Tasks[0], hb.Tasks[1]
		if out.Attempt != attempt("out", 1) || out.State != job.TaskRunning || out.RecordsIn != 3 || src.RecordsOut != 3 || src.NotifiedCheckpoint != 0 {
			t.Errorf("the heartbeat has %+v and %+v", out, src)
		}
		answer.Store(&gateway.HeartbeatAnswer{Unknown: []job.AttemptID{attempt("out", 1), attempt("src", 1), attempt("src", 4)}})
		time.Sleep(time.Second)
		synctest.Wait()
		if hb := r.m.lastHeartbeat(); hb.Tasks[0].NotifiedCheckpoint != 5 || hb.Tasks[1].NotifiedCheckpoint != 5 {
			t.Errorf("the missed completion was not delivered: %+v", hb.Tasks)
		}
		if got := r.m.take(); !slices.Contains(got, "src[0]#1 CANCELED") {
			t.Errorf("unknown attempts go on: %q", got)
		}
		if n := len(r.e.snapshot()); n != 0 {
			t.Errorf("%d tasks are left", n)
		}
	})
}

func TestSession_LossCancelsEverythingBeforeTheNextRegistration(t *testing.T) {
	for name, lose := range map[string]func(r *rig){
		"connection": func(r *rig) { r.m.end <- errUnavailable },
		"forgotten": func(r *rig) {
			r.m.forget.Store(true)
			time.Sleep(time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.src.closing = make(chan struct{})
				r.registered().running(1)
				var alive atomic.Int32
				r.m.registrations(nil, func() { alive.Store(int32(len(r.e.snapshot()))) })
				lose(r)
				synctest.Wait()
				time.Sleep(5 * time.Second) // the source takes that long to close
				r.expect()
				close(r.src.closing)
				time.Sleep(registerMaxPause)
				r.expect("register e1 i1 [idle]")
				if alive.Load() != 0 {
					t.Errorf("%d tasks were there when it registered again", alive.Load())
				}
				r.src.closing = nil
				r.running(2)
			})
		})
	}
}

func TestRun_EndsWhenAnotherProcessTakesOver(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.registered().running(1)
		r.m.end <- &gateway.Error{Code: gateway.FailedPrecondition, Reason: gateway.ReasonReplaced, Message: "incarnation i2 has taken over"}
		if err := r.wait(); err == nil || !strings.Contains(err.Error(), "i2 has taken over") {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestRun_EndsWithoutAJobMasterInTime(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.m.registrations(errUnavailable, nil)
		r.cfg.RegistrationTimeout = 30 * time.Second
		r.start()
		time.Sleep(29 * time.Second)
		synctest.Wait()
		select {
		case <-r.done:
			t.Fatal("it gave up too early")
		default:
		}
		time.Sleep(3 * time.Second)
		if err := r.wait(); err == nil || !strings.Contains(err.Error(), "no job master for 30s: connection lost") {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestRun_EndsWhenTheCheckpointDirectoryIsOfNoUse(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.open = func(string) (Storage, error) { return nil, errors.New("read-only file system") }
		r.start()
		const want = "executor e1 cannot use the checkpoint directory /checkpoints of the job master: read-only file system; give every executor the same storage at the same path"
		if err := r.wait(); err == nil || err.Error() != want {
			t.Errorf("Run returned %v, want %s", err, want)
		}
		if r.e.Registered() {
			t.Error("it counts as registered")
		}
	})
}

// A store that is away for now is worth another try; an executor that ended would have to be started by somebody.
func TestRun_WaitsForACheckpointDirectoryThatCannotBeReached(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		open, away := r.open, 3
		r.open = func(at string) (Storage, error) {
			if away--; away >= 0 {
				return nil, fmt.Errorf("bucket: %w", storage.ErrUnreachable)
			}
			return open(at)
		}
		r.start()
		for !r.e.Registered() { // in the bubble time passes at once
			time.Sleep(time.Second)
		}
		r.cancel()
		if err := r.wait(); err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestCancel_TaskThatDoesNotEndEndsTheProcess(t *testing.T) {
	for name, end := range map[string]func(r *rig){
		"cancel": func(r *rig) {
			if _, err := r.e.CancelTasks(r.t.Context(), gateway.CancelTasks{Epoch: 7, Attempts: []job.AttemptID{attempt("src", 1)}}); err != nil {
				r.t.Fatal(err)
			}
		},
		"session loss": func(r *rig) { r.m.registrations(errUnavailable, nil); r.m.end <- errUnavailable },
		"shutdown":     func(r *rig) { r.cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.src.closing = make(chan struct{})
				defer func() { close(r.src.closing); r.e.tasks.Wait() }()
				r.cfg.CancelTimeout = time.Minute
				r.registered().running(1)
				end(r)
				time.Sleep(time.Minute)
				if err := r.wait(); err == nil || !strings.Contains(err.Error(), "task src[0]#1 does not end 1m0s after it was canceled") || strings.Contains(err.Error(), "\n") {
					t.Errorf("Run returned %v", err)
				}
			})
		})
	}
}

func TestRun_ShutdownEndsTheTasks(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.registered().running(1)
		r.cancel()
		if err := r.wait(); err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}

// breaking is a stream that grants credit and then cannot send.
type breaking struct {
	ctx    context.Context
	credit chan *[]byte
	sent   atomic.Int32
}

func (b *breaking) Send(*[]byte) error {
	if b.sent.Add(1) > 1 {
		return errBroken
	}
	return nil
}

func (b *breaking) Recv() (*[]byte, error) {
	select {
	case f := <-b.credit:
		return f, nil
	case <-b.ctx.Done():
		return nil, b.ctx.Err()
	}
}

func (*breaking) CloseSend() error { return nil }

func TestFailure_OfTheExchangeIsNotTheOperators(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.src.emit = 5
		r.dial = func(ctx context.Context, _ string) (exchange.FrameStream, error) {
			b := &breaking{ctx: ctx, credit: make(chan *[]byte, 1)}
			b.credit <- &[]byte{0x41, 0, 0, 0, 0, 8} // eight credits for channel 0
			return b, nil
		}
		r.registered()
		d := r.deployment(1, "src")
		d.Placements[1].Address = "there:1"
		d.Options.Exchange.BatchSize = 1 // it is sent while the source emits
		r.deploy(d)
		r.expect("src[0]#1 INITIALIZING", "src[0]#1 RUNNING", "src[0]#1 FAILED")
		if f := r.m.lastFailure(); f.Class != job.FailureInfrastructure || f.Operator != "" || !strings.Contains(f.Message, "broken") {
			t.Errorf("the failure is %+v, want one of the infrastructure", f)
		}
	})
}

func TestOutcome(t *testing.T) {
	ended := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		return ctx
	}
	operator := &stream.OperatorError{Operator: "m", Err: errors.New("bad row")}
	for name, c := range map[string]struct {
		ctx   context.Context
		err   error
		state job.TaskState
		want  job.Failure
	}{
		"finished":       {t.Context(), nil, job.TaskFinished, job.Failure{}},
		"canceled":       {ended(errCanceled), operator, job.TaskCanceled, job.Failure{}},
		"unknown":        {ended(errUnknown), errUnknown, job.TaskCanceled, job.Failure{}},
		"session":        {ended(errSessionEnded), errSessionEnded, job.TaskCanceled, job.Failure{}},
		"operator":       {t.Context(), operator, job.TaskFailed, job.Failure{Class: job.FailureTask, Operator: "m", Message: "bad row"}},
		"permanent":      {t.Context(), &stream.OperatorError{Operator: "m", Err: stream.Permanent(errBroken)}, job.TaskFailed, job.Failure{Class: job.FailurePermanent, Operator: "m", Message: "broken"}},
		"record":         {t.Context(), sendError{fmt.Errorf("%w: bad", exchange.ErrRecord)}, job.TaskFailed, job.Failure{Class: job.FailureTask, Message: "a record cannot be sent: bad"}},
		"infrastructure": {t.Context(), errBroken, job.TaskFailed, job.Failure{Class: job.FailureInfrastructure, Message: "broken"}},
	} {
		if state, f := outcome(c.ctx, c.err); state != c.state || f != c.want {
			t.Errorf("%s: got %s %+v, want %s %+v", name, state, f, c.state, c.want)
		}
	}
}
