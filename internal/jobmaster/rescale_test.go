package jobmaster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// asked is a rescale that is under way.
type asked struct {
	result gateway.RescaleResult
	err    error
	done   atomic.Bool
}

func (c *cluster) rescale(r gateway.RescaleJob) *asked {
	out := &asked{}
	go func() {
		out.result, out.err = c.m.Rescale(c.t.Context(), r)
		out.done.Store(true)
	}()
	return out
}

// parallelism is that of the vertices of the job.
func parallelism(s gateway.JobStatus) (out []int) {
	for _, v := range s.Vertices {
		out = append(out, v.Parallelism)
	}
	return out
}

func (c *cluster) running(id job.ID, want ...int) gateway.JobStatus {
	c.t.Helper()
	s := c.expect(id, job.Running)
	if got := fmt.Sprint(parallelism(s)); got != fmt.Sprint(want) {
		c.t.Fatalf("the vertices have parallelism %s, want %v: %s", got, want, s.Detail)
	}
	tasks := 0
	for _, n := range want {
		tasks += n
	}
	if got := runningTasks(s); got != tasks {
		c.t.Fatalf("%d tasks run, want %d: %s", got, tasks, s.Detail)
	}
	return s
}

func TestRescale_UpAndDown_FromAFreshCheckpointWithTheSplitsOfTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newKept(t)
		defer c.close()
		a := c.start("a", 2, script{})
		c.start("b", 2, script{})
		id := c.submit(2, func(s *gateway.Submission) { s.Options.Checkpoint.Interval = -1 })
		c.running(id, 2, 2)
		dry, err := c.m.Rescale(t.Context(), gateway.RescaleJob{Job: id, Parallelism: 4, DryRun: true})
		if err != nil || dry.Report != nil || dry.Estimate.SlotsNeeded != 4 || dry.Estimate.SlotsHeld != 2 || dry.Estimate.SlotsFree != 2 {
			t.Fatalf("dry run: %+v, %v", dry, err)
		}
		up := c.rescale(gateway.RescaleJob{Job: id, Parallelism: 4})
		got := c.running(id, 4, 4)
		if up.err != nil || up.result.Report == nil || up.result.Report.Checkpoint != 1 || up.result.Estimate.Checkpoint != 0 {
			t.Fatalf("up: %+v, %v", up.result, up.err)
		}
		if got.Restarts != 0 || got.LastRestore == nil || got.LastRestore.ID != 1 {
			t.Errorf("%d restarts, restored from %+v", got.Restarts, got.LastRestore)
		}
		d, _ := a.lastDeployment()
		if len(d.Graph.Vertices[0].Splits) != 3 || d.Options.Parallelism != 4 || d.Tasks[0].Attempt.Attempt != 2 || d.Tasks[0].Restore == nil {
			t.Errorf("deployed %d splits, options %+v, task %+v", len(d.Graph.Vertices[0].Splits), d.Options.Parallelism, d.Tasks[0])
		}
		if r := s.all()[0]; r.Plan == nil || r.Plan.Parallelism != 4 || r.Progress.Attempt != 2 {
			t.Errorf("record %+v", r)
		}
		// One vertex only, and down: its state stays where most of it is.
		down := c.rescale(gateway.RescaleJob{Job: id, Vertices: map[job.VertexID]int{"agg": 1}})
		c.running(id, 4, 1)
		if r := down.result.Report; down.err != nil || r == nil || r.Checkpoint != 2 || r.Moved+r.Stayed != 8*5 || down.result.Estimate.StateBytes != 4*5 {
			t.Fatalf("down: %+v, %v", down.result, down.err)
		}
		time.Sleep(time.Second)
		if _, err := c.m.TriggerCheckpoint(t.Context(), id, 0); err != nil {
			t.Errorf("a checkpoint after it: %v", err)
		}
		all := c.rescale(gateway.RescaleJob{Job: id, Parallelism: 1})
		if c.running(id, 1, 1); all.err != nil {
			t.Fatal(all.err)
		}
		if free := c.m.registry.Free("flights"); free != 3 {
			t.Errorf("%d slots are free, want 3: those that are too many go back", free)
		}
	})
}

