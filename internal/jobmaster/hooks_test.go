package jobmaster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/masterhook"
)

// hooked is the outside world of a hook: it notes what is asked of it.
type hooked struct {
	mu     sync.Mutex
	calls  []string
	before func(ctx context.Context, call string) error
}

// config makes a job master that can run the hook.
func (w *hooked) config(cfg *Config) {
	cfg.Rules.OpenHooks = func(r masterhook.Request) ([]masterhook.Hook, error) {
		if err := w.do(context.Background(), fmt.Sprintf("open %s of epoch %d", r.Job, r.Epoch)); err != nil {
			return nil, err
		}
		return []masterhook.Hook{hookOf{w}}, nil
	}
}

func (w *hooked) do(ctx context.Context, call string) error {
	w.mu.Lock()
	w.calls = append(w.calls, call)
	before := w.before
	w.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(ctx, call)
}

// script changes what happens in calls that begin with a word.
func (w *hooked) script(word string, f func(ctx context.Context) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = func(ctx context.Context, call string) error {
		if !strings.HasPrefix(call, word) {
			return nil
		}
		return f(ctx)
	}
}

func (w *hooked) take() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := w.calls
	w.calls = nil
	return calls
}

func (w *hooked) expect(t *testing.T, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, w.take()); d != "" {
		t.Errorf("calls of the hook (-want +got)\n%s", d)
	}
}

type hookOf struct{ w *hooked }

func (h hookOf) Trigger(ctx context.Context, id int64, _ time.Time) ([]byte, error) {
	return fmt.Append(nil, "state ", id), h.w.do(ctx, fmt.Sprint("trigger ", id))
}

func (h hookOf) Restore(ctx context.Context, id int64, state []byte) error {
	return h.w.do(ctx, fmt.Sprintf("restore %d with %q", id, state))
}

func (h hookOf) Reset(ctx context.Context) error { return h.w.do(ctx, "reset") }

func (h hookOf) JobEnded(ctx context.Context) error { return h.w.do(ctx, "ended") }

func withHook(s *gateway.Submission) { s.Params = map[string]string{"hook": "lease"} }

func TestHooks_AreCalledInStepWithTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &hooked{}
		c := newCluster(t, w.config)
		defer c.close()
		a := c.start("a", 1, script{})
		id := c.submit(1, withHook)
		w.expect(t, "open job-1 of epoch 1", "reset", "trigger 1")
		c.expect(id, job.Running)
		time.Sleep(1500 * time.Millisecond)
		w.expect(t, "trigger 2")
		last := c.status(id).Last.ID
		a.disconnect()
		c.start("b", 1, script{})
		time.Sleep(500 * time.Millisecond)
		if calls := w.take(); calls[0] != fmt.Sprintf(`restore %d with "state %d"`, last, last) {
			t.Errorf("after the restart: %v", calls)
		}
		if _, err := c.m.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if calls := w.take(); calls[len(calls)-1] != "ended" {
			t.Errorf("who was told that the job has ended, and then asks, finds the hook not told: %v", calls)
		}
	})
}

func TestHooks_StateIsInTheMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &hooked{}
		c := newCluster(t, w.config)
		defer c.close()
		c.start("a", 1, script{})
		id := c.submit(1, withHook)
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		last := c.status(id).Last
		md, err := c.m.cfg.Archive.Read(t.Context(), checkpoint.Dir(id, last.ID))
		if err != nil || string(md.MasterState("lease")) != fmt.Sprint("state ", last.ID) {
			t.Errorf("%v: %q", err, md.MasterState("lease"))
		}
		if last.StateBytes != 2*5+int64(len("state 1")) {
			t.Errorf("state has %d bytes", last.StateBytes)
		}
		w.take()
		from := c.submit(1, withHook, func(s *gateway.Submission) { s.RestorePath = last.Path }) // there is no slot; it waits
		w.expect(t, "open "+string(from)+" of epoch 1")
		if _, err := c.m.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if calls := w.take(); calls[len(calls)-1] == "" || !strings.Contains(strings.Join(calls, ";"), fmt.Sprintf(`restore %d with "state %d"`, last.ID, last.ID)) {
			t.Errorf("a job that starts from the checkpoint: %v", calls)
		}
		_, err = c.m.Submit(t.Context(), gateway.Submission{JobName: "flights", RestorePath: last.Path, Options: job.Options{Parallelism: 1, MaxParallelism: 8}})
		want(t, err, gateway.InvalidArgument, gateway.ReasonBadCheckpoint, "state of master hook lease has no hook in job flights")
	})
}

