package jobmaster

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// want checks the code and reason of an error, that its message has the words, and that it is one line.
func want(t *testing.T, err error, code gateway.Code, reason string, words ...string) {
	t.Helper()
	if gateway.CodeOf(err) != code || gateway.ReasonOf(err) != reason {
		t.Errorf("error %v has code %d and reason %q, want %d and %q", err, gateway.CodeOf(err), gateway.ReasonOf(err), code, reason)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not name %q", err, w)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q is more than one line", err)
	}
}

func TestSubmit_RefusesWhatCannotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		submit := func(s gateway.Submission) error {
			_, err := c.m.Submit(t.Context(), s)
			return err
		}
		want(t, submit(gateway.Submission{JobName: "flights"}), gateway.Unavailable, gateway.ReasonNoExecutors, "start a taskexecutor")
		c.start("a", 1, script{}, "flights", "wordcount")
		want(t, submit(gateway.Submission{JobName: "nope"}), gateway.NotFound, gateway.ReasonUnknownJobName, `"nope"`, "flights, wordcount")
		want(t, submit(gateway.Submission{}), gateway.InvalidArgument, gateway.ReasonBadParameter, "names no job")
		want(t, submit(gateway.Submission{JobName: "flights", Params: map[string]string{"bad": "x"}}), gateway.InvalidArgument,
			gateway.ReasonBadParameter, "parameter bad", "executor a")
		list, _ := c.m.List(t.Context())
		if len(list) != 0 {
			t.Errorf("refused submissions are listed: %+v", list)
		}
	})
}

func TestRequests_ForWhatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.start("a", 1, script{})
		id := c.submit(1)
		c.expect(id, job.Running)
		ctx := t.Context()

		_, err := c.m.Get(ctx, "x")
		want(t, err, gateway.NotFound, gateway.ReasonJobNotFound, `"x"`, "weir jobs")
		_, err = c.m.Cancel(ctx, "x")
		want(t, err, gateway.NotFound, gateway.ReasonJobNotFound)
		_, err = c.m.Checkpoints(ctx, "x")
		want(t, err, gateway.NotFound, gateway.ReasonJobNotFound)
		err = c.m.Watch(ctx, "x", nil)
		want(t, err, gateway.NotFound, gateway.ReasonJobNotFound)
		_, err = c.m.TriggerCheckpoint(ctx, "x", 0)
		want(t, err, gateway.NotFound, gateway.ReasonJobNotFound)
		_, err = c.m.TriggerCheckpoint(ctx, id, 2)
		want(t, err, gateway.FailedPrecondition, gateway.ReasonStaleEpoch, "leader epoch 2", "current one is 1")
		_, err = c.m.TriggerSavepoint(ctx, gateway.TriggerSavepoint{Job: id})
		want(t, err, gateway.InvalidArgument, gateway.ReasonBadParameter, "--savepoint-dir")
		_, err = c.m.TriggerSavepoint(ctx, gateway.TriggerSavepoint{Job: id, Directory: "relative/dir"})
		want(t, err, gateway.InvalidArgument, gateway.ReasonBadParameter, "relative/dir")
		_, err = c.m.Checkpoint(ctx, id, 77)
		want(t, err, gateway.NotFound, gateway.ReasonCheckpointUnknown, "checkpoint 77")

		known := job.AttemptID{Job: id, Task: job.TaskID{Vertex: "src"}, Attempt: 1}
		old, foreign := known, known
		old.Attempt, foreign.Job = 9, "x"
		update := func(a job.AttemptID, epoch job.LeaderEpoch) error {
			return c.m.UpdateTaskState(ctx, gateway.TaskUpdate{Epoch: epoch, Attempt: a, State: job.TaskRunning})
		}
		want(t, update(known, 2), gateway.FailedPrecondition, gateway.ReasonStaleEpoch)
		want(t, update(old, 1), gateway.NotFound, gateway.ReasonUnknownAttempt, "src[0]#9")
		want(t, update(foreign, 1), gateway.NotFound, gateway.ReasonJobNotFound)
		if err := update(known, 1); err != nil {
			t.Errorf("update of a running attempt: %v", err)
		}
		decline := func(a job.AttemptID, epoch job.LeaderEpoch) error {
			return c.m.DeclineCheckpoint(ctx, gateway.Decline{Epoch: epoch, Attempt: a, ID: 1, Reason: checkpoint.Declined})
		}
		want(t, decline(known, 2), gateway.FailedPrecondition, gateway.ReasonStaleEpoch)
		want(t, decline(old, 1), gateway.NotFound, gateway.ReasonUnknownAttempt)
		_, err = c.m.Heartbeat(ctx, gateway.Heartbeat{Executor: "a", Incarnation: "a-1", Epoch: 2})
		want(t, err, gateway.FailedPrecondition, gateway.ReasonStaleEpoch)
		h, err := c.m.Heartbeat(ctx, gateway.Heartbeat{Executor: "a", Incarnation: "a-1", Epoch: 1, Tasks: []gateway.TaskReport{
			{Attempt: known, State: job.TaskRunning}, {Attempt: old, State: job.TaskRunning}, {Attempt: foreign, State: job.TaskRunning},
		}})
		if err != nil || !slices.Equal(h.Unknown, []job.AttemptID{old, foreign}) {
			t.Errorf("heartbeat: unknown %v, %v, want the old and the foreign attempt", h.Unknown, err)
		}
	})
}

