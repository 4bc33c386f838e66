package jobmaster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/scheduler"
	"github.com/weirstream/weir/internal/slotpool"
)

// pipelines submits a job of independent pipelines, one for each subtask.
func (c *cluster) pipelines(parallelism int) job.ID {
	return c.submit(parallelism, func(s *gateway.Submission) { s.JobName = "pipelines" })
}

// attemptsOn lists the numbers of the attempts on each executor, in graph order.
func attemptsOn(s gateway.JobStatus) map[job.ExecutorID][]int {
	out := map[job.ExecutorID][]int{}
	for _, v := range s.Vertices {
		for _, t := range v.Tasks {
			out[t.Executor] = append(out[t.Executor], t.Attempt.Attempt)
		}
	}
	return out
}

func expectAttempts(t *testing.T, s gateway.JobStatus, executor job.ExecutorID, want ...int) {
	t.Helper()
	if got := attemptsOn(s)[executor]; !slices.Equal(got, want) {
		t.Errorf("attempts on %s are %v, want %v", executor, got, want)
	}
}

// TestRegion_ExecutorLost_OnlyItsPipelinesRestart: F7, T3. The attempts of the other pipelines stay as they are, and checkpoints resume.
func TestRegion_ExecutorLost_OnlyItsPipelinesRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		a, b := c.start("a", 2, script{}, "pipelines"), c.start("b", 2, script{}, "pipelines")
		id := c.pipelines(4)
		time.Sleep(2500 * time.Millisecond)
		before := c.expect(id, job.Running).Last.ID
		a.disconnect()
		time.Sleep(time.Second) // the delay has passed, and slots are missing
		s := c.expect(id, job.Restarting)
		expectAttempts(t, s, "b", 1, 1, 1, 1)
		if runningTasks(s) != 4 {
			t.Errorf("%d tasks run on while the others wait for slots, want 4", runningTasks(s))
		}
		x := c.start("x", 2, script{}, "pipelines")
		time.Sleep(100 * time.Millisecond)
		s = c.expect(id, job.Running)
		expectAttempts(t, s, "b", 1, 1, 1, 1)
		expectAttempts(t, s, "x", 2, 2, 2, 2)
		d, n := x.lastDeployment()
		if n != 1 || len(d.Tasks) != 4 || len(d.Placements) != 4 {
			t.Fatalf("%d deployments on x, the last of %d tasks that know of %d, want 1, 4 and 4", n, len(d.Tasks), len(d.Placements))
		}
		for _, task := range d.Tasks {
			if task.Restore == nil || task.Restore.Checkpoint != before {
				t.Errorf("%s restores %+v, want checkpoint %d", task.Attempt, task.Restore, before)
			}
		}
		if _, n := b.lastDeployment(); n != 1 {
			t.Errorf("%d deployments on b, want 1", n)
		}
		time.Sleep(2 * time.Second)
		if s := c.expect(id, job.Running); s.Last.ID <= before || s.Restarts != 1 {
			t.Errorf("the latest checkpoint is %d after %d restarts, it was %d before", s.Last.ID, s.Restarts, before)
		}
		c.endOfData(b, x)
		c.expect(id, job.Finished)
	})
}

// endOfData brings a bounded job to its end.
func (c *cluster) endOfData(executors ...*executor) {
	for _, x := range executors {
		x.endOfData()
	}
	time.Sleep(5 * time.Second)
}

