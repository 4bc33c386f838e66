package jobmaster

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

func TestStop_EndsTheJobWithASavepointThatIsKept(t *testing.T) {
	for _, mode := range []job.StopMode{job.StopSuspend, job.StopDrain, job.StopCancel} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			defer c.close()
			c.start("a", 2, script{})
			id := c.submit(1)
			time.Sleep(1500 * time.Millisecond)
			r, err := c.m.Stop(t.Context(), gateway.StopJob{Job: id, Directory: "/save", Mode: mode})
			if err != nil || !strings.HasPrefix(r.Savepoint.Path, "/save/savepoint-") {
				t.Fatalf("%s: %+v, %v", mode, r, err)
			}
			want := job.Finished
			if mode == job.StopCancel {
				want = job.Canceled
			}
			s := c.expect(id, want)
			if r.State != want || s.StoppedWith != r.Savepoint.Path || !strings.Contains(s.Detail, r.Savepoint.Path) {
				t.Errorf("%s: answered %s, job shows %q, stopped with %q", mode, r.State, s.Detail, s.StoppedWith)
			}
			if got := len(c.elsewhere.content()); got != 4 {
				t.Errorf("%s: the savepoint is not whole: %v", mode, c.elsewhere.content())
			}
			if kept := c.storage.content(); mode.EndsTasks() && len(kept) > 0 {
				t.Errorf("%s: of the finished job there is left %v", mode, kept)
			}
			second := c.submit(2, func(s *gateway.Submission) { s.RestorePath = r.Savepoint.Path })
			c.expect(second, job.Running)
		})
	}
}

// TestFault_B36_StopThatOneTaskDeclines_LeavesTheJobRunning: the sources are told until they have heard it, and checkpoints go on.
func TestFault_B36_StopThatOneTaskDeclines_LeavesTheJobRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		deaf := atomic.Int64{}
		deaf.Store(3)
		a := c.start("a", 1, script{
			noAck: func(r gateway.TriggerCheckpoint, a job.AttemptID) bool {
				return r.Stop != job.StopNone && a.Task.Vertex == "agg"
			},
			abort: func(context.Context) error {
				if deaf.Add(-1) >= 0 {
					return errors.New("connection reset")
				}
				return nil
			},
		})
		id := c.submit(1)
		time.Sleep(1500 * time.Millisecond)
		stopped := make(chan error, 1)
		go func() {
			_, err := c.m.Stop(t.Context(), gateway.StopJob{Job: id, Directory: "/save", Mode: job.StopSuspend})
			stopped <- err
		}()
		synctest.Wait()
		agg := job.AttemptID{Job: id, Task: job.TaskID{Vertex: "agg"}, Attempt: 1}
		number := checkpoint.ID(c.status(id).Completed + 1)
		if err := c.m.DeclineCheckpoint(t.Context(), gateway.Decline{Epoch: 1, Attempt: agg, ID: number, Reason: checkpoint.Declined, Message: "cannot"}); err != nil {
			t.Fatal(err)
		}
		want(t, <-stopped, gateway.Aborted, gateway.ReasonCheckpointFailed, "DECLINED", "cannot")
		time.Sleep(4500 * time.Millisecond)
		if got := a.abortedNow(); len(got) != 1 || got[0] != number {
			t.Errorf("the executor was told of %v, want once of %d", got, number)
		}
		if s := c.expect(id, job.Running); s.Restarts != 0 || s.Completed < int(number)+1 {
			t.Errorf("%d restarts, %d checkpoints: %s", s.Restarts, s.Completed, s.Detail)
		}
		if got := c.elsewhere.content(); len(got) > 0 {
			t.Errorf("left of the savepoint: %v", got)
		}
	})
}

