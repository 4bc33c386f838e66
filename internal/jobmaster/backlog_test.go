package jobmaster

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// behind says that an attempt works off a backlog, or that it has done so.
func (x *executor) behind(a job.AttemptID, behind bool) error {
	return x.c.m.UpdateTaskState(x.c.t.Context(), gateway.TaskUpdate{Epoch: 1, Attempt: a, State: job.TaskRunning, Backlog: behind})
}

func TestBacklog_OfARunningTask_HoldsUpPeriodicCheckpoints_UntilItsAttemptIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, func(cfg *Config) { cfg.Rules.IntervalDuringBacklog = -1 })
		defer c.close()
		x := c.start("e1", 1, script{})
		id := c.submit(1, func(s *gateway.Submission) { s.Options.Checkpoint.Interval = time.Second })
		synctest.Wait()
		source := x.attempts()[1]
		if err := x.behind(source, true); err != nil || source.Task.Vertex != "src" {
			t.Fatalf("%s: %v", source, err)
		}
		if got := c.status(id).Backlog; !strings.HasPrefix(got, "src[0] works off a backlog; no periodic checkpoints") {
			t.Errorf("backlog %q", got)
		}
		before := c.status(id).Completed
		time.Sleep(time.Minute)
		if s := c.status(id); s.Completed != before {
			t.Errorf("%d checkpoints during the backlog", s.Completed-before)
		}
		x.disconnect()
		c.start("e2", 1, script{})
		time.Sleep(10 * time.Second)
		if s := c.status(id); s.Backlog != "" || s.Completed <= before {
			t.Errorf("after the restart: %d checkpoints, backlog %q", s.Completed-before, s.Backlog)
		}
		if err := x.behind(source, true); gateway.ReasonOf(err) != gateway.ReasonUnknownAttempt {
			t.Errorf("the earlier attempt is heard: %v", err)
		}
	})
}

func TestBacklog_ToldBeforeAllTasksRun_IsKnownFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.start("e1", 1, script{behind: true})
		id := c.submit(1, func(s *gateway.Submission) {
			s.Options.Checkpoint.Interval, s.Options.Checkpoint.IntervalDuringBacklog = time.Second, time.Hour
		})
		synctest.Wait()
		if s := c.status(id); s.State != job.Running || !strings.Contains(s.Backlog, "a checkpoint every 1h0m0s until it is done") {
			t.Errorf("job is %s, backlog %q", s.State, s.Backlog)
		}
	})
}
