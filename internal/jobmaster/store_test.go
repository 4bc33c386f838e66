package jobmaster

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/ha"
	"github.com/weirstream/weir/internal/job"
)

// shelf is a job store in memory. before runs ahead of each write, without the lock.
type shelf struct {
	before  func(op string) error
	dead    atomic.Bool // nothing has an effect any more
	mu      sync.Mutex
	records map[job.ID]*ha.Record
}

func (s *shelf) do(op string, id job.ID, f func(r *ha.Record)) error {
	if s.dead.Load() {
		return errDead
	}
	if s.before != nil {
		if err := s.before(op); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.records[id] == nil {
		s.records[id] = &ha.Record{}
	}
	f(s.records[id])
	return nil
}

func (s *shelf) CreateJob(_ context.Context, j ha.Job) error {
	return s.do("job", j.ID, func(r *ha.Record) { r.Job = j })
}

func (s *shelf) SetProgress(_ context.Context, id job.ID, p ha.Progress) error {
	return s.do("progress", id, func(r *ha.Record) { r.Progress = p })
}

func (s *shelf) SetPlan(_ context.Context, id job.ID, p ha.Plan) error {
	return s.do("plan", id, func(r *ha.Record) {
		r.Plan = &p
		r.Job.Graph, r.Job.Options.Parallelism, r.Job.Options.OperatorParallelism = p.Graph, p.Parallelism, p.OperatorParallelism
	})
}

func (s *shelf) SetEnd(_ context.Context, id job.ID, e ha.End) error {
	return s.do("end", id, func(r *ha.Record) { r.End = &e })
}

func (s *shelf) RemoveJob(_ context.Context, id job.ID) error {
	return s.do("forget", id, func(*ha.Record) { delete(s.records, id) })
}

// all gives copies in order of submission.
func (s *shelf) all() (out []ha.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b ha.Record) int { return cmp.Compare(a.Job.Order, b.Job.Order) })
	return out
}

func newKept(t *testing.T, change ...func(*Config)) (*cluster, *shelf) {
	s := &shelf{records: map[job.ID]*ha.Record{}}
	return newCluster(t, append(change, func(cfg *Config) { cfg.Store = s })...), s
}

// next starts the job master that comes after c, which is gone, on the same records and files.
func (c *cluster) next(s *shelf, change ...func(*Config)) *cluster {
	storage, elsewhere := c.storage, c.elsewhere
	n := newCluster(c.t, append(change, func(cfg *Config) {
		cfg.Store, cfg.Recovered, cfg.Archive.Root, cfg.Archive.Open = s, s.all(), storage, openIn(elsewhere)
	})...)
	n.storage, n.elsewhere, n.ids, n.tampered = storage, elsewhere, c.ids, c.tampered
	return n
}

// kill ends the job master as kill -9 does: nothing that it tries from now on has an effect.
func (c *cluster) kill(s *shelf) {
	c.storage.dead.Store(true)
	s.dead.Store(true)
	c.close()
	c.storage.dead.Store(false)
	s.dead.Store(false)
}

func TestDeploy_WaitsForTheRecordOfItsAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newKept(t)
		defer c.close()
		s.before = func(op string) error {
			if op == "progress" {
				time.Sleep(4 * time.Second)
			}
			return nil
		}
		a := c.start("a", 1, script{})
		id := c.submit(1)
		time.Sleep(3 * time.Second)
		if got := c.expect(id, job.Running); !strings.Contains(got.Detail, "attempt is recorded") {
			t.Errorf("detail %q", got.Detail)
		}
		if _, deployed := a.lastDeployment(); deployed != 0 {
			t.Error("deployed before the attempt was recorded")
		}
		time.Sleep(2 * time.Second)
		if got := c.expect(id, job.Running); runningTasks(got) != 2 || s.all()[0].Progress.Attempt != 1 {
			t.Errorf("%d tasks run, record %+v", runningTasks(got), s.all()[0].Progress)
		}
	})
}

func TestCheckpointIDs_AreReservedBeforeTheyAreUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newKept(t)
		defer c.close()
		var highest atomic.Int64
		var full atomic.Bool
		c.storage.before = func(op, name string) error {
			if _, id, ok := checkpoint.ParseDir(name); ok && op == "mkdir" {
				highest.Store(int64(id))
				if id > s.all()[0].Progress.Reserved {
					t.Errorf("checkpoint %d is made, reserved are %d", id, s.all()[0].Progress.Reserved)
				}
			}
			return nil
		}
		s.before = func(op string) error {
			if op == "progress" && full.Load() {
				return errors.New("the disk is full")
			}
			return nil
		}
		c.start("a", 1, script{})
		c.submit(1, func(r *gateway.Submission) { r.Options.Checkpoint.Interval = 100 * time.Millisecond })
		time.Sleep(5 * time.Second)
		full.Store(true) // from now on no more can be reserved
		time.Sleep(time.Minute)
		if got := s.all()[0].Progress.Reserved; checkpoint.ID(highest.Load()) != got {
			t.Errorf("stopped at %d, reserved are %d", highest.Load(), got)
		}
		full.Store(false)
		time.Sleep(time.Minute)
		if highest.Load() < 3*ha.IDBlock {
			t.Errorf("only %d checkpoints after the disk had room again", highest.Load())
		}
	})
}

func TestSubmit_ThatCannotBeRecorded_IsRefusedAndNeverRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newKept(t)
		defer c.close()
		c.start("a", 1, script{})
		s.before = func(op string) error {
			if op == "job" {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.records["job-1"] = &ha.Record{} // it is there all the same
				return errors.New("the disk is slow")
			}
			return nil
		}
		_, err := c.m.Submit(t.Context(), gateway.Submission{JobName: "flights"})
		if gateway.CodeOf(err) != gateway.Unavailable || !strings.Contains(err.Error(), "could not be recorded: the disk is slow") {
			t.Errorf("submit: %v", err)
		}
		if all, _ := c.m.List(t.Context()); len(all) > 0 || len(s.all()) > 0 {
			t.Errorf("jobs %v, records %v", all, s.all())
		}
	})
}

func TestForgottenJobs_LeaveNoRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newKept(t)
		defer c.close()
		c.start("a", 1, script{})
		for range maxHistory + 3 {
			if _, err := c.m.Cancel(t.Context(), c.submit(1)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		c.submit(1)
		if n := len(s.all()); n != maxHistory+1 {
			t.Errorf("%d records, want %d", n, maxHistory+1)
		}
	})
}
