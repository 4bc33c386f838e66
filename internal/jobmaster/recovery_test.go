package jobmaster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/scheduler"
	"github.com/weirstream/weir/internal/slotpool"
)

func slowMetadata(c *cluster, d time.Duration) {
	c.storage.before = func(op, name string) error {
		if op == "create" && strings.HasSuffix(name, checkpoint.MetadataFile) {
			time.Sleep(d)
		}
		return nil
	}
}

func TestOnlyExecutorLost_WhileADeploymentWaits_TheNextOneIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		slowMetadata(c, 4*time.Second)
		a := c.start("a", 1, script{})
		id := c.submit(1)
		c.expect(id, job.Running)
		a.disconnect()
		r := a.reg
		r.Incarnation, r.Address = "a-2", "a:2"
		second := c.startAs(r, script{})
		time.Sleep(time.Second) // the deployment to the second incarnation waits for the metadata
		if s := c.expect(id, job.Running); !strings.Contains(s.Detail, "checkpoint that is being written") {
			t.Errorf("detail %q", s.Detail)
		}
		second.disconnect()
		time.Sleep(5 * time.Second) // the metadata is there, and nothing is left to deploy
		c.expect(id, job.Restarting)
		r.Incarnation, r.Address = "a-3", "a:3"
		third := c.startAs(r, script{})
		time.Sleep(2 * time.Second)
		if s := c.expect(id, job.Running); runningTasks(s) != 2 {
			t.Errorf("%d tasks run: %s", runningTasks(s), s.Detail)
		}
		d, n := third.lastDeployment()
		if n != 1 || d.Tasks[0].Attempt.Attempt != 3 || d.Tasks[0].Restore == nil || d.Tasks[0].Restore.Checkpoint != 1 {
			t.Errorf("%d deployments on the third incarnation, the last %+v", n, d.Tasks)
		}
		if _, n := second.lastDeployment(); n != 0 {
			t.Error("the second incarnation was deployed to")
		}
	})
}

func TestCancel_WhileADeploymentWaits_AsksNoExecutor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		slowMetadata(c, 4*time.Second)
		a := c.start("a", 1, script{})
		id := c.submit(1)
		c.expect(id, job.Running)
		a.disconnect()
		b := c.start("b", 1, script{stuck: true})
		time.Sleep(time.Second)
		start := time.Now()
		if s, err := c.m.Cancel(t.Context(), id); s != job.Canceled || err != nil || time.Since(start) > 50*time.Millisecond {
			t.Errorf("cancel: %s, %v after %s", s, err, time.Since(start))
		}
		time.Sleep(10 * time.Second)
		if _, n := b.lastDeployment(); n != 0 {
			t.Error("a canceled deployment was sent")
		}
	})
}

func TestExecutorLost_IsToldToJobsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.start("a", 1, script{})
		b := c.start("b", 1, script{})
		id := c.submit(3)
		if s := c.expect(id, job.Created); !strings.Contains(s.Detail, "2 of 2 slots free") {
			t.Errorf("detail %q", s.Detail)
		}
		b.disconnect()
		if s := c.expect(id, job.Created); !strings.Contains(s.Detail, "1 of 1 slots free") {
			t.Errorf("detail after the loss %q", s.Detail)
		}
	})
}

func TestHeartbeat_MakesUpForLostUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.start("a", 1, script{mute: true})
		id := c.submit(1, func(s *gateway.Submission) { s.Options.Restart.InitialDelay = 3 * time.Second })
		src := c.expect(id, job.Running).Vertices[0].Tasks[0].Attempt
		beat := func(s job.TaskState) []job.AttemptID {
			t.Helper()
			answer, err := c.m.Heartbeat(t.Context(), gateway.Heartbeat{
				Executor: "a", Incarnation: "a-1", Epoch: 1, Tasks: []gateway.TaskReport{{Attempt: src, State: s}},
			})
			if err != nil {
				t.Fatal(err)
			}
			return answer.Unknown
		}
		beat(job.TaskFailed)
		c.expect(id, job.Running) // the update that says why may be under way
		beat(job.TaskFailed)
		c.expect(id, job.Restarting)
		if got := beat(job.TaskRunning); len(got) != 1 {
			t.Errorf("an attempt that has failed and is said to run is not canceled: unknown %v", got)
		}
	})
}

func TestAnswer_PublishesBeforeItReplies(t *testing.T) {
	cfg := Config{Epoch: 1}.withDefaults()
	l := newJobLoop(&cfg, slotpool.New(), spec{id: "j", name: "flights", graph: graphOf("flights", 1), options: job.Options{}.Normalize()})
	l.feed(scheduler.CancelRequested{})
	l.settle(t.Context())
	var seen job.State
	l.reply(func() { seen = l.board.Read().Status.State })
	l.answer()
	if seen != job.Canceled {
		t.Errorf("a caller that was answered sees the job %s, want CANCELED", seen)
	}
}