func TestAck_IsAnsweredWithAVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		silent := job.TaskID{Vertex: "agg"}
		a := c.start("a", 1, script{noAck: func(r gateway.TriggerCheckpoint, a job.AttemptID) bool { return r.ID == 2 && a.Task == silent }})
		id := c.submit(1, func(s *gateway.Submission) {
			s.Options.Checkpoint.Interval = -1
			s.Options.Checkpoint.Timeout = 2 * time.Second
			s.Options.Checkpoint.TolerableFailures = 1
		})
		c.expect(id, job.Running)
		if r, err := c.m.TriggerCheckpoint(t.Context(), id, 1); err != nil || r.ID != 1 || r.Path != "file:///chk/job-1/chk-1" {
			t.Fatalf("trigger: %+v, %v", r, err)
		}
		d, err := c.m.Checkpoint(t.Context(), id, 1)
		if err != nil || d.State != gateway.CheckpointCompleted || len(d.Subtasks) != 2 || !d.Subtasks[0].Acknowledged {
			t.Errorf("checkpoint 1 as the caller sees it next: %+v, %v", d, err)
		}
		_, err = c.m.TriggerCheckpoint(t.Context(), id, 0)
		want(t, err, gateway.Aborted, gateway.ReasonCheckpointFailed, "checkpoint 2", "EXPIRED", "agg[0]#1")
		task := func(vertex job.VertexID, attempt int) job.AttemptID {
			return job.AttemptID{Job: id, Task: job.TaskID{Vertex: vertex}, Attempt: attempt}
		}
		verdict := func(what string, ack gateway.Ack, want checkpoint.Verdict) {
			t.Helper()
			if v, err := c.m.AcknowledgeCheckpoint(t.Context(), ack); v != want || err != nil {
				t.Errorf("%s: %s, %v, want %s", what, v, err, want)
			}
		}
		stale := ackOf(task("agg", 1), 2)
		stale.Epoch = 3
		elsewhere := ackOf(task("agg", 1), 2)
		elsewhere.Attempt.Job = "x"
		verdict("after completion", ackOf(task("src", 1), 1), checkpoint.Duplicate)
		verdict("after expiry", ackOf(task("agg", 1), 2), checkpoint.TooLate)
		verdict("never triggered", ackOf(task("agg", 1), 99), checkpoint.Unknown)
		verdict("other attempt", ackOf(task("agg", 5), 2), checkpoint.Unknown)
		verdict("other epoch", stale, checkpoint.StaleEpoch)
		verdict("other job", elsewhere, checkpoint.Unknown)
		if _, err := c.m.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		verdict("expired, job ended", ackOf(task("agg", 1), 2), checkpoint.TooLate)
		verdict("completed, job ended", ackOf(task("agg", 1), 1), checkpoint.Duplicate)
		_, err = c.m.TriggerCheckpoint(t.Context(), id, 0)
		want(t, err, gateway.FailedPrecondition, gateway.ReasonJobTerminal, "CANCELED")
		synctest.Wait()
		if len(a.attempts()) != 0 {
			t.Errorf("tasks %v run after the end", a.attempts())
		}
	})
}

