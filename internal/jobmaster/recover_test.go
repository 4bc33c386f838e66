package jobmaster

import (
	"errors"
	"fmt"
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

func TestRecover_GoesOnFromTheLatestCheckpoint_WithNewAttemptsAndIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newKept(t)
		c.start("a", 2, script{})
		first, second := c.submit(1), c.submit(1)
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		last := c.status(first).Last
		c.kill(s)

		n := c.next(s)
		defer n.close()
		for i, id := range []job.ID{first, second} {
			all, err := n.m.List(t.Context())
			if err != nil || all[i].ID != id {
				t.Fatalf("job %d after the restart is %v (%v), want %s", i, all[i].ID, err, id)
			}
			if got := n.expect(id, job.Created); got.Last == nil || got.Last.ID != last.ID || got.Last.State != gateway.CheckpointCompleted {
				t.Errorf("last checkpoint of %s is %+v, want %d", id, got.Last, last.ID)
			}
		}
		a := n.start("a", 2, script{})
		synctest.Wait()
		n.expect(first, job.Running)
		n.expect(second, job.Running)
		a.mu.Lock()
		for _, d := range a.deployed {
			for _, task := range d.Tasks {
				if task.Attempt.Attempt != 2 || task.Restore == nil || task.Restore.Checkpoint != last.ID {
					t.Errorf("deployed %s with %+v, want attempt 2 from checkpoint %d", task.Attempt, task.Restore, last.ID)
				}
			}
		}
		a.mu.Unlock()
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if got := n.status(first).Last; got.ID <= ha.IDBlock || got.State != gateway.CheckpointCompleted {
			t.Errorf("checkpoint %d after the restart, want one above all that could have been used", got.ID)
		}
		for _, name := range n.storage.content() {
			if strings.HasPrefix(name, string(first)+fmt.Sprintf("/chk-%d/", last.ID)) {
				t.Errorf("%s of the earlier job master was not subsumed", name)
			}
		}
	})
}

// What a job master finds may not survive a crash of the machine, if the one before died between the write and its sync.
func TestRecover_LatestIsMadeDurable_BeforeAnythingStartsFromIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newKept(t)
		c.start("a", 1, script{})
		id := c.submit(1)
		time.Sleep(500 * time.Millisecond)
		c.kill(s)
		var full atomic.Bool
		full.Store(true)
		c.storage.before = func(op, name string) error {
			if op == "create" && full.Load() {
				return errors.New("the disk is full")
			}
			return nil
		}
		n := c.next(s)
		defer n.close()
		n.start("a", 1, script{})
		time.Sleep(3 * time.Second)
		if got := n.expect(id, job.Created); !strings.Contains(got.Detail, "chk-1/_metadata cannot be made durable: the disk is full") {
			t.Errorf("detail %q", got.Detail)
		}
		full.Store(false)
		time.Sleep(retryMax)
		n.expect(id, job.Running)
	})
}

func TestRecover_UnfinishedCheckpoint_IsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newKept(t)
		c.start("a", 1, script{noAck: func(r gateway.TriggerCheckpoint, a job.AttemptID) bool { return r.ID == 2 && a.Task.Vertex == "src" }})
		id := c.submit(1)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		c.kill(s)
		unfinished := string(id) + "/chk-2/"
		if has := strings.Join(c.storage.content(), " "); !strings.Contains(has, unfinished) {
			t.Fatalf("checkpoint 2 is not there to begin with: %s", has)
		}
		n := c.next(s)
		defer n.close()
		n.expect(id, job.Created)
		if has := strings.Join(n.storage.content(), " "); strings.Contains(has, unfinished) || !strings.Contains(has, string(id)+"/chk-1/_metadata") {
			t.Errorf("files after the recovery: %s", has)
		}
	})
}

func TestRecover_WithoutACheckpoint_StartsFromWhatItWasSubmittedWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newKept(t)
		c.start("a", 1, script{})
		first := c.submit(1)
		time.Sleep(500 * time.Millisecond)
		if _, err := c.m.Cancel(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		path := "file:///chk/" + string(first) + "/chk-1"
		id := c.submit(1, func(r *gateway.Submission) { r.RestorePath, r.Options.Checkpoint.Interval = path, -1 })
		c.expect(id, job.Running)
		c.kill(s)
		n := c.next(s)
		defer n.close()
		a := n.start("a", 1, script{})
		n.expect(id, job.Running)
		if d, _ := a.lastDeployment(); d.Tasks[0].Restore == nil || d.Tasks[0].Restore.Checkpoint != 1 || d.Job != id {
			t.Errorf("deployed %+v, want checkpoint 1", d.Tasks)
		}
		if s := n.expect(first, job.Canceled); s.Completed != 1 {
			t.Errorf("the canceled job shows %d checkpoints, want 1", s.Completed)
		}
	})
}