// TestFault_B102_TasksFailWhileTheyCommit_AndFinishFromTheSavepoint: a restart is from the savepoint and from nothing older, and the tasks only commit.
func TestFault_B102_TasksFailWhileTheyCommit_AndFinishFromTheSavepoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		var stopping atomic.Bool
		a := c.start("a", 1, script{notify: failsWhile(&stopping)})
		id := c.submit(1)
		time.Sleep(1500 * time.Millisecond)
		stopping.Store(true)
		stopped := make(chan error, 1)
		go func() {
			_, err := c.m.Stop(t.Context(), gateway.StopJob{Job: id, Directory: "/save", Mode: job.StopSuspend})
			stopped <- err
		}()
		synctest.Wait()
		_, deployments := a.lastDeployment()
		src := job.AttemptID{Job: id, Task: job.TaskID{Vertex: "src"}, Attempt: 1}
		a.drop(src)
		stopping.Store(false)
		if err := c.m.UpdateTaskState(t.Context(), gateway.TaskUpdate{
			Epoch: 1, Attempt: src, State: job.TaskFailed, Failure: job.Failure{Class: job.FailureTask, Message: "cannot commit"},
		}); err != nil {
			t.Fatal(err)
		}
		if err := <-stopped; err != nil {
			t.Errorf("stop: %v", err)
		}
		s := c.expect(id, job.Finished)
		d, n := a.lastDeployment()
		if n != deployments+1 || s.Restarts != 1 {
			t.Fatalf("%d deployments after %d, %d restarts", n, deployments, s.Restarts)
		}
		for _, task := range d.Tasks {
			if task.Restore == nil || !task.Restore.Stopped || task.Restore.Dir != s.StoppedWith {
				t.Errorf("%s starts from %+v, want the savepoint %s, to finish", task.Attempt, task.Restore, s.StoppedWith)
			}
		}
	})
}

// A job that ends otherwise after its savepoint says where that is, and how to go on.
func TestStop_WhoseJobFailsAfterTheSavepoint_NamesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		var stopping atomic.Bool
		a := c.start("a", 1, script{notify: failsWhile(&stopping)})
		id := c.submit(1, func(s *gateway.Submission) { s.Options.Restart.Strategy = job.NoRestart })
		time.Sleep(500 * time.Millisecond)
		stopping.Store(true)
		stopped := make(chan error, 1)
		go func() {
			_, err := c.m.Stop(t.Context(), gateway.StopJob{Job: id, Directory: "/save", Mode: job.StopSuspend})
			stopped <- err
		}()
		synctest.Wait()
		src := job.AttemptID{Job: id, Task: job.TaskID{Vertex: "src"}, Attempt: 1}
		a.drop(src)
		_ = c.m.UpdateTaskState(t.Context(), gateway.TaskUpdate{
			Epoch: 1, Attempt: src, State: job.TaskFailed, Failure: job.Failure{Class: job.FailureTask, Message: "cannot commit"},
		})
		want(t, <-stopped, gateway.Aborted, gateway.ReasonJobTerminal, "savepoint /save/savepoint-", "FAILED", "start the job from the savepoint")
	})
}

func TestStop_DrainThatFails_RestartsFromTheLatestCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		a := c.start("a", 1, script{noAck: func(r gateway.TriggerCheckpoint, _ job.AttemptID) bool { return r.Stop != job.StopNone }})
		id := c.submit(1, func(s *gateway.Submission) { s.Options.Checkpoint.Timeout = 2 * time.Second })
		time.Sleep(1500 * time.Millisecond)
		last := c.status(id).Last.ID
		_, err := c.m.Stop(t.Context(), gateway.StopJob{Job: id, Directory: "/save", Mode: job.StopDrain})
		want(t, err, gateway.Aborted, gateway.ReasonCheckpointFailed, "EXPIRED")
		time.Sleep(500 * time.Millisecond)
		if s := c.expect(id, job.Running); s.Restarts != 1 || runningTasks(s) != 2 {
			t.Errorf("%d restarts, %d tasks run: %s", s.Restarts, runningTasks(s), s.Detail)
		}
		if d, _ := a.lastDeployment(); d.Tasks[0].Restore == nil || d.Tasks[0].Restore.Checkpoint != last || d.Tasks[0].Restore.Stopped {
			t.Errorf("deployed %+v, want checkpoint %d", d.Tasks[0].Restore, last)
		}
	})
}