func TestTrigger_ThatDoesNotReachTheSource_FailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.start("a", 1, script{trigger: func(ctx context.Context) error { return fmt.Errorf("no route") }})
		id := c.submit(1, func(s *gateway.Submission) { s.Options.Checkpoint.Interval = -1 })
		c.expect(id, job.Running)
		start := time.Now()
		_, err := c.m.TriggerCheckpoint(t.Context(), id, 0)
		want(t, err, gateway.Aborted, gateway.ReasonCheckpointFailed, "TRIGGER_FAILURE", "no route")
		if took := time.Since(start); took > time.Second {
			t.Errorf("it took %s to say so", took)
		}
		c.expect(id, job.Running)
	})
}

func TestSavepoint_IsSelfContainedAndAJobCanStartFromIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		a := c.start("a", 2, script{})
		id := c.submit(1, func(s *gateway.Submission) { s.Options.Checkpoint.Interval = -1 })
		c.expect(id, job.Running)
		r, err := c.m.TriggerSavepoint(t.Context(), gateway.TriggerSavepoint{Job: id, Directory: "/save"})
		if err != nil || path.Dir(r.Path) != "/save" || !checkpoint.IsSavepointDir(path.Base(r.Path)) {
			t.Fatalf("savepoint: %+v, %v", r, err)
		}
		var names []string
		for _, n := range c.elsewhere.content() {
			names = append(names, path.Base(n))
		}
		if len(names) != 4 || !slices.Contains(names, checkpoint.MetadataFile) {
			t.Errorf("the savepoint holds %v, want two state files, the metadata and the directory", names)
		}
		if got := c.storage.content(); len(got) != 0 {
			t.Errorf("the checkpoint directory holds %v after the savepoint", got)
		}
		if _, err := c.m.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		second := c.submit(2, func(s *gateway.Submission) { s.RestorePath = r.Path })
		c.expect(second, job.Running)
		d, _ := a.lastDeployment()
		items := 0
		for _, task := range d.Tasks {
			if task.Restore == nil || task.Restore.Dir != r.Path || task.Splits != nil {
				t.Fatalf("%s restores %+v, want %s", task.Attempt, task.Restore, r.Path)
			}
			for _, op := range task.Restore.State.Operators {
				for _, it := range op.Items {
					items += it.Len()
				}
			}
		}
		if items != 2 {
			t.Errorf("the tasks got %d items, want the two of the savepoint", items)
		}
		_, _ = c.m.Cancel(t.Context(), second)
		if len(c.elsewhere.content()) != 4 {
			t.Errorf("the savepoint is not whole any more: %v", c.elsewhere.content())
		}
	})
}