// TestRegion_TaskFailed_ComesBackToItsSlotAndTheOthersHearOfAborts: what is pending is aborted with a reason that is not counted, no slot is asked for, and
// a task that may be aligning for the aborted checkpoint is told.
func TestRegion_TaskFailed_ComesBackToItsSlotAndTheOthersHearOfAborts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		a := c.start("a", 2, script{}, "pipelines")
		b := c.start("b", 2, script{noAck: func(r gateway.TriggerCheckpoint, _ job.AttemptID) bool { return r.ID == 3 }}, "pipelines")
		id := c.pipelines(4)
		time.Sleep(2500 * time.Millisecond) // checkpoint 3 is pending since 2 s
		c.expect(id, job.Running)
		failed := a.attempts()[0]
		a.drop(failed)
		err := c.m.UpdateTaskState(t.Context(), gateway.TaskUpdate{
			Epoch: 1, Attempt: failed, State: job.TaskFailed, Failure: job.Failure{Class: job.FailureTask, Message: "disk full"},
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
		s := c.expect(id, job.Running)
		expectAttempts(t, s, "b", 1, 1, 1, 1)
		expectAttempts(t, s, "a", 2, 1, 2, 1)
		if !slices.Contains(b.abortedNow(), 3) {
			t.Errorf("b has heard of the aborts of %v, want 3 among them", b.abortedNow())
		}
		for _, p := range b.attempts() {
			if p.Attempt != 1 {
				t.Errorf("%s was started on b", p)
			}
		}
		list, err := c.m.Checkpoints(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list.Checkpoints {
			if s.ID == 3 && (s.State != gateway.CheckpointAborted || s.Failure != "FAILOVER_REGION: tasks of another region are started again") {
				t.Errorf("checkpoint 3 is %v: %s", s.State, s.Failure)
			}
		}
		time.Sleep(2 * time.Second)
		if s := c.expect(id, job.Running); s.Last.ID <= 3 || s.Restarts != 1 {
			t.Errorf("the latest checkpoint is %d after %d restarts, want more than 3 after 1", s.Last.ID, s.Restarts)
		}
	})
}

// TestRegion_FailsWhileMetadataIsWritten_RestartsFromThatCheckpointAndTheOthersCommit: a checkpoint that may be durable is awaited, and is the one.
func TestRegion_FailsWhileMetadataIsWritten_RestartsFromThatCheckpointAndTheOthersCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		slowMetadata(c, 3*time.Second)
		a, b := c.start("a", 2, script{}, "pipelines"), c.start("b", 4, script{}, "pipelines")
		id := c.pipelines(4)
		time.Sleep(1500 * time.Millisecond) // checkpoint 1 is FINALIZING
		mine := len(a.attempts())
		a.disconnect()
		time.Sleep(time.Second)
		synctest.Wait()
		if _, n := b.lastDeployment(); n != 1 {
			t.Fatal("the region was deployed again before it was known what to restore")
		}
		time.Sleep(time.Second)
		c.expect(id, job.Running)
		d, n := b.lastDeployment()
		if n != 2 || len(d.Tasks) != mine || d.Tasks[0].Restore == nil || d.Tasks[0].Restore.Checkpoint != 1 {
			t.Fatalf("deployment %d of %d tasks restores %+v, want checkpoint 1 for %d", n, len(d.Tasks), d.Tasks[0].Restore, mine)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if !slices.Contains(b.notified, checkpoint.ID(1)) {
			t.Errorf("the tasks that run on have heard of %v, want 1 among them", b.notified)
		}
	})
}

// TestRegion_LosesSlotsWhileTheExecutorRegistersAnew_GetsThemOnTheNewSession: the slots of a job on two sessions of one executor are not mixed up,
// whichever is heard of first.
func TestRegion_LosesSlotsWhileTheExecutorRegistersAnew_GetsThemOnTheNewSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		a, b := c.start("a", 2, script{}, "pipelines"), c.start("b", 2, script{}, "pipelines")
		id := c.pipelines(4)
		time.Sleep(1500 * time.Millisecond)
		before := c.expect(id, job.Running).Last.ID
		for n := range 3 {
			again := a.reg
			again.Incarnation, again.Address = again.Incarnation+"x", again.Address+"x"
			next := c.startAs(again, script{}) // the old session ends because of this one
			time.Sleep(2 * time.Second)
			s := c.expect(id, job.Running)
			expectAttempts(t, s, "a", n+2, n+2, n+2, n+2)
			expectAttempts(t, s, "b", 1, 1, 1, 1)
			if got := len(next.attempts()); got != 4 {
				t.Errorf("%d tasks run in session %d of a, want 4", got, n+2)
			}
			a.disconnect()
			a = next
		}
		time.Sleep(3 * time.Second)
		if s := c.expect(id, job.Running); s.Last.ID <= before || s.Restarts != 3 {
			t.Errorf("the latest checkpoint is %d after %d restarts, it was %d before", s.Last.ID, s.Restarts, before)
		}
		if _, n := b.lastDeployment(); n != 1 {
			t.Errorf("%d deployments on b, want 1", n)
		}
	})
}