func TestRescale_IsRefused_WhileTheJobCannot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		hold := make(chan struct{})
		c.start("a", 2, script{noAck: func(r gateway.TriggerCheckpoint, _ job.AttemptID) bool { <-hold; return false }})
		id := c.submit(1, func(s *gateway.Submission) { s.Options.Checkpoint.Interval = -1 })
		c.running(id, 1, 1)
		refused := func(r gateway.RescaleJob, code gateway.Code, reason, text string) {
			t.Helper()
			_, err := c.m.Rescale(t.Context(), r)
			want(t, err, code, reason, text)
		}
		refused(gateway.RescaleJob{Job: "x", Parallelism: 2}, gateway.NotFound, gateway.ReasonJobNotFound, "")
		refused(gateway.RescaleJob{Job: id, Epoch: 7, Parallelism: 2}, gateway.FailedPrecondition, gateway.ReasonStaleEpoch, "")
		refused(gateway.RescaleJob{Job: id, Parallelism: 9}, gateway.InvalidArgument, gateway.ReasonBadParameter, "choose 1 to 8")
		refused(gateway.RescaleJob{Job: id, Parallelism: 3}, gateway.ResourceExhausted, gateway.ReasonTooFewSlots, "would need 3 slots; it has 1, and 1 are free")
		first := c.rescale(gateway.RescaleJob{Job: id, Parallelism: 2})
		time.Sleep(time.Millisecond) // the checkpoint is under way, and the executor holds it
		refused(gateway.RescaleJob{Job: id, Parallelism: 2}, gateway.FailedPrecondition, gateway.ReasonRescaling, "is being rescaled")
		_, err := c.m.Stop(t.Context(), gateway.StopJob{Job: id, Directory: "/save", Mode: job.StopSuspend})
		want(t, err, gateway.FailedPrecondition, gateway.ReasonCheckpointFailed, "is being rescaled")
		close(hold)
		if c.running(id, 2, 2); first.err != nil {
			t.Fatal(first.err)
		}
		if _, err := c.m.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		refused(gateway.RescaleJob{Job: id, Parallelism: 1}, gateway.FailedPrecondition, gateway.ReasonJobTerminal, "CANCELED")
	})
}

func TestRescale_CanceledMeanwhile_IsAnsweredWithTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.start("a", 1, script{})
		id := c.submit(1)
		c.running(id, 1, 1)
		waits := c.rescale(gateway.RescaleJob{Job: id, Parallelism: 2, Wait: time.Hour})
		time.Sleep(time.Minute)
		if got := c.running(id, 1, 1); waits.done.Load() {
			t.Fatalf("it waits for slots while the job runs on: %+v, %v, %s", waits.result, waits.err, got.Detail)
		}
		if _, err := c.m.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want(t, waits.err, gateway.FailedPrecondition, gateway.ReasonJobTerminal, "it is CANCELED")
	})
}

func TestRescale_WaitsForSlots_AndGoesOnWhenTheyAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.start("a", 1, script{})
		id := c.submit(1)
		c.running(id, 1, 1)
		waits := c.rescale(gateway.RescaleJob{Job: id, Parallelism: 2, Wait: time.Hour})
		time.Sleep(10 * time.Second)
		c.start("b", 1, script{})
		time.Sleep(time.Second)
		if c.running(id, 2, 2); waits.err != nil {
			t.Fatal(waits.err)
		}
	})
}

func TestRescale_WithoutItsCheckpoint_LeavesTheJobAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newKept(t)
		defer c.close()
		broken := true
		c.storage.before = func(op, name string) error {
			if broken && op == "mkdir" && strings.Contains(name, "chk-") {
				return errors.New("the disk is full")
			}
			return nil
		}
		a := c.start("a", 2, script{})
		id := c.submit(1, func(s *gateway.Submission) {
			s.Options.Checkpoint.Interval, s.Options.Checkpoint.TolerableFailures = -1, 3
		})
		c.running(id, 1, 1)
		_, err := c.m.Rescale(t.Context(), gateway.RescaleJob{Job: id, Parallelism: 2})
		want(t, err, gateway.Aborted, gateway.ReasonCheckpointFailed, "was not rescaled", "the disk is full")
		if got := c.running(id, 1, 1); got.Restarts != 0 || s.all()[0].Plan != nil {
			t.Errorf("%d restarts, record %+v", got.Restarts, s.all()[0].Plan)
		}
		if _, deployed := a.lastDeployment(); deployed != 1 {
			t.Errorf("%d deployments", deployed)
		}
		broken = false
		again := c.rescale(gateway.RescaleJob{Job: id, Parallelism: 2})
		if c.running(id, 2, 2); again.err != nil {
			t.Fatal(again.err)
		}
	})
}