func TestHooks_FailureBeforeTheTasksStart_IsAFailureOfTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &hooked{}
		left := 2
		w.script("reset", func(context.Context) error {
			if left--; left >= 0 {
				return errors.New("taken")
			}
			return nil
		})
		c := newCluster(t, w.config)
		defer c.close()
		c.start("a", 1, script{})
		id := c.submit(1, withHook, func(s *gateway.Submission) { s.Options.Checkpoint.Interval = time.Hour })
		time.Sleep(5 * time.Second)
		if s := c.expect(id, job.Running); s.Restarts != 2 || runningTasks(s) != 2 {
			t.Errorf("%d restarts, %d tasks run", s.Restarts, runningTasks(s))
		}
		w.expect(t, "open job-1 of epoch 1", "reset", "reset", "reset", "trigger 1")

		left = 1 << 30
		second := c.submit(1, withHook, func(s *gateway.Submission) { s.Options.Restart.Strategy = job.NoRestart })
		c.start("b", 1, script{})
		if s := c.expect(second, job.Failed); !strings.Contains(s.Detail, "restore: master hook lease: taken") {
			t.Errorf("detail %q", s.Detail)
		}
		w.expect(t, "open job-2 of epoch 1", "reset", "ended")
	})
}

func TestHooks_OneThatDoesNotAnswer_HoldsUpNothingButItsJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &hooked{}
		w.script("reset", func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		c := newCluster(t, w.config)
		defer c.close()
		c.start("a", 2, script{})
		id := c.submit(1, withHook)
		other := c.submit(1)
		c.expect(other, job.Running)
		if s := c.expect(id, job.Running); s.Detail != "waits for its master hooks: lease" || runningTasks(s) != 0 {
			t.Errorf("detail %q, %d tasks run", s.Detail, runningTasks(s))
		}
		time.Sleep(masterhook.Timeout)
		if s := c.expect(id, job.Restarting); !strings.Contains(s.Detail, "master hook lease: no answer within 30s") {
			t.Errorf("detail %q", s.Detail)
		}
		time.Sleep(time.Second)
		start := time.Now()
		if state, err := c.m.Cancel(t.Context(), id); err != nil || state != job.Canceled || time.Since(start) > time.Second {
			t.Errorf("canceled after %s: %v %v", time.Since(start), state, err)
		}
	})
}

func TestHooks_FailedTrigger_EndsTheCheckpointAndIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &hooked{}
		c := newCluster(t, w.config)
		defer c.close()
		c.start("a", 1, script{})
		id := c.submit(1, withHook, func(s *gateway.Submission) { s.Options.Checkpoint.TolerableFailures = 1 })
		time.Sleep(500 * time.Millisecond)
		w.script("trigger", func(context.Context) error { return errors.New("lost") })
		time.Sleep(time.Second)
		s := c.expect(id, job.Running)
		list, err := c.m.Checkpoints(t.Context(), id)
		if err != nil || s.Failed != 1 || list.Checkpoints[0].Failure != "HOOK_FAILURE: master hook lease: lost" {
			t.Errorf("%d failed: %q (%v)", s.Failed, list.Checkpoints[0].Failure, err)
		}
		_, err = c.m.TriggerCheckpoint(t.Context(), id, 0)
		want(t, err, gateway.Aborted, gateway.ReasonCheckpointFailed, "HOOK_FAILURE: master hook lease: lost")
		if s := c.expect(id, job.Restarting); !strings.Contains(s.Detail, "2 in a row, 1 tolerated") {
			t.Errorf("detail %q", s.Detail)
		}
		w.script("nothing", nil)
		time.Sleep(3 * time.Second)
		if s := c.expect(id, job.Running); s.Last.ID < 3 {
			t.Errorf("latest checkpoint %d", s.Last.ID)
		}
	})
}

func TestHooks_ShutdownEndsCallsThatAreUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &hooked{}
		c := newCluster(t, w.config)
		c.start("a", 1, script{})
		c.submit(1, withHook)
		w.script("trigger", func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		time.Sleep(1200 * time.Millisecond)
		w.take()
		start := time.Now()
		c.close()
		if got := time.Since(start); got != 0 {
			t.Errorf("it took %s", got)
		}
		w.expect(t) // the job has not ended
	})
}

func TestHooks_TheNextJobMasterOpensThemAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &hooked{}
		c, s := newKept(t, w.config)
		c.start("a", 1, script{})
		id := c.submit(1, withHook)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		last := c.status(id).Last.ID
		c.kill(s)
		w.take()

		n := c.next(s) // it cannot run the hook: the job waits, and nothing of it starts
		n.start("a", 1, script{})
		if got := n.expect(id, job.Created); !strings.Contains(got.Detail, "cannot be recovered: job flights has the master hook lease, and this job master runs none") {
			t.Errorf("detail %q", got.Detail)
		}
		n.kill(s)

		n = n.next(s, w.config, func(cfg *Config) { cfg.Epoch = 1 })
		n.start("a", 1, script{})
		n.expect(id, job.Running)
		if calls := w.take(); calls[0] != "open job-1 of epoch 1" || calls[1] != fmt.Sprintf(`restore %d with "state %d"`, last, last) {
			t.Errorf("%v", calls)
		}
		s.before = func(op string) error { // the end is durable, and then the job master dies
			if op == "end" && s.all()[0].End != nil {
				return errDead
			}
			return nil
		}
		w.script("ended", func(context.Context) error { return errors.New("nobody hears") })
		if _, err := n.m.Cancel(t.Context(), id); err != nil && s.all()[0].End == nil {
			t.Fatal(err)
		}
		n.kill(s)
		s.before = nil
		w.script("nothing", nil)
		w.take()
		last2 := n.next(s, w.config)
		defer last2.close()
		w.expect(t, "open job-1 of epoch 1", "ended")
	})
}

func TestSubmit_JobMasterWithoutTheHooks_RefusesTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.start("a", 1, script{})
		s := gateway.Submission{JobName: "flights"}
		withHook(&s)
		_, err := c.m.Submit(t.Context(), s)
		want(t, err, gateway.FailedPrecondition, masterhook.ReasonMasterHooks, "master hook lease", "its command jobmaster")
		if list, _ := c.m.List(t.Context()); len(list) != 0 {
			t.Errorf("it is listed: %v", list)
		}
	})
}

func TestHooks_RegionThatRestarts_CallsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &hooked{}
		c := newCluster(t, w.config)
		defer c.close()
		a := c.start("a", 2, script{}, "pipelines")
		c.start("b", 2, script{}, "pipelines")
		id := c.submit(4, withHook, func(s *gateway.Submission) { s.JobName = "pipelines" })
		w.expect(t, "open job-1 of epoch 1", "reset", "trigger 1")
		a.disconnect()
		x := c.start("x", 2, script{}, "pipelines")
		time.Sleep(500 * time.Millisecond)
		c.expect(id, job.Running)
		if d, n := x.lastDeployment(); n != 1 || len(d.Tasks) != 4 {
			t.Fatalf("%d deployments, the last of %d tasks: that was no failover of regions", n, len(d.Tasks))
		}
		for _, call := range w.take() {
			if !strings.HasPrefix(call, "trigger") {
				t.Errorf("the failover of a region calls the hook: %s", call)
			}
		}
	})
}