// TestRegion_FailsWhileItCommitsTheStop_OnlyThatRegionFinishesFromTheSavepoint: the others have committed and finished, and stay so.
func TestRegion_FailsWhileItCommitsTheStop_OnlyThatRegionFinishesFromTheSavepoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		var stopping atomic.Bool
		a := c.start("a", 2, script{}, "pipelines")
		b := c.start("b", 2, script{notify: func(context.Context) error {
			if stopping.Load() {
				return errors.New("not now")
			}
			return nil
		}}, "pipelines")
		id := c.pipelines(4)
		time.Sleep(1500 * time.Millisecond)
		stopping.Store(true)
		stopped := make(chan error, 1)
		go func() {
			_, err := c.m.Stop(t.Context(), gateway.StopJob{Job: id, Directory: "/save", Mode: job.StopSuspend})
			stopped <- err
		}()
		synctest.Wait()
		if n := len(a.attempts()); n != 0 {
			t.Errorf("%d tasks of a have not finished", n)
		}
		b.disconnect()
		x := c.start("x", 2, script{}, "pipelines")
		if err := <-stopped; err != nil {
			t.Errorf("stop: %v", err)
		}
		s := c.expect(id, job.Finished)
		expectAttempts(t, s, "a", 1, 1, 1, 1)
		expectAttempts(t, s, "x", 2, 2, 2, 2)
		if _, n := a.lastDeployment(); n != 1 {
			t.Errorf("%d deployments on a, want 1", n)
		}
		d, _ := x.lastDeployment()
		for _, task := range d.Tasks {
			if task.Restore == nil || !task.Restore.Stopped || task.Restore.Dir != s.StoppedWith {
				t.Errorf("%s starts from %+v, want the savepoint %s, to finish", task.Attempt, task.Restore, s.StoppedWith)
			}
		}
	})
}

// TestRegion_TasksThatFinishedWhileAnotherRegionRestarts_StayFinished: later checkpoints do without them, so the job comes to its end.
func TestRegion_TasksThatFinishedWhileAnotherRegionRestarts_StayFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		a := c.start("a", 2, script{}, "pipelines")
		b := c.start("b", 2, script{notify: func(context.Context) error { return errors.New("not now") }}, "pipelines")
		id := c.pipelines(4)
		time.Sleep(1500 * time.Millisecond)
		c.expect(id, job.Running)
		for _, x := range []*executor{a, b} {
			x.endOfData()
		}
		time.Sleep(500 * time.Millisecond) // the final checkpoint has completed, and b has not heard of it
		if n, m := len(a.attempts()), len(b.attempts()); n != 0 || m != 4 {
			t.Fatalf("%d tasks of a and %d of b run, want 0 and 4", n, m)
		}
		b.disconnect()
		x := c.start("x", 2, script{}, "pipelines")
		time.Sleep(time.Second)
		s := c.expect(id, job.Running)
		expectAttempts(t, s, "a", 1, 1, 1, 1)
		expectAttempts(t, s, "x", 2, 2, 2, 2)
		before := s.Completed
		c.endOfData(x)
		if s := c.expect(id, job.Finished); s.Completed <= before || s.Failed != 0 {
			t.Errorf("%d checkpoints completed, %d failed, want more than %d and none", s.Completed, s.Failed, before)
		}
		if _, n := a.lastDeployment(); n != 1 {
			t.Errorf("%d deployments on a, want 1", n)
		}
	})
}