func TestRescale_ToTasksThatCannotRun_GoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newKept(t)
		defer c.close()
		deployments := 0
		c.start("a", 2, script{deploy: func(context.Context) error {
			if deployments++; deployments == 2 {
				return &gateway.Error{Code: gateway.FailedPrecondition, Reason: gateway.ReasonFingerprint, Message: "another build"}
			}
			return nil
		}})
		id := c.submit(1, func(s *gateway.Submission) { s.Options.Checkpoint.Interval = -1 })
		c.running(id, 1, 1)
		failed := c.rescale(gateway.RescaleJob{Job: id, Parallelism: 2})
		time.Sleep(2 * time.Second)
		got := c.running(id, 1, 1)
		want(t, failed.err, gateway.Aborted, gateway.ReasonRescaleFailed, "runs again by its old plan", "another build")
		if r := s.all()[0]; r.Plan == nil || r.Plan.Parallelism != 1 || got.LastRestore == nil || got.LastRestore.ID != 1 || got.Restarts != 0 {
			t.Errorf("record %+v, restored %+v, %d restarts", r.Plan, got.LastRestore, got.Restarts)
		}
	})
}

func TestRescale_WhoseSlotsAreLost_GoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.start("a", 1, script{})
		b := c.start("b", 1, script{})
		c.at("a:1").script.noAck = func(gateway.TriggerCheckpoint, job.AttemptID) bool {
			go b.disconnect() // the slot that was free is gone, when the checkpoint is taken
			return false
		}
		id := c.submit(1, func(s *gateway.Submission) { s.Options.Checkpoint.Interval = -1 })
		c.running(id, 1, 1)
		failed := c.rescale(gateway.RescaleJob{Job: id, Parallelism: 2})
		time.Sleep(29 * time.Second)
		if s := c.expect(id, job.Restarting); failed.done.Load() || !strings.Contains(s.Detail, "needs 2 slots") {
			t.Fatalf("%s: %v", s.Detail, failed.err)
		}
		time.Sleep(2 * time.Second)
		c.running(id, 1, 1)
		want(t, failed.err, gateway.Aborted, gateway.ReasonRescaleFailed, "the slots have not come within 30s")
	})
}

// Whenever the job master dies, the next one goes on by the old plan or by the new one, with attempts and checkpoints that nobody had.
func TestRescale_KilledAtAnyWrite_TheNextJobMasterGoesOnByOneOfBothPlans(t *testing.T) {
	olds, news := 0, 0
	for n := int64(1); n <= 16; n++ {
		synctest.Test(t, func(t *testing.T) {
			c, s := newKept(t)
			var armed atomic.Bool
			var calls atomic.Int64
			die := func() error { // with the n-th call from when it is armed: it has no effect, nor has any that comes after it
				if armed.Load() && calls.Add(1) == n {
					c.storage.dead.Store(true)
					s.dead.Store(true)
					return errDead
				}
				return nil
			}
			s.before = func(string) error { return die() }
			c.storage.before = func(string, string) error { return die() }
			c.start("a", 2, script{})
			c.start("b", 2, script{})
			id := c.submit(2, func(s *gateway.Submission) { s.Options.Checkpoint.Interval = -1 })
			c.running(id, 2, 2)
			armed.Store(true)
			r := c.rescale(gateway.RescaleJob{Job: id, Parallelism: 3})
			time.Sleep(time.Second)
			armed.Store(false)
			c.kill(s)
			synctest.Wait()
			if !r.done.Load() {
				t.Fatal("the request was not answered when the job master died")
			}
			next := c.next(s, func(cfg *Config) { cfg.Epoch = 1 })
			defer next.close()
			next.tampered = true // the first job master has left files that a sweep will find
			a := next.start("a", 2, script{})
			next.start("b", 2, script{})
			time.Sleep(10 * time.Second)
			p := parallelism(next.expect(id, job.Running))
			switch fmt.Sprint(p) {
			case "[2 2]":
				olds++
			case "[3 3]":
				news++
			default:
				t.Fatalf("write %d: the vertices have parallelism %v", n, p)
			}
			next.running(id, p...)
			if d, _ := a.lastDeployment(); d.Tasks[0].Attempt.Attempt < 2 || d.Options.Parallelism != p[0] {
				t.Errorf("write %d: deployed attempt %d with parallelism %d", n, d.Tasks[0].Attempt.Attempt, d.Options.Parallelism)
			}
			again := next.rescale(gateway.RescaleJob{Job: id, Parallelism: 4})
			time.Sleep(time.Second)
			if next.running(id, 4, 4); again.err != nil {
				t.Errorf("write %d: a rescale by the next job master: %v", n, again.err)
			}
		})
	}
	if olds == 0 || news == 0 {
		t.Errorf("%d went on by the old plan, %d by the new one: the test does not test both", olds, news)
	}
}
