package jobmaster

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

	"github.com/weirstream/weir/internal/archive"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// Tests named TestFault_Bn_ are those of the table in docs/faults.md.

// uncertainMetadata writes the metadata of a checkpoint and then says that nobody knows.
func uncertainMetadata(c *cluster, id checkpoint.ID) {
	c.storage.after = func(op, name string) error {
		if op == "create" && strings.HasSuffix(name, fmt.Sprintf("/chk-%d/%s", id, checkpoint.MetadataFile)) {
			return fmt.Errorf("connection lost: %w", archive.ErrUncertain)
		}
		return nil
	}
}

func hasMetadata(c *cluster, id job.ID, n checkpoint.ID) bool {
	return slices.Contains(c.storage.content(), checkpoint.Dir(id, n)+"/"+checkpoint.MetadataFile)
}

func statusOf(t *testing.T, c *cluster, id job.ID, n checkpoint.ID) gateway.CheckpointStatus {
	t.Helper()
	list, err := c.m.Checkpoints(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list.Checkpoints {
		if s.ID == n {
			return s
		}
	}
	t.Fatalf("no checkpoint %d in %+v", n, list)
	return gateway.CheckpointStatus{}
}

// The pointer was written and the answer lost: no file of the checkpoint may be deleted while a restore could find it.
func TestFault_B93_MetadataWrittenAndAnswerLost_FilesStayUntilANewerOneCompletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		uncertainMetadata(c, 2)
		a := c.start("a", 2, script{})
		id := c.submit(2, func(s *gateway.Submission) { s.Options.Checkpoint.TolerableFailures = 3 })
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if s := statusOf(t, c, id, 2); s.State != gateway.CheckpointAborted || !strings.Contains(s.Failure, "FINALIZE_FAILURE") {
			t.Fatalf("checkpoint 2: %+v, want it reported as a failure", s)
		}
		if !hasMetadata(c, id, 2) {
			t.Fatal("the files of a checkpoint that may be durable were deleted")
		}
		if v, err := c.m.AcknowledgeCheckpoint(t.Context(), ackOf(a.attempts()[0], 2)); v != checkpoint.Duplicate || err != nil {
			t.Errorf("a repeated ack is answered %s, %v: its sender would delete a file that the metadata refers to", v, err)
		}
		if s := c.status(id); s.Failed != 1 {
			t.Errorf("%d failures counted", s.Failed)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if s := c.expect(id, job.Running); s.Last == nil || s.Last.ID != 3 || s.Restarts != 0 || hasMetadata(c, id, 2) {
			t.Errorf("after checkpoint 3: last %+v, %d restarts, files of 2 are there: %t", s.Last, s.Restarts, hasMetadata(c, id, 2))
		}
	})
}

// The same, and the job restarts: it must not run on from an older checkpoint while the newer one could be found by the next leader.
func TestFault_B93_RestartWithAnUncertainCheckpoint_DeletesItFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		uncertainMetadata(c, 2)
		a, b := c.start("a", 2, script{}), c.start("b", 2, script{})
		id := c.submit(2, func(s *gateway.Submission) { s.Options.Checkpoint.TolerableFailures = 3 })
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		var broken atomic.Bool
		broken.Store(true)
		c.storage.before = func(op, name string) error {
			if op == "discard" && strings.HasSuffix(name, "/chk-2") && broken.Load() {
				return errors.New("read-only file system")
			}
			return nil
		}
		b.disconnect()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if _, n := a.lastDeployment(); n != 1 {
			t.Fatal("the job was deployed from an older checkpoint while the newer one is still there")
		}
		if s := c.status(id); !strings.Contains(s.Detail, "whose fate is not known") {
			t.Errorf("detail %q does not say what the job waits for", s.Detail)
		}
		broken.Store(false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		d, n := a.lastDeployment()
		if n != 2 || d.Tasks[0].Restore == nil || d.Tasks[0].Restore.Checkpoint != 1 || hasMetadata(c, id, 2) {
			t.Errorf("%d deployments, the last restores %+v; files of 2 are there: %t", n, d.Tasks[0].Restore, hasMetadata(c, id, 2))
		}
	})
}

