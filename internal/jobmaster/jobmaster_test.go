package jobmaster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

func TestJob_RunsTakesCheckpointsAndFinishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		a, b := c.start("a", 1, script{}), c.start("b", 1, script{})
		id := c.submit(2)
		s := c.expect(id, job.Running)
		if runningTasks(s) != 4 || s.Restarts != 0 || s.Fingerprint != "f2" {
			t.Fatalf("status %+v, want 4 running tasks", s)
		}
		checkFreshStart(t, a, b)
		time.Sleep(3500 * time.Millisecond)
		s = c.expect(id, job.Running)
		if s.Completed < 3 || s.Failed != 0 || s.Last == nil || s.Last.StateBytes != 20 || !strings.HasPrefix(s.Last.Path, "file:///chk/job-1/chk-") {
			t.Fatalf("after 3.5 s: %d completed, %d failed, last %+v", s.Completed, s.Failed, s.Last)
		}
		if s.Vertices[0].Tasks[0].RecordsIn != 7 {
			t.Errorf("records of the heartbeat are not in the status: %+v", s.Vertices[0].Tasks[0])
		}
		if got := c.storage.content(); len(got) != 6 { // four state files, the metadata and the directory of the one that is retained
			t.Errorf("storage holds %v, want one checkpoint", got)
		}
		var events []string
		watched := make(chan error, 1)
		go func() {
			watched <- c.m.Watch(t.Context(), id, func(_ gateway.JobStatus, more []gateway.JobEvent) error {
				for _, e := range more {
					events = append(events, e.Text)
				}
				return nil
			})
		}()
		a.endOfData()
		b.endOfData()
		if err := <-watched; err != nil {
			t.Fatalf("watch: %v", err)
		}
		s = c.expect(id, job.Finished)
		if s.Ended.IsZero() {
			t.Error("the job has ended at no time")
		}
		if got := c.storage.content(); len(got) != 0 {
			t.Errorf("storage holds %v after the job has finished, want nothing", got)
		}
		if text := strings.Join(events, "\n"); !strings.Contains(text, "RUNNING -> FINISHED") || !strings.Contains(text, "checkpoint 1 completed") {
			t.Errorf("the timeline is\n%s", text)
		}
		free := 0
		executors, _ := c.m.TaskExecutors(t.Context())
		for _, e := range executors {
			free += e.FreeSlots
		}
		if free != 2 {
			t.Errorf("%d slots are free after the end, want 2", free)
		}
	})
}

// checkFreshStart sees that each executor was told to start two tasks without state, and that each split is read once.
func checkFreshStart(t *testing.T, executors ...*executor) {
	t.Helper()
	var splits []int
	for _, x := range executors {
		d, n := x.lastDeployment()
		if n != 1 || len(d.Tasks) != 2 || len(d.Placements) != 4 {
			t.Fatalf("executor %s: %d deployments, the last %+v", x.id, n, d)
		}
		for _, task := range d.Tasks {
			if task.Restore != nil {
				t.Errorf("%s starts from %+v, want an empty start", task.Attempt, task.Restore)
			}
			splits = append(splits, task.Splits...)
		}
	}
	slices.Sort(splits)
	if !slices.Equal(splits, []int{0, 1, 2}) {
		t.Errorf("the sources got splits %v, want each once", splits)
	}
}

func TestExecutorLost_JobRestartsFromTheLatestCheckpointOnTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		a, b := c.start("a", 2, script{}), c.start("b", 2, script{})
		id := c.submit(2)
		time.Sleep(2500 * time.Millisecond)
		before := c.expect(id, job.Running).Last.ID
		lost := time.Now()
		b.disconnect()
		for c.status(id).State != job.Running || runningTasks(c.status(id)) != 4 || c.status(id).Restarts == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(lost); took > time.Second {
			t.Errorf("all tasks run again after %s, want under 1 s", took)
		}
		d, n := a.lastDeployment()
		if n != 2 || len(d.Tasks) != 4 {
			t.Fatalf("%d deployments on a, the last with %d tasks, want 2 and 4", n, len(d.Tasks))
		}
		for _, task := range d.Tasks {
			if task.Attempt.Attempt != 2 || task.Restore == nil || task.Restore.Checkpoint != before || len(task.Splits) != 0 {
				t.Fatalf("%s restores %+v with splits %v, want checkpoint %d and no splits", task.Attempt, task.Restore, task.Splits, before)
			}
			if want := checkpoint.Dir(id, before); task.Restore.Dir != want {
				t.Errorf("restore directory %s, want %s", task.Restore.Dir, want)
			}
			first := job.AttemptID{Job: id, Task: task.Attempt.Task, Attempt: 1}
			if got := task.Restore.State.Operators; len(got) != 1 || got[0].Items[0].Handle.Path != checkpoint.StateFile(first, before) {
				t.Errorf("%s restores %+v, want its own file", task.Attempt, got)
			}
		}
		time.Sleep(2 * time.Second)
		if s := c.expect(id, job.Running); s.Last.ID <= before {
			t.Errorf("latest checkpoint is %d after the restart, it was %d before", s.Last.ID, before)
		}
		list, _ := c.m.Checkpoints(t.Context(), id)
		restored := 0
		for _, s := range list.Checkpoints {
			if s.Restored {
				restored++
				if s.ID != before {
					t.Errorf("checkpoint %d is marked as restored, want %d", s.ID, before)
				}
			}
		}
		if restored != 1 {
			t.Errorf("%d checkpoints are marked as restored", restored)
		}
	})
}