// A job that owns the checkpoint it was started from deletes it also when another job master has taken over in between.
func TestRecover_ClaimedCheckpoint_IsDeletedInItsTurn(t *testing.T) {
	for _, cancels := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c, s := newKept(t)
			c.start("a", 1, script{})
			first := c.submit(1)
			time.Sleep(500 * time.Millisecond)
			if _, err := c.m.Cancel(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			id := c.submit(1, func(r *gateway.Submission) {
				r.RestorePath, r.Claim = "file:///chk/"+string(first)+"/chk-1", true
				r.Options.Checkpoint.Retained, r.Options.Checkpoint.DeleteOnCancel = 3, true
			})
			time.Sleep(500 * time.Millisecond)
			c.kill(s)
			n := c.next(s)
			defer n.close()
			n.start("a", 1, script{})
			n.expect(id, job.Running)
			if !hasMetadata(n, first, 1) {
				t.Fatal("the claimed checkpoint is gone too early")
			}
			if cancels {
				if _, err := n.m.Cancel(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			} else {
				time.Sleep(4 * time.Second)
			}
			synctest.Wait()
			if hasMetadata(n, first, 1) {
				t.Errorf("canceled=%v: the claimed checkpoint is there: %v", cancels, n.storage.content())
			}
		})
	}
}

// An unreadable latest checkpoint is never passed over: the job says so, and goes on when it can be read again.
func TestFault_B91_UnreadableLatest_IsNamedAndNothingStarts(t *testing.T) {
	for _, what := range []string{"damaged", "gone", "without a state file"} {
		synctest.Test(t, func(t *testing.T) {
			c, s := newKept(t)
			c.start("a", 1, script{})
			id := c.submit(1, func(r *gateway.Submission) { r.Options.Checkpoint.Retained = 3 })
			time.Sleep(500 * time.Millisecond) // checkpoint 1 is recorded as completed
			c.kill(s)
			name := string(id) + "/chk-1/_metadata"
			if what == "without a state file" {
				name = string(id) + "/chk-1/agg-0-a1-c1.state"
			}
			whole, there := c.storage.files[name]
			if c.storage.files[name] = []byte("rubbish"); what != "damaged" {
				delete(c.storage.files, name)
			}
			if !there {
				t.Fatalf("%s is not there to begin with: %v", name, c.storage.content())
			}
			n := c.next(s)
			defer n.close()
			a := n.start("a", 1, script{})
			if got := n.expect(id, job.Created); !strings.Contains(got.Detail, "cannot be recovered: checkpoint 1") {
				t.Errorf("%s: detail %q", what, got.Detail)
			}
			time.Sleep(10 * time.Second)
			if _, deployed := a.lastDeployment(); deployed != 0 {
				t.Errorf("%s: the job was started", what)
			}
			n.storage.mu.Lock()
			n.storage.files[name] = whole
			n.storage.mu.Unlock()
			time.Sleep(retryMax)
			n.expect(id, job.Running)
			if d, _ := a.lastDeployment(); d.Tasks[0].Restore == nil || d.Tasks[0].Restore.Checkpoint != 1 {
				t.Errorf("%s: deployed %+v", what, d.Tasks)
			}
		})
	}
}