// chaos checks on every deployment that nothing is lost that was promised: a task that was told of checkpoint n has committed, so that no
// later execution may start from less.
type chaos struct {
	mu       sync.Mutex
	random   *rand.Rand
	told     checkpoint.ID
	calm     bool
	problems []string
}

func (k *chaos) draw(n int) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.calm {
		return n - 1
	}
	return k.random.Intn(n)
}

// pause waits for up to limit in most cases not at all.
func (k *chaos) pause(limit time.Duration) {
	if k.draw(3) == 0 {
		time.Sleep(time.Duration(k.draw(int(limit))))
	}
}

type chaoticExecutor struct {
	*executor
	k *chaos
}

func (x chaoticExecutor) DeployTasks(ctx context.Context, r gateway.DeployTasks) error {
	x.k.mu.Lock()
	for _, t := range r.Tasks {
		if from := t.Restore; x.k.told > 0 && (from == nil || from.Checkpoint < x.k.told) {
			x.k.problems = append(x.k.problems, fmt.Sprintf("%s starts from %+v after checkpoint %d was notified", t.Attempt, from, x.k.told))
		}
	}
	x.k.mu.Unlock()
	x.k.pause(time.Second)
	if x.k.draw(10) == 0 {
		return errors.New("lost")
	}
	return x.executor.DeployTasks(ctx, r)
}

func (x chaoticExecutor) TriggerCheckpoint(ctx context.Context, r gateway.TriggerCheckpoint) ([]job.AttemptID, error) {
	x.k.pause(300 * time.Millisecond)
	return x.executor.TriggerCheckpoint(ctx, r)
}

func (x chaoticExecutor) NotifyCheckpointComplete(ctx context.Context, r gateway.NotifyCheckpointComplete) ([]job.AttemptID, error) {
	x.k.pause(300 * time.Millisecond)
	x.k.mu.Lock()
	x.k.told = max(x.k.told, r.ID)
	x.k.mu.Unlock()
	if x.k.draw(5) == 0 {
		return nil, errors.New("answer lost")
	}
	return x.executor.NotifyCheckpointComplete(ctx, r)
}

func TestChaos_NothingNotifiedIsEverLostAndTheJobFinishes(t *testing.T) {
	for seed := range int64(8) {
		synctest.Test(t, func(t *testing.T) { runChaos(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func runChaos(t *testing.T, seed int64) {
	k := &chaos{random: rand.New(rand.NewSource(seed))}
	c := newCluster(t, func(cfg *Config) {
		cfg.Log = zap.NewNop()
		dial := cfg.Dial
		cfg.Dial = func(address string) (gateway.TaskExecutor, io.Closer, error) {
			x, closer, err := dial(address)
			return chaoticExecutor{x.(*executor), k}, closer, err
		}
	})
	defer c.close()
	c.storage.before = func(op, name string) error {
		k.pause(700 * time.Millisecond)
		if op == "create" && strings.HasSuffix(name, checkpoint.MetadataFile) && k.draw(8) == 0 {
			return errors.New("disk trouble")
		}
		return nil
	}
	lives := 0
	begin := func(n int) *executor {
		lives++
		id := fmt.Sprintf("e%d", n)
		return c.startAs(gateway.Registration{
			Executor: job.ExecutorID(id), Incarnation: fmt.Sprint(lives), Address: fmt.Sprintf("%s:%d", id, lives), Slots: 1, Jobs: []string{"flights"},
		}, script{})
	}
	executors := []*executor{begin(0), begin(1), begin(2)}
	id := c.submit(2, func(s *gateway.Submission) {
		s.Options.Checkpoint.Interval = 200 * time.Millisecond
		s.Options.Checkpoint.TolerableFailures = 3
	})
	for range 40 {
		time.Sleep(time.Duration(k.draw(int(1500 * time.Millisecond))))
		n := k.draw(len(executors))
		if k.draw(2) == 0 {
			executors[n].disconnect()
		} // else the new incarnation takes over
		executors[n] = begin(n)
	}
	k.mu.Lock()
	k.calm = true
	k.mu.Unlock()
	before := c.status(id).Completed
	time.Sleep(2 * time.Minute) // restart delays have grown to at most one minute
	if s := c.expect(id, job.Running); runningTasks(s) != 4 || s.Completed <= before {
		t.Errorf("after the faults %d tasks run and %d checkpoints are new: %s", runningTasks(s), s.Completed-before, s.Detail)
	}
	for _, x := range executors {
		x.endOfData()
	}
	if err := c.m.Watch(t.Context(), id, func(gateway.JobStatus, []gateway.JobEvent) error { return nil }); err != nil {
		t.Error(err)
	}
	c.expect(id, job.Finished)
	for _, name := range c.storage.content() {
		if strings.HasSuffix(name, checkpoint.MetadataFile) {
			t.Errorf("%s is left after the end", name)
		}
	}
	for _, p := range k.problems {
		t.Error(p)
	}
}