func TestExecutorLost_WhileMetadataIsWritten_RestartsFromThatCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.storage.before = func(op, name string) error {
			if op == "create" && strings.HasSuffix(name, checkpoint.MetadataFile) {
				time.Sleep(3 * time.Second)
			}
			return nil
		}
		a, b := c.start("a", 2, script{}), c.start("b", 2, script{})
		id := c.submit(2)
		time.Sleep(1500 * time.Millisecond) // checkpoint 1 is FINALIZING since the first moment
		b.disconnect()
		time.Sleep(time.Second)
		synctest.Wait()
		if _, n := a.lastDeployment(); n != 1 {
			t.Fatal("the job was deployed again before it was known what to restore")
		}
		time.Sleep(time.Second)
		c.expect(id, job.Running)
		d, n := a.lastDeployment()
		if n != 2 || d.Tasks[0].Restore == nil || d.Tasks[0].Restore.Checkpoint != 1 {
			t.Fatalf("deployment %d restores %+v, want checkpoint 1", n, d.Tasks[0].Restore)
		}
	})
}

func TestSlowMetadataWrite_HoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.storage.before = func(op, name string) error {
			if op == "create" && strings.HasSuffix(name, checkpoint.MetadataFile) {
				time.Sleep(30 * time.Second)
			}
			return nil
		}
		a := c.start("a", 2, script{})
		id := c.submit(2)
		time.Sleep(5 * time.Second)
		h, _ := c.m.Checkpoints(t.Context(), id)
		list := h.Checkpoints
		if len(list) != 1 || list[0].State != gateway.CheckpointFinalizing {
			t.Fatalf("checkpoints %+v, want one that is FINALIZING", list)
		}
		within := func(what string, f func()) {
			t.Helper()
			start := time.Now()
			f()
			if took := time.Since(start); took > 50*time.Millisecond {
				t.Errorf("%s took %s", what, took)
			}
		}
		within("a repeated ack", func() {
			if v, err := c.m.AcknowledgeCheckpoint(t.Context(), ackOf(a.attempts()[0], 1)); v != checkpoint.Duplicate || err != nil {
				t.Errorf("verdict %s, %v, want DUPLICATE", v, err)
			}
		})
		within("status", func() { c.status(id) })
		within("a heartbeat", func() {
			if _, err := c.m.Heartbeat(t.Context(), gateway.Heartbeat{Executor: "a", Incarnation: "a-1", Epoch: 1,
				Tasks: []gateway.TaskReport{{Attempt: a.attempts()[0], State: job.TaskRunning}}}); err != nil {
				t.Errorf("heartbeat: %v", err)
			}
		})
		within("cancel", func() {
			if s, err := c.m.Cancel(t.Context(), id); s != job.Canceled || err != nil {
				t.Errorf("cancel: %s, %v", s, err)
			}
		})
		stop := time.Now()
		c.stop()
		c.stopped <- <-c.stopped
		if took := time.Since(stop); took < 20*time.Second {
			t.Errorf("Run returned after %s, while metadata was still being written", took)
		}
		if h, _ = c.m.Checkpoints(t.Context(), id); h.Checkpoints[0].State != gateway.CheckpointCompleted {
			t.Errorf("checkpoint is %s, want COMPLETED: it was durable", h.Checkpoints[0].State)
		}
	})
}