// With Fallback the next older one is taken, which the timeline says; the damaged one goes when newer ones take its place.
func TestFault_B91_UnreadableLatest_FallsBackWhenToldTo(t *testing.T) {
	for _, whole := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c, s := newKept(t)
			c.start("a", 1, script{})
			id := c.submit(1, func(r *gateway.Submission) { r.Options.Checkpoint.Retained = 2 })
			time.Sleep(1500 * time.Millisecond) // checkpoints 1 and 2
			c.kill(s)
			c.tampered = true
			c.storage.files[string(id)+"/chk-2/_metadata"] = []byte("rubbish")
			if !whole {
				c.storage.files[string(id)+"/chk-1/_metadata"] = []byte("rubbish")
			}
			n := c.next(s, func(cfg *Config) { cfg.Rules.Fallback = true })
			defer n.close()
			a := n.start("a", 1, script{})
			if !whole {
				if got := n.expect(id, job.Created); !strings.Contains(got.Detail, "checkpoint 2") || !strings.Contains(got.Detail, "there is no older one") {
					t.Errorf("detail %q", got.Detail)
				}
				return
			}
			n.expect(id, job.Running)
			if d, _ := a.lastDeployment(); d.Tasks[0].Restore == nil || d.Tasks[0].Restore.Checkpoint != 1 {
				t.Errorf("deployed %+v, want checkpoint 1", d.Tasks[0].Restore)
			}
			said := ""
			for _, e := range n.m.loop(id).board.Look(0).Events {
				said += e.Text + "\n"
			}
			if !strings.Contains(said, "WARNING: checkpoint 2 in ") || !strings.Contains(said, "from checkpoint 1 instead, as --fallback allows") {
				t.Errorf("the timeline says:\n%s", said)
			}
			time.Sleep(3 * time.Second)
			if hasMetadata(n, id, 2) || hasMetadata(n, id, 1) {
				t.Errorf("two newer ones are there: %v", n.storage.content())
			}
		})
	}
}

// A job that was started without the state of an operator, as was allowed then, recovers so before it has a checkpoint of its own.
func TestFault_B91_StateLeftOutAtTheStart_IsLeftOutAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newKept(t)
		c.tampered = true
		c.start("a", 1, script{})
		first := c.submit(1)
		time.Sleep(500 * time.Millisecond)
		if _, err := c.m.Cancel(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		name := string(first) + "/chk-1/_metadata"
		md, err := checkpoint.DecodeMetadata(c.storage.files[name])
		if err != nil {
			t.Fatal(err)
		}
		md.Vertices[1].Operators[0].ID = "gone"
		md.Vertices[1].Subtasks[0].Operators = []checkpoint.OperatorState{{
			Operator: "gone", Items: &checkpoint.Items{Handle: checkpoint.InlineHandle([]byte("x")), Offsets: []int64{0, 1}},
		}}
		if c.storage.files[name], err = checkpoint.EncodeMetadata(md); err != nil {
			t.Fatal(err)
		}
		id := c.submit(1, func(r *gateway.Submission) {
			r.RestorePath, r.AllowNonRestored, r.Options.Checkpoint.Interval = "file:///chk/"+string(first)+"/chk-1", true, -1
		})
		c.expect(id, job.Running)
		c.kill(s)
		n := c.next(s)
		defer n.close()
		a := n.start("a", 1, script{})
		if got := n.expect(id, job.Running); runningTasks(got) != 2 {
			t.Errorf("%d tasks run: %s", runningTasks(got), got.Detail)
		}
		if d, _ := a.lastDeployment(); d.Tasks[0].Restore == nil || d.Tasks[0].Restore.Checkpoint != 1 {
			t.Errorf("deployed %+v, want checkpoint 1", d.Tasks)
		}
	})
}

// Canceling such a job is the way to start it anew from an older checkpoint, so none is deleted unless that was asked for.
func TestCancel_OfAJobThatCannotBeRecovered_EndsIt(t *testing.T) {
	for _, deletes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c, s := newKept(t)
			c.tampered = true
			c.start("a", 1, script{})
			id := c.submit(1, func(r *gateway.Submission) {
				r.Options.Checkpoint.DeleteOnCancel, r.Options.Checkpoint.Retained = deletes, 2
			})
			time.Sleep(1500 * time.Millisecond)
			c.kill(s)
			c.storage.files[string(id)+"/chk-2/_metadata"] = []byte("rubbish")
			n := c.next(s)
			defer n.close()
			n.expect(id, job.Created)
			if state, err := n.m.Cancel(t.Context(), id); state != job.Canceled || err != nil {
				t.Fatalf("canceled as %s, %v", state, err)
			}
			synctest.Wait()
			left := strings.Join(n.storage.content(), " ")
			if kept := strings.Contains(left, "chk-1/_metadata") && strings.Contains(left, "chk-2/_metadata"); kept == deletes || deletes && left != "" {
				t.Errorf("deletes=%v: left: %s", deletes, left)
			}
			if !s.all()[0].End.Clean {
				t.Errorf("deletes=%v: end %+v", deletes, s.all()[0].End)
			}
		})
	}
}