// A job that looks healthy while its checkpoints never complete says so, with the cause, and when it is over.
func TestDegraded_IsInTheStatusAndTheTimelineUntilACheckpointCompletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.start("a", 2, script{noAck: func(r gateway.TriggerCheckpoint, a job.AttemptID) bool { return r.ID < 3 && a.Task.Vertex != "src" }})
		id := c.submit(1, func(s *gateway.Submission) {
			s.Options.Checkpoint.TolerableFailures, s.Options.Checkpoint.Timeout = 9, 2*time.Second
			s.Options.Checkpoint.DegradedAfter = 3 * time.Second
		})
		time.Sleep(2900 * time.Millisecond)
		if s := c.expect(id, job.Running); s.Degraded != "" {
			t.Errorf("degraded after 2.9s: %s", s.Degraded)
		}
		time.Sleep(200 * time.Millisecond)
		if s := c.expect(id, job.Running); !strings.Contains(s.Degraded, "EXPIRED") || !strings.Contains(s.Degraded, "more than 3s") {
			t.Errorf("degraded %q, want the time and the cause", s.Degraded)
		}
		time.Sleep(5 * time.Second)
		if s := c.expect(id, job.Running); s.Degraded != "" || s.Last == nil {
			t.Errorf("degraded %q after checkpoint %+v", s.Degraded, s.Last)
		}
		var told []string
		end := errors.New("seen")
		if err := c.m.Watch(t.Context(), id, func(_ gateway.JobStatus, events []gateway.JobEvent) error {
			for _, e := range events {
				if strings.HasPrefix(e.Text, "degraded") {
					told = append(told, e.Text)
				}
			}
			return end
		}); !errors.Is(err, end) {
			t.Fatal(err)
		}
		if len(told) != 2 || !strings.HasPrefix(told[0], "degraded: ") || !strings.HasPrefix(told[1], "degraded no longer") {
			t.Errorf("the timeline says %q", told)
		}
	})
}

// Many people ask for savepoints while checkpoints are triggered by the clock: no request is lost, and no id is used twice.
func TestFault_B1_ManySavepointsBesidePeriodicCheckpoints_AllAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.start("a", 2, script{})
		id := c.submit(1, func(s *gateway.Submission) { s.Options.Checkpoint.Interval = 10 * time.Millisecond })
		time.Sleep(time.Second)
		const people = 20
		ids, errs := make(chan checkpoint.ID, people), make(chan error, people)
		for range people {
			go func() {
				r, err := c.m.TriggerSavepoint(t.Context(), gateway.TriggerSavepoint{Job: id, Directory: "/sp"})
				ids <- r.ID
				errs <- err
			}()
		}
		seen := map[checkpoint.ID]bool{}
		for range people {
			if err := <-errs; err != nil {
				t.Fatal(err)
			}
			n := <-ids
			if n == 0 || seen[n] {
				t.Fatalf("id %d is used twice", n)
			}
			seen[n] = true
		}
		before := c.expect(id, job.Running).Completed
		time.Sleep(time.Second)
		if s := c.expect(id, job.Running); s.Completed < before+10 {
			t.Errorf("%d checkpoints completed in a second after the savepoints, want the clock to go on", s.Completed-before)
		}
	})
}

// The abort does not get through to the first executor: the others hear of it all the same, and at once.
func TestFault_B23_AbortThatDoesNotGetThroughToOne_ReachesTheOthers(t *testing.T) {
	for name, abort := range map[string]func(context.Context) error{
		"fails": func(context.Context) error { return &gateway.Error{Code: gateway.Internal, Message: "panic: broken"} },
		"hangs": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			defer c.close()
			silent := script{noAck: func(gateway.TriggerCheckpoint, job.AttemptID) bool { return true }}
			broken := silent
			broken.abort = abort
			executors := []*executor{c.start("a", 1, broken), c.start("b", 1, silent), c.start("c", 1, silent)}
			c.submit(3, func(s *gateway.Submission) {
				s.Options.Checkpoint.Interval, s.Options.Checkpoint.Timeout, s.Options.Checkpoint.TolerableFailures = time.Hour, time.Second, 3
			})
			time.Sleep(time.Second + time.Millisecond)
			synctest.Wait()
			for i, want := range []int{0, 1, 1} {
				if got := executors[i].abortedNow(); len(got) != want {
					t.Errorf("%s: executor %s was told of the aborts of %v, want %d", name, executors[i].id, got, want)
				}
			}
		})
	}
}
