package jobmaster

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// threeCheckpoints leaves chk-1 to chk-3 of a job that was canceled in the storage and returns the job's directory.
func threeCheckpoints(t *testing.T, c *cluster) string {
	t.Helper()
	id := c.submit(1, func(s *gateway.Submission) { s.Options.Checkpoint.Interval, s.Options.Checkpoint.Retained = -1, 3 })
	c.expect(id, job.Running)
	for range 3 {
		if _, err := c.m.TriggerCheckpoint(t.Context(), id, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.m.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return checkpoint.JobDir(id)
}

func (c *cluster) restoredFrom() string {
	d, _ := c.at("a:1").lastDeployment()
	if r := d.Tasks[0].Restore; r != nil {
		return r.Dir
	}
	return ""
}

func (c *cluster) events(id job.ID) (out []string) {
	l := c.m.loop(id)
	for _, e := range l.board.Look(0).Events {
		out = append(out, e.Text)
	}
	return out
}

func TestRestorePath_OfAJob_IsItsNewestCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.start("a", 4, script{})
		dir := threeCheckpoints(t, c)
		for _, path := range []string{dir, "/chk/" + dir + "/", "file:///chk/" + dir} {
			id := c.submit(1, func(s *gateway.Submission) { s.RestorePath = path })
			c.expect(id, job.Running)
			if got := c.restoredFrom(); got != dir+"/chk-3" {
				t.Errorf("start from %s restores %s", path, got)
			}
			if _, err := c.m.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestRestorePath_Unreadable_FallsBackOnlyWhenToldAndSaysSo(t *testing.T) {
	for name, harm := range map[string]func(c *cluster, dir string){
		"metadata damaged": func(c *cluster, dir string) { c.storage.files[dir+"/chk-3/_metadata"] = []byte("WEIR") },
		"state file missing": func(c *cluster, dir string) {
			md, err := checkpoint.DecodeMetadata(c.storage.files[dir+"/chk-3/_metadata"])
			if err != nil {
				c.t.Fatal(err)
			}
			md.Vertices[0].Subtasks[0].Operators = []checkpoint.OperatorState{{
				Operator: "src", Items: &checkpoint.Items{Handle: checkpoint.FileHandle("lost.state", 0, []byte("x")), Offsets: []int64{0, 1}},
			}}
			if c.storage.files[dir+"/chk-3/_metadata"], err = checkpoint.EncodeMetadata(md); err != nil {
				c.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				c.tampered = true
				defer c.close()
				c.start("a", 4, script{})
				dir := threeCheckpoints(t, c)
				harm(c, dir)
				for _, path := range []string{dir, dir + "/chk-3"} {
					_, err := c.m.Submit(t.Context(), gateway.Submission{JobName: "flights", RestorePath: path})
					want(t, err, gateway.InvalidArgument, gateway.ReasonBadCheckpoint, dir+"/chk-3 cannot be used", "--fallback")
					id := c.submit(1, func(s *gateway.Submission) { s.RestorePath, s.Fallback = path, true })
					c.expect(id, job.Running)
					if got := c.restoredFrom(); got != dir+"/chk-2" {
						t.Errorf("start from %s restores %s", path, got)
					}
					if e := c.events(id); !strings.HasPrefix(e[0], "WARNING: checkpoint "+dir+"/chk-3 cannot be used: ") ||
						e[1] != "WARNING: starts from the older checkpoint 2 in "+dir+"/chk-2 instead, as --fallback allows" {
						t.Errorf("the timeline begins with %q", e[:2])
					}
					if _, err := c.m.Cancel(t.Context(), id); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// FLINK-39513: the permission to drop state was forgotten at a later restore, which then failed.
func TestFault_B91_DroppedState_StaysDroppedAtEveryRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.tampered = true
		defer c.close()
		c.start("a", 4, script{})
		dir := threeCheckpoints(t, c)
		md, err := checkpoint.DecodeMetadata(c.storage.files[dir+"/chk-3/_metadata"])
		if err != nil {
			t.Fatal(err)
		}
		md.Vertices[1].Operators[0].ID = "gone"
		md.Vertices[1].Subtasks[0].Operators = []checkpoint.OperatorState{{
			Operator: "gone", Items: &checkpoint.Items{Handle: checkpoint.InlineHandle([]byte("x")), Offsets: []int64{0, 1}},
		}}
		if c.storage.files[dir+"/chk-3/_metadata"], err = checkpoint.EncodeMetadata(md); err != nil {
			t.Fatal(err)
		}
		_, err = c.m.Submit(t.Context(), gateway.Submission{JobName: "flights", RestorePath: dir})
		want(t, err, gateway.InvalidArgument, gateway.ReasonBadCheckpoint, "state of operator gone", "--allow-non-restored-state")
		id := c.submit(1, func(s *gateway.Submission) {
			s.RestorePath, s.AllowNonRestored, s.Options.Checkpoint.Interval = dir, true, -1
		})
		c.expect(id, job.Running)
		if e := c.events(id); !slices.Contains(e, "WARNING: the state of operator gone is dropped, as --allow-non-restored-state allows") {
			t.Errorf("the timeline is %q", e)
		}
		c.at("a:1").disconnect()
		c.start("a", 4, script{})
		time.Sleep(time.Second) // longer than the delay of the restart
		if s := c.expect(id, job.Running); s.Restarts != 1 {
			t.Errorf("%d restarts: %s", s.Restarts, s.Detail)
		}
		if got := c.restoredFrom(); got != dir+"/chk-3" {
			t.Errorf("the restart restores %q", got)
		}
	})
}

func TestClaim_DeletesTheOriginMetadataFirstWhenItIsSubsumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.start("a", 4, script{})
		dir := threeCheckpoints(t, c)
		id := c.submit(1, func(s *gateway.Submission) {
			s.RestorePath, s.Claim, s.Options.Checkpoint.Interval = dir+"/chk-2", true, -1
		})
		c.expect(id, job.Running)
		if !c.storage.hasDir(dir + "/chk-2") {
			t.Error("the origin is gone before there is another checkpoint")
		}
		_, err := c.m.Submit(t.Context(), gateway.Submission{JobName: "flights", RestorePath: dir + "/chk-2", Claim: true})
		want(t, err, gateway.InvalidArgument, gateway.ReasonBadCheckpoint, "job "+string(id)+" uses it", "without --claim")
		if _, err := c.m.TriggerCheckpoint(t.Context(), id, 0); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if c.storage.hasDir(dir+"/chk-2") || !c.storage.hasDir(dir+"/chk-1") || !c.storage.hasDir(dir+"/chk-3") {
			t.Errorf("what was claimed must be gone, and nothing else: %v", c.storage.content())
		}
	})
}

func TestDisposeSavepoint_RefusesWhatAJobUses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.tampered = true
		defer c.close()
		c.start("a", 4, script{})
		dir := threeCheckpoints(t, c)
		user := c.submit(1, func(s *gateway.Submission) { s.RestorePath, s.Options.Checkpoint.Interval = dir+"/chk-3", -1 })
		c.expect(user, job.Running)
		refused := func(path string, code gateway.Code, words ...string) {
			t.Helper()
			want(t, c.m.DisposeSavepoint(t.Context(), path), code, gateway.ReasonBadCheckpoint, words...)
		}
		refused("/chk/"+dir+"/chk-3", gateway.FailedPrecondition, "job "+string(user)+" uses it")
		if _, err := c.m.TriggerCheckpoint(t.Context(), user, 0); err != nil {
			t.Fatal(err)
		}
		refused("file:///chk/"+string(user)+"/chk-4/", gateway.FailedPrecondition, "job "+string(user)+" uses it")
		refused("/chk/"+dir, gateway.InvalidArgument, "not the directory of a checkpoint")
		refused("/chk", gateway.Aborted, "no such directory")
		refused("", gateway.InvalidArgument, "not the directory of a checkpoint")
		c.storage.files[dir+"/chk-2/notes.txt"] = nil
		refused("/chk/"+dir+"/chk-2", gateway.InvalidArgument, "notes.txt")
		save, err := c.m.TriggerSavepoint(t.Context(), gateway.TriggerSavepoint{Job: user, Directory: "/save"})
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/chk/" + dir + "/chk-1", dir + "/chk-3", save.Path} {
			if err := c.m.DisposeSavepoint(t.Context(), path); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		if c.storage.hasDir(dir+"/chk-1") || c.storage.hasDir(dir+"/chk-3") || c.elsewhere.hasDir(save.Path) || !c.storage.hasDir(dir+"/chk-2") {
			t.Errorf("left are %v and %v", c.storage.content(), c.elsewhere.content())
		}
	})
}