func TestFullCluster_JobSaysWhatItWaitsForAndRunsWhenAnExecutorRegisters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.start("a", 2, script{})
		c.start("z", 4, script{}, "wordcount")
		first := c.submit(1)
		second := c.submit(2)
		c.expect(first, job.Running)
		s := c.expect(second, job.Created)
		want := `needs 2 slots on executors that have job "flights"; 1 registered with it, 1 of 2 slots free (1 used by job job-1)`
		if s.Detail != want {
			t.Errorf("detail %q, want %q", s.Detail, want)
		}
		c.start("b", 1, script{})
		c.expect(second, job.Running)
		third := c.submit(2)
		c.expect(third, job.Created)
		if _, err := c.m.Cancel(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		c.expect(third, job.Running)
	})
}

func TestCancel_OfAJobThatWaitsForSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.start("a", 1, script{})
		id := c.submit(2)
		c.expect(id, job.Created)
		if s, err := c.m.Cancel(t.Context(), id); s != job.Canceled || err != nil {
			t.Fatalf("cancel: %s, %v", s, err)
		}
		if s, err := c.m.Cancel(t.Context(), id); s != job.Canceled || err != nil {
			t.Errorf("a second cancel: %s, %v", s, err)
		}
	})
}

func TestHeartbeat_ThatIsMissing_LosesTheExecutor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		a := c.start("a", 1, script{mute: true})
		id := c.submit(1)
		c.expect(id, job.Running)
		err := <-a.ended
		if gateway.CodeOf(err) != gateway.Unavailable {
			t.Errorf("the registration ended with %v", err)
		}
		time.Sleep(time.Second)
		s := c.expect(id, job.Restarting)
		if !strings.Contains(s.Detail, "needs 1 slots") || !strings.Contains(s.Detail, "no heartbeat of executor a within 5s") {
			t.Errorf("detail %q", s.Detail)
		}
		_, err = c.m.Heartbeat(t.Context(), gateway.Heartbeat{Executor: "a", Incarnation: "a-1", Epoch: 1})
		if gateway.ReasonOf(err) != gateway.ReasonNotRegistered {
			t.Errorf("a heartbeat after the loss: %v", err)
		}
	})
}

func TestNewIncarnation_ReplacesTheOldOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		old := c.start("a", 1, script{})
		id := c.submit(1)
		c.expect(id, job.Running)
		r := old.reg
		r.Incarnation, r.Address = "a-2", "a:2"
		fresh := c.startAs(r, script{})
		if err := <-old.ended; gateway.ReasonOf(err) != gateway.ReasonReplaced {
			t.Errorf("the old registration ended with %v", err)
		}
		time.Sleep(500 * time.Millisecond)
		s := c.expect(id, job.Running)
		if _, n := fresh.lastDeployment(); n != 1 || s.Restarts != 1 {
			t.Errorf("%d deployments on the new incarnation, %d restarts", n, s.Restarts)
		}
		_, err := c.m.Heartbeat(t.Context(), gateway.Heartbeat{Executor: "a", Incarnation: "a-1", Epoch: 1})
		if gateway.ReasonOf(err) != gateway.ReasonNotRegistered {
			t.Errorf("a heartbeat of the old incarnation: %v", err)
		}
	})
}

func TestCancel_DuringDeployment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		slow := func(ctx context.Context) error {
			select {
			case <-time.After(5 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		a := c.start("a", 1, script{deploy: slow})
		c.start("b", 1, script{})
		id := c.submit(2)
		time.Sleep(time.Second)
		start := time.Now()
		if s, err := c.m.Cancel(t.Context(), id); s != job.Canceled || err != nil {
			t.Fatalf("cancel: %s, %v", s, err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("cancel took %s", took)
		}
		synctest.Wait()
		if left := a.attempts(); len(left) > 0 {
			t.Errorf("tasks %v still run: the cancellation overtook the deployment", left)
		}
	})
}

func TestSlowExecutor_DelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.start("a", 1, script{deploy: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }})
		b := c.start("b", 1, script{})
		id := c.submit(2)
		synctest.Wait()
		if _, n := b.lastDeployment(); n != 1 {
			t.Fatalf("b has %d deployments while a hangs, want 1", n)
		}
		time.Sleep(deployTimeout + time.Second)
		if s := c.expect(id, job.Running); s.Restarts != 1 {
			t.Errorf("%d restarts after the deployment has timed out, want 1", s.Restarts)
		}
	})
}

