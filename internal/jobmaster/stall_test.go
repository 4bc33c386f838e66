package jobmaster

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// The metadata of one checkpoint takes 30 s to be written. Meanwhile another one is acknowledged and aborted, a savepoint completes, and the job is stopped,
// each within 50 ms.
func TestStalledMetadataWrite_AcksAbortsAndStopsAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.storage.before = func(op, name string) error {
			if op == "create" && strings.HasSuffix(name, "chk-1/"+checkpoint.MetadataFile) {
				time.Sleep(30 * time.Second)
			}
			return nil
		}
		agg := job.AttemptID{Task: job.TaskID{Vertex: "agg"}, Attempt: 1}
		c.start("a", 1, script{noAck: func(r gateway.TriggerCheckpoint, a job.AttemptID) bool { return r.ID == 2 && a.Task == agg.Task }})
		id := c.submit(1, func(s *gateway.Submission) {
			s.Options.Checkpoint.Interval, s.Options.Checkpoint.MaxConcurrent, s.Options.Checkpoint.TolerableFailures = -1, 2, 9
		})
		agg.Job = id
		c.expect(id, job.Running)
		start := time.Now()
		within := func(what string, f func()) {
			t.Helper()
			from := time.Now()
			f()
			if took := time.Since(from); took > 50*time.Millisecond {
				t.Errorf("%s took %s", what, took)
			}
		}
		first, second := make(chan error, 1), make(chan error, 1)
		trigger := func(answer chan<- error) {
			_, err := c.m.TriggerCheckpoint(t.Context(), id, 0)
			answer <- err
		}
		go trigger(first)
		synctest.Wait()
		go trigger(second)
		synctest.Wait()
		within("an abort", func() {
			d := gateway.Decline{Epoch: 1, Attempt: agg, ID: 2, Reason: checkpoint.Declined, Message: "cannot"}
			if err := c.m.DeclineCheckpoint(t.Context(), d); err != nil {
				t.Error(err)
			}
			want(t, <-second, gateway.Aborted, gateway.ReasonCheckpointFailed, "DECLINED")
		})
		within("a late ack", func() {
			if v, err := c.m.AcknowledgeCheckpoint(t.Context(), ackOf(agg, 2)); v != checkpoint.TooLate || err != nil {
				t.Errorf("verdict %s, %v, want TOO_LATE", v, err)
			}
		})
		within("a savepoint", func() {
			if _, err := c.m.TriggerSavepoint(t.Context(), gateway.TriggerSavepoint{Job: id, Directory: "/save"}); err != nil {
				t.Error(err)
			}
		})
		within("status", func() {
			if s := c.status(id); s.State != job.Running || s.Completed != 1 {
				t.Errorf("job is %s with %d completed", s.State, s.Completed)
			}
		})
		within("a stop", func() {
			if r, err := c.m.Stop(t.Context(), gateway.StopJob{Job: id, Directory: "/save", Mode: job.StopSuspend}); err != nil || r.State != job.Finished {
				t.Errorf("stop: %s, %v", r.State, err)
			}
		})
		want(t, <-first, gateway.FailedPrecondition, gateway.ReasonCheckpointFailed, "SHUTDOWN") // it is deleted with the others of the job
		if took := time.Since(start); took < 29*time.Second {
			t.Errorf("the stalled checkpoint ended after %s", took)
		}
	})
}