// The metadata was written, its answer lost, and the job master died before anything newer completed: the checkpoint is whole, and nobody has
// gone on from an older one, so the next job master takes it.
func TestFault_B93_DeathWithAnUncertainCheckpoint_NothingIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newKept(t)
		uncertainMetadata(c, 2)
		c.start("a", 1, script{noAck: func(r gateway.TriggerCheckpoint, _ job.AttemptID) bool { return r.ID > 2 }})
		id := c.submit(1, func(r *gateway.Submission) { r.Options.Checkpoint.TolerableFailures = 3 })
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if s := statusOf(t, c, id, 2); s.State != gateway.CheckpointAborted {
			t.Fatalf("checkpoint 2: %+v, want it aborted", s)
		}
		c.kill(s)
		c.storage.after = nil
		n := c.next(s)
		defer n.close()
		a := n.start("a", 1, script{})
		n.expect(id, job.Running)
		if d, _ := a.lastDeployment(); d.Tasks[0].Restore == nil || d.Tasks[0].Restore.Checkpoint != 2 {
			t.Errorf("deployed %+v, want checkpoint 2", d.Tasks[0].Restore)
		}
	})
}

// A job master that loses its place leaves the jobs as they are.
func TestFault_B104_ShutdownIsNotTheEndOfAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newKept(t)
		c.start("a", 1, script{})
		id := c.submit(1)
		time.Sleep(1500 * time.Millisecond)
		before := c.storage.content()
		c.close()
		if after := c.storage.content(); !slices.Equal(before, after) {
			t.Errorf("files %v became %v", before, after)
		}
		if r := s.all()[0]; r.End != nil || r.Progress.Completed != 1 {
			t.Fatalf("record %+v", r)
		}
		n := c.next(s)
		defer n.close()
		n.start("a", 1, script{})
		n.expect(id, job.Running)
	})
}

// The job master dies at each write around the end of a job, before it or after it. A job that was said to have FINISHED does not run again;
// any other does, to its end. Nothing is left of either.
func TestFault_B105_DeathAroundTheEnd_NeitherRepeatsNorLosesAJob(t *testing.T) {
	for _, applied := range []bool{false, true} {
		for at, more := 0, true; more; at++ {
			synctest.Test(t, func(t *testing.T) { more = dieAt(t, at, applied) })
		}
	}
}

// dieAt reports whether the job master did that many writes.
func dieAt(t *testing.T, at int, applied bool) bool {
	c, s := newKept(t)
	writes, died := 0, errors.New("the process is dead")
	dead := make(chan struct{})
	var mu sync.Mutex
	var armed atomic.Bool
	step := func() error {
		mu.Lock()
		defer mu.Unlock()
		if !armed.Load() {
			return nil
		}
		writes++
		if writes == at+1 {
			close(dead)
		}
		if writes > at+1 || writes == at+1 && !applied {
			return died
		}
		return nil
	}
	c.storage.before = func(op, name string) error {
		if op == "files" || op == "read" || strings.HasSuffix(name, ".state") {
			return nil
		}
		return step()
	}
	s.before = func(string) error { return step() }
	a := c.start("a", 1, script{})
	id := c.submit(1)
	time.Sleep(1500 * time.Millisecond)
	armed.Store(true)
	said := c.lastSaid(id)
	a.endOfData()
	time.Sleep(3 * time.Second) // the final checkpoint, and the end
	c.tampered = true           // it was dead before it was told to stop
	c.close()
	ended := <-said == job.Finished
	c.storage.before, s.before = nil, nil

	n := c.next(s)
	n.tampered = false
	defer n.close()
	b := n.start("b", 1, script{})
	synctest.Wait()
	if _, deployed := b.lastDeployment(); ended && deployed > 0 {
		t.Errorf("write %d applied=%v: a job that was said to have FINISHED ran again", at, applied)
	} else if deployed > 0 {
		b.endOfData()
		time.Sleep(3 * time.Second)
	}
	if got := n.status(id); got.State != job.Finished {
		t.Errorf("write %d applied=%v: the job is %s (%s)", at, applied, got.State, got.Detail)
	}
	if left, end := n.storage.content(), s.all()[0].End; len(left) > 0 || end == nil || !end.Clean {
		t.Errorf("write %d applied=%v: left %v, end %+v", at, applied, left, end)
	}
	select {
	case <-dead:
		return true
	default:
		return false
	}
}

// lastSaid gives the last state of a job that a watcher is told, 0 if it does not come to its end.
func (c *cluster) lastSaid(id job.ID) <-chan job.State {
	said := make(chan job.State, 1)
	go func() {
		var last job.State
		err := c.m.Watch(c.t.Context(), id, func(s gateway.JobStatus, _ []gateway.JobEvent) error { last = s.State; return nil })
		if err != nil {
			last = 0
		}
		said <- last
	}()
	return said
}