func TestRestorePath_ThatCannotBeUsed_IsRefusedAtSubmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.tampered = true
		defer c.close()
		c.start("a", 4, script{})
		id := c.submit(1, func(s *gateway.Submission) { s.Options.Checkpoint.Interval = -1 })
		c.expect(id, job.Running)
		r, err := c.m.TriggerCheckpoint(t.Context(), id, 0)
		if err != nil {
			t.Fatal(err)
		}
		good := c.storage.files["job-1/chk-1/_metadata"]
		md, err := checkpoint.DecodeMetadata(good)
		if err != nil {
			t.Fatal(err)
		}
		md.Vertices[1].Operators[0].ID, md.Vertices[1].Subtasks[0].Operators[0].Operator = "gone", "gone"
		foreign, err := checkpoint.EncodeMetadata(md)
		if err != nil {
			t.Fatal(err)
		}
		flipped := slices.Clone(good)
		flipped[len(flipped)-1] ^= 1
		c.elsewhere.files["/s/flipped/_metadata"] = flipped
		c.elsewhere.files["/s/short/_metadata"] = good[:20]
		c.elsewhere.files["/s/foreign/_metadata"] = foreign
		for _, name := range md.Files() {
			c.elsewhere.files["/s/foreign/"+name] = nil
		}
		c.elsewhere.files["/s/empty/other"] = nil
		for path, words := range map[string]string{
			"/s/flipped": "checksum mismatch", "/s/short/": "truncated", "/s/foreign": "operator gone", "/s/empty": "no completed checkpoint",
			"/s/none": "no such directory", "job-1/chk-9": "no completed checkpoint", "file:///chk/job-1/chk-9/": "no completed checkpoint",
		} {
			_, err := c.m.Submit(t.Context(), gateway.Submission{JobName: "flights", RestorePath: path})
			want(t, err, gateway.InvalidArgument, gateway.ReasonBadCheckpoint, "cannot start from "+path, words)
		}
		for _, path := range []string{r.Path, r.Path + "/_metadata", "/chk/job-1/chk-1", "job-1/chk-1"} {
			again := c.submit(1, func(s *gateway.Submission) { s.RestorePath = path })
			c.expect(again, job.Running)
			d, _ := c.at("a:1").lastDeployment()
			if got := d.Tasks[0].Restore; got == nil || got.Dir != "job-1/chk-1" {
				t.Errorf("start from %s restores %+v", path, got)
			}
			_, _ = c.m.Cancel(t.Context(), again)
		}
		if c.storage.files["job-1/chk-1/_metadata"] == nil {
			t.Error("the checkpoint of the first job was deleted by those that started from it")
		}
	})
}

func TestJobs_ShareTheSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		a, b := c.start("a", 2, script{}), c.start("b", 2, script{})
		first, second := c.submit(2), c.submit(2)
		time.Sleep(2500 * time.Millisecond)
		for _, id := range []job.ID{first, second} {
			if s := c.expect(id, job.Running); runningTasks(s) != 4 || s.Completed < 2 {
				t.Errorf("job %s: %d running tasks, %d checkpoints", id, runningTasks(s), s.Completed)
			}
		}
		if len(a.attempts()) != 4 || len(b.attempts()) != 4 {
			t.Errorf("a runs %v and b runs %v, want four each", a.attempts(), b.attempts())
		}
		if _, err := c.m.Cancel(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		if s := c.expect(second, job.Running); s.Restarts != 0 || runningTasks(s) != 4 {
			t.Errorf("the end of one job disturbed the other: %+v", s)
		}
	})
}

func TestWatch_SlowWatcher_HoldsUpNothingAndLosesNoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.start("a", 1, script{})
		id := c.submit(1)
		var events []string
		done := make(chan error, 1)
		go func() {
			done <- c.m.Watch(t.Context(), id, func(_ gateway.JobStatus, more []gateway.JobEvent) error {
				for _, e := range more {
					events = append(events, e.Text)
				}
				time.Sleep(3 * time.Second)
				return nil
			})
		}()
		time.Sleep(10500 * time.Millisecond)
		if s := c.expect(id, job.Running); s.Completed < 10 {
			t.Errorf("%d checkpoints in 10 s, want 10 or more", s.Completed)
		}
		if _, err := c.m.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		next := 1
		for _, e := range events {
			if strings.HasPrefix(e, fmt.Sprintf("checkpoint %d completed ", next)) {
				next++
			}
		}
		if next <= 10 || !strings.Contains(events[len(events)-1], "CANCELED") {
			t.Errorf("events are %v", events)
		}
	})
}

func TestHistory_ForgetsTheOldestJobsThatHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.start("a", 1, script{})
		running := c.submit(1)
		for range maxHistory + 5 {
			id := c.submit(1)
			if _, err := c.m.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		c.submit(1)
		list, _ := c.m.List(t.Context())
		if len(list) != maxHistory+2 || list[0].ID != running || list[1].ID != "job-7" {
			t.Errorf("%d jobs are remembered, the first ones %s and %s", len(list), list[0].ID, list[1].ID)
		}
	})
}