func TestDeploy_RefusedForTheFingerprint_FailsTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.start("a", 1, script{deploy: func(context.Context) error {
			return &gateway.Error{Code: gateway.FailedPrecondition, Reason: gateway.ReasonFingerprint, Message: "operator agg differs"}
		}})
		id := c.submit(1)
		if s := c.expect(id, job.Failed); !strings.Contains(s.Detail, "operator agg differs") {
			t.Errorf("detail %q", s.Detail)
		}
	})
}

func TestExecutor_ThatDoesNotEndItsTasks_IsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		a := c.start("a", 1, script{stuck: true})
		id := c.submit(1)
		c.expect(id, job.Running)
		if s, err := c.m.Cancel(t.Context(), id); s != job.Canceled || err != nil {
			t.Fatalf("cancel: %s, %v", s, err)
		}
		if err := <-a.ended; err == nil || !strings.Contains(err.Error(), "did not end task") {
			t.Errorf("the registration ended with %v", err)
		}
	})
}

func TestNotifyComplete_IsRepeatedUntilTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		failures := 2
		a := c.start("a", 1, script{notify: func(context.Context) error {
			if failures--; failures >= 0 {
				return errors.New("lost")
			}
			return nil
		}})
		id := c.submit(1, func(s *gateway.Submission) { s.Options.Checkpoint.Interval = -1 })
		c.expect(id, job.Running)
		if _, err := c.m.TriggerCheckpoint(t.Context(), id, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if !slices.Equal(a.notified, []checkpoint.ID{1}) {
			t.Errorf("notified of %v, want 1 once, after two lost calls", a.notified)
		}
	})
}

func TestShutdown_LeavesRunningJobsAndTheirCheckpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		a := c.start("a", 1, script{})
		id := c.submit(1)
		time.Sleep(1500 * time.Millisecond)
		watched := make(chan error, 1)
		go func() {
			watched <- c.m.Watch(t.Context(), id, func(gateway.JobStatus, []gateway.JobEvent) error { return nil })
		}()
		synctest.Wait()
		c.close()
		for what, err := range map[string]error{"watch": <-watched, "registration": <-a.ended} {
			if gateway.CodeOf(err) != gateway.Unavailable {
				t.Errorf("the %s ended with %v, want Unavailable", what, err)
			}
		}
		if got := c.storage.content(); !slices.ContainsFunc(got, func(n string) bool { return strings.HasSuffix(n, checkpoint.MetadataFile) }) {
			t.Errorf("storage holds %v, want the retained checkpoint", got)
		}
		if _, err := c.m.Submit(t.Context(), gateway.Submission{JobName: "flights"}); gateway.CodeOf(err) != gateway.Unavailable {
			t.Errorf("submit after the end: %v", err)
		}
		if _, err := c.m.TriggerCheckpoint(t.Context(), id, 0); gateway.CodeOf(err) != gateway.Unavailable {
			t.Errorf("trigger after the end: %v", err)
		}
	})
}

// A job that failed is one that somebody will want to go on with; to delete on cancel does not mean it.
func TestFailedJob_KeepsItsCheckpoint(t *testing.T) {
	for _, remove := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			defer c.close()
			a := c.start("a", 1, script{})
			id := c.submit(1, func(s *gateway.Submission) {
				s.Options.Checkpoint.DeleteOnCancel, s.Options.Restart.Strategy = remove, job.NoRestart
			})
			time.Sleep(1500 * time.Millisecond)
			err := c.m.UpdateTaskState(t.Context(), gateway.TaskUpdate{
				Epoch: 1, Attempt: a.attempts()[0], State: job.TaskFailed, Failure: job.Failure{Class: job.FailureTask, Message: "bad row"},
			})
			if err != nil {
				t.Fatal(err)
			}
			if c.expect(id, job.Failed); !hasMetadata(c, id, 2) {
				t.Errorf("DeleteOnCancel %t: the checkpoint is gone; storage holds %v", remove, c.storage.content())
			}
		})
	}
}

func TestCanceledJob_KeepsItsCheckpointUnlessToldOtherwise(t *testing.T) {
	for _, remove := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			defer c.close()
			c.start("a", 1, script{})
			id := c.submit(1, func(s *gateway.Submission) { s.Options.Checkpoint.DeleteOnCancel = remove })
			time.Sleep(1500 * time.Millisecond)
			if s, err := c.m.Cancel(t.Context(), id); s != job.Canceled || err != nil {
				t.Fatalf("cancel: %s, %v", s, err)
			}
			if got := c.storage.content(); remove != (len(got) == 0) {
				t.Errorf("DeleteOnCancel %t: storage holds %v", remove, got)
			}
		})
	}
}