// TestRegion_ExecutorComesBackWhileADeploymentToItWaits_IsSentOnlyTheNextOne: what waits is of attempts that are lost by then.
func TestRegion_ExecutorComesBackWhileADeploymentToItWaits_IsSentOnlyTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		slowMetadata(c, 4*time.Second)
		a := c.start("a", 1, script{}, "pipelines")
		c.start("b", 1, script{}, "pipelines")
		id := c.pipelines(2)
		time.Sleep(100 * time.Millisecond) // checkpoint 1 is FINALIZING
		for n := range 2 {
			again := a.reg
			again.Incarnation, again.Address = again.Incarnation+"x", again.Address+"x"
			a.disconnect()
			a = c.startAs(again, script{})
			time.Sleep(time.Second)
			if _, sent := a.lastDeployment(); sent != 0 {
				t.Fatalf("session %d of a was deployed to before it was known what to restore", n+2)
			}
		}
		time.Sleep(3 * time.Second)
		s := c.expect(id, job.Running)
		expectAttempts(t, s, "a", 3, 3)
		expectAttempts(t, s, "b", 1, 1)
		d, n := a.lastDeployment()
		if n != 1 || len(d.Tasks) != 2 || len(d.Placements) != 2 || d.Tasks[0].Attempt.Attempt != 3 || d.Tasks[0].Restore.Checkpoint != 1 {
			t.Errorf("%d deployments on a, the last of %+v", n, d.Tasks)
		}
	})
}

// deaf is an executor that takes every deployment and says nothing.
type deaf struct{ gateway.TaskExecutor }

func (deaf) DeployTasks(context.Context, gateway.DeployTasks) error { return nil }

// TestRegion_GrantOfANewSession_BeforeTheLossOfTheOldOneIsHeardOf: the slots that the job had in the old session are lost before it has one in the new
// session, and the message that comes late does not take that one.
func TestRegion_GrantOfANewSession_BeforeTheLossOfTheOldOneIsHeardOf(t *testing.T) {
	synctest.Test(t, grantOfANewSession)
}

func grantOfANewSession(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cfg := Config{Epoch: 1, Random: func() float64 { return 0 }}.withDefaults()
	g := graphOf("pipelines", 2)
	l := newJobLoop(&cfg, slotpool.New(), spec{id: "j", name: "pipelines", graph: g, options: job.Options{}.Normalize()})
	defer l.work.Wait()
	defer cancel()
	session := func(id job.ExecutorID) *slotpool.Session {
		return &slotpool.Session{Registration: gateway.Registration{Executor: id}, Client: deaf{}}
	}
	grant := func(sessions ...*slotpool.Session) {
		a := slotpool.Allocation{Grant: slotpool.Grant{Number: l.running.request}, Sessions: map[job.ExecutorID]*slotpool.Session{}}
		for _, s := range sessions {
			a.Slots = append(a.Slots, job.Slot{Executor: s.Registration.Executor})
			a.Sessions[s.Registration.Executor] = s
		}
		granted{a}.apply(l)
		l.settle(ctx)
	}
	state := func() (out []string) {
		for _, e := range l.sched.Executions() {
			out = append(out, fmt.Sprintf("%s#%d %s@%s", e.Task, e.Attempt, e.State, e.Executor))
		}
		return out
	}
	oldA, newA, b := session("a"), session("a"), session("b")
	l.feed(scheduler.Start{})
	l.settle(ctx)
	grant(oldA, b)
	executorLost{b, "its connection broke"}.apply(l)
	l.settle(ctx)
	l.feed(scheduler.Tick{})
	l.settle(ctx)
	for at, ok := l.sched.Deadline(); ok; at, ok = l.sched.Deadline() { // the delay of the restart
		time.Sleep(time.Until(at))
		l.tick(time.Now())
		l.settle(ctx)
	}
	grant(newA)
	want := []string{"src[0]#1 FAILED@a", "src[1]#2 DEPLOYING@a", "agg[0]#1 FAILED@a", "agg[1]#2 DEPLOYING@a"}
	if got := state(); !slices.Equal(got, want) {
		t.Errorf("after the grant %v, want %v", got, want)
	}
	executorLost{oldA, "it has registered anew"}.apply(l)
	l.settle(ctx)
	if got := state(); !slices.Equal(got, want) {
		t.Errorf("after the message %v, want %v", got, want)
	}
}