// The job master dies when the savepoint is recorded, and before the tasks have committed: the next one lets them commit, and nothing else.
func TestStop_IsBroughtToItsEndByTheNextJobMaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newKept(t)
		var stopping atomic.Bool
		c.start("a", 1, script{notify: failsWhile(&stopping)})
		id := c.submit(1)
		time.Sleep(1500 * time.Millisecond)
		stopping.Store(true)
		go func() {
			_, _ = c.m.Stop(t.Context(), gateway.StopJob{Job: id, Directory: "/save", Mode: job.StopSuspend})
		}()
		synctest.Wait()
		stopping.Store(false) // for the next one
		with := c.status(id).StoppedWith
		if with == "" || s.all()[0].Progress.Stopped != with {
			t.Fatalf("stopped with %q, recorded is %+v", with, s.all()[0].Progress)
		}
		c.elsewhere.dead.Store(true)
		c.kill(s)
		c.elsewhere.dead.Store(false)

		name := with + "/" + checkpoint.MetadataFile
		whole := c.elsewhere.files[name]
		delete(c.elsewhere.files, name)
		n := c.next(s)
		defer n.close()
		n.start("a", 1, script{})
		if got := n.expect(id, job.Created); !strings.Contains(got.Detail, "the savepoint "+with+" that it was stopped with cannot be read") {
			t.Errorf("detail %q", got.Detail)
		}
		n.elsewhere.mu.Lock()
		n.elsewhere.files[name] = whole
		n.elsewhere.mu.Unlock()
		time.Sleep(retryMax)
		if got := n.expect(id, job.Finished); got.StoppedWith != with {
			t.Errorf("stopped with %q, want %q", got.StoppedWith, with)
		}
		if kept := n.storage.content(); len(kept) > 0 {
			t.Errorf("of the finished job there is left %v", kept)
		}
		if len(n.elsewhere.content()) != 4 {
			t.Errorf("the savepoint is not whole: %v", n.elsewhere.content())
		}
	})
}

// No task hears that the savepoint is complete before it is recorded.
func TestStop_WaitsForItsRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newKept(t)
		defer c.close()
		c.start("a", 1, script{})
		id := c.submit(1)
		time.Sleep(1500 * time.Millisecond)
		var full atomic.Bool
		full.Store(true)
		synctest.Wait() // nobody reads the hook meanwhile
		s.before = func(op string) error {
			if op == "progress" && full.Load() {
				return errors.New("the disk is full")
			}
			return nil
		}
		done := make(chan error, 1)
		go func() {
			_, err := c.m.Stop(t.Context(), gateway.StopJob{Job: id, Directory: "/save", Mode: job.StopSuspend})
			done <- err
		}()
		time.Sleep(time.Minute)
		if got := c.expect(id, job.Running); got.StoppedWith != "" {
			t.Errorf("stopped with %q, which is not recorded", got.StoppedWith)
		}
		full.Store(false)
		if err := <-done; err != nil {
			t.Error(err)
		}
		c.expect(id, job.Finished)
	})
}

func TestStop_Errors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.start("a", 1, script{})
		id := c.submit(1)
		c.expect(id, job.Running)
		stop := func(r gateway.StopJob) error {
			_, err := c.m.Stop(t.Context(), r)
			return err
		}
		want(t, stop(gateway.StopJob{Job: "x", Directory: "/save", Mode: job.StopSuspend}), gateway.NotFound, gateway.ReasonJobNotFound)
		want(t, stop(gateway.StopJob{Job: id, Mode: job.StopSuspend}), gateway.InvalidArgument, gateway.ReasonBadParameter, "--savepoint-dir")
		want(t, stop(gateway.StopJob{Job: id, Directory: "save", Mode: job.StopSuspend}), gateway.InvalidArgument, gateway.ReasonBadParameter, "relative")
		want(t, stop(gateway.StopJob{Job: id, Directory: "/save"}), gateway.InvalidArgument, gateway.ReasonBadParameter, "mode none")
		want(t, stop(gateway.StopJob{Job: id, Epoch: 7, Directory: "/save", Mode: job.StopDrain}), gateway.FailedPrecondition, gateway.ReasonStaleEpoch)
		if err := stop(gateway.StopJob{Job: id, Directory: "/save", Mode: job.StopDrain}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want(t, stop(gateway.StopJob{Job: id, Directory: "/save", Mode: job.StopDrain}), gateway.FailedPrecondition, gateway.ReasonJobTerminal, "FINISHED")
	})
}

// failsWhile makes a call that fails while something is so.
func failsWhile(so *atomic.Bool) func(context.Context) error {
	return func(context.Context) error {
		if so.Load() {
			return errors.New("not now")
		}
		return nil
	}
}
