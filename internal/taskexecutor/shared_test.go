package taskexecutor

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/storage/storagetest"
	"github.com/weirstream/weir/internal/task"
	"github.com/weirstream/weir/stream"
)

func TestShared_WhatTheBaseHasIsNotWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := storagetest.NewMem()
		r := newSharedRig(t, mem, 1, nil)
		r.hold(5)
		r.start()
		r.trigger(1, 0, job.FormatNone)
		r.op.holds["000009.sst"] = "new"
		delete(r.op.holds, "000000.sst")
		r.trigger(2, 1, job.FormatNone)
		r.trigger(3, 2, job.FormatNone)
		first, second, third := r.keyed(1), r.keyed(2), r.keyed(3)
		if diff := cmp.Diff(first.Files[1:], second.Files[:4]); diff != "" {
			t.Errorf("the second does not refer to the files of the first: %s", diff)
		}
		if diff := cmp.Diff(second, third); diff != "" {
			t.Errorf("nothing has changed, and the third is another: %s", diff)
		}
		if got := there(t, mem); len(got) != 6 {
			t.Errorf("%d files are there, want 6: %v", len(got), got)
		}
		// A base that the attempt knows nothing of is of no use; nor is one that it has forgotten.
		r.trigger(4, 99, job.FormatNone)
		if got := r.keyed(4); slices.ContainsFunc(got.Files, func(f checkpoint.SharedFile) bool { return !strings.Contains(f.Path, "-c4-") }) {
			t.Errorf("refers to files that are not of its base: %+v", got.Files)
		}
		_ = r.stop()

		// The next attempt knows what it was restored from.
		next := newSharedRig(t, mem, 2, r.restoreOf(3)).start()
		if diff := cmp.Diff(r.op.holds, next.op.holds); diff != "" {
			t.Errorf("restored: %s", diff)
		}
		next.trigger(5, 3, job.FormatNone)
		if diff := cmp.Diff(third, next.keyed(5)); diff != "" {
			t.Errorf("after a restore: %s", diff)
		}
		_ = next.stop()
	})
}

func TestShared_SavepointsShareNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := storagetest.NewMem()
		r := newSharedRig(t, mem, 1, nil)
		r.hold(3)
		r.start()
		r.trigger(1, 0, job.FormatNone)
		r.trigger(2, 0, job.FormatCanonical)
		if k := r.keyed(2); k.IsNative() || k.Handle.Size() == 0 {
			t.Errorf("canonical: %+v", k)
		}
		r.trigger(3, 0, job.FormatNative)
		for _, f := range r.keyed(3).Files {
			if _, shared := f.Shared(); shared {
				t.Errorf("a savepoint refers to %s", f.Path)
			}
			if data, err := mem.ReadFile(t.Context(), f.In(checkpoint.SavepointDir(sharedJob, "3")), 1000); err != nil || checkpoint.Checksum(data) != f.CRC32C {
				t.Errorf("%s: %v", f.Path, err)
			}
		}
		// It is nobody's base, and leaves the bases of others alone.
		r.trigger(4, 1, job.FormatNone)
		if diff := cmp.Diff(r.keyed(1), r.keyed(4)); diff != "" {
			t.Error(diff)
		}
		_ = r.stop()
	})
}

func TestFault_B68_TheNameOfAFileIsNotItsContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := storagetest.NewMem()
		r := newSharedRig(t, mem, 1, nil)
		r.hold(2)
		r.start()
		r.trigger(1, 0, job.FormatNone)
		r.op.holds["x.sst"] = "of the first attempt"
		r.trigger(2, 1, job.FormatNone)
		_ = r.stop() // it dies before 2 has completed

		next := newSharedRig(t, mem, 2, r.restoreOf(1)).start()
		next.op.holds["x.sst"] = "of the other attempt" // as long as the first
		next.trigger(3, 1, job.FormatNone)
		_ = next.stop()
		last := newSharedRig(t, mem, 3, next.restoreOf(3)).start()
		if diff := cmp.Diff(next.op.holds, last.op.holds); diff != "" {
			t.Errorf("what is restored is not what was saved: %s", diff)
		}
		_ = last.stop()
	})
}

// Two checkpoints at a time upload the same file; what belongs to the first is deleted.
func TestFault_B69_EachUploadIsAFileOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := storagetest.NewMem()
		r := newSharedRig(t, mem, 1, nil)
		r.hold(4)
		r.start()
		r.trigger(1, 0, job.FormatNone)
		r.trigger(2, 0, job.FormatNone)
		for _, f := range r.referred(1) {
			if slices.Contains(r.referred(2), f) {
				t.Errorf("both refer to %s", f)
			}
			if err := mem.Remove(t.Context(), f); err != nil {
				t.Fatal(err)
			}
		}
		// One that is pending is nobody's base: what it has uploaded may be gone with it.
		r.op.holds["x.sst"] = "new"
		r.trigger(3, 2, job.FormatNone)
		r.trigger(4, 2, job.FormatNone)
		for _, f := range r.keyed(4).Files {
			if strings.Contains(f.Path, "-c3-") {
				t.Errorf("4 refers to %s of checkpoint 3, and its base is 2", f.Path)
			}
		}
		delete(r.op.holds, "x.sst")
		_ = r.stop()
		next := newSharedRig(t, mem, 2, r.restoreOf(2)).start()
		if diff := cmp.Diff(r.op.holds, next.op.holds); diff != "" {
			t.Error(diff)
		}
		_ = next.stop()
	})
}

// What a task may refer to is what the coordinator names and the task has on record, whenever notifications come.
func TestFault_B70_ALateCompletionMakesNothingAvailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := storagetest.NewMem()
		r := newSharedRig(t, mem, 1, nil)
		r.hold(4)
		r.start()
		r.trigger(1, 0, job.FormatNone)
		r.trigger(2, 0, job.FormatNone)
		for _, f := range r.referred(1) { // 2 has completed, and subsumed 1
			if err := mem.Remove(t.Context(), f); err != nil {
				t.Fatal(err)
			}
		}
		r.post(task.Completed{ID: 1})
		r.trigger(3, 2, job.FormatNone)
		for _, f := range r.referred(3) {
			if !slices.Contains(there(t, mem), f) {
				t.Errorf("refers to %s, which is gone", f)
			}
		}
		_ = r.stop()
	})
}

func TestFault_B73_OneFailedUploadTakesItsSiblingsAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := storagetest.NewMem()
		r := newSharedRig(t, mem, 1, nil)
		r.hold(10)
		commits := atomic.Int32{}
		mem.SetFaults(func(op storagetest.Op) storagetest.Fault {
			if op.Kind == storagetest.Commit && commits.Add(1) == 7 {
				return storagetest.Fault{After: errors.New("disk full")} // it is there, and the caller does not know
			}
			return storagetest.Fault{}
		})
		r.start()
		r.trigger(1, 0, job.FormatNone)
		if got := there(t, mem); len(got) != 0 || !strings.Contains(r.declined[1], "disk full") {
			t.Errorf("declined with %q, left behind: %v", r.declined[1], got)
		}
		r.trigger(2, 0, job.FormatNone)
		if diff := cmp.Diff(r.referred(2), there(t, mem)); diff != "" {
			t.Error(diff)
		}
		_ = r.stop()
	})
}

func TestFault_B74_ACanceledSnapshotDeletesOnlyItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := storagetest.NewMem()
		r := newSharedRig(t, mem, 1, nil)
		r.hold(10)
		r.start()
		r.trigger(3, 0, job.FormatNone)
		before := there(t, mem)
		r.op.holds["000099.sst"] = "new"
		mem.SetFaults(func(op storagetest.Op) storagetest.Fault {
			if op.Kind == storagetest.Commit {
				_ = r.mail.Post(task.Aborted{ID: 4, Latest: 3})
				time.Sleep(time.Second) // in the middle of the asynchronous part
			}
			return storagetest.Fault{}
		})
		r.trigger(4, 3, job.FormatNone)
		time.Sleep(time.Minute)
		synctest.Wait()
		mem.SetFaults(nil)
		if diff := cmp.Diff(before, there(t, mem)); diff != "" {
			t.Errorf("files before and after: %s", diff)
		}
		_ = r.stop()
		delete(r.op.holds, "000099.sst")
		next := newSharedRig(t, mem, 2, r.restoreOf(3)).start()
		if diff := cmp.Diff(r.op.holds, next.op.holds); diff != "" {
			t.Error(diff)
		}
		_ = next.stop()
	})
}

// The job master may say at any time that a checkpoint is over: in its ack, or while it is being written. Only what is referred to is left.
func TestFault_B75_AbortAnywhereLeavesOnlyWhatIsReferredTo(t *testing.T) {
	seeds := uint64(1000)
	if testing.Short() {
		seeds = 100
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { abortAnywhere(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func abortAnywhere(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 75))
	mem := storagetest.NewMem()
	r := newSharedRig(t, mem, 1, nil)
	r.hold(1 + rng.IntN(6))
	r.start()
	r.trigger(1, 0, job.FormatNone)
	r.op.holds["a.sst"], r.op.holds["b.sst"], r.op.holds["c.sst"] = "a", "bb", "ccc"
	at, ops := rng.Int32N(14), atomic.Int32{}
	mem.SetFaults(func(op storagetest.Op) storagetest.Fault {
		if n := ops.Add(1); n == at {
			_ = r.mail.Post(task.Aborted{ID: 2, Latest: 1})
			time.Sleep(time.Second)
		}
		return storagetest.Fault{}
	})
	if rng.IntN(4) == 0 {
		r.verdict = checkpoint.TooLate
	}
	r.trigger(2, 1, job.FormatNone)
	time.Sleep(time.Minute)
	synctest.Wait()
	mem.SetFaults(nil)
	_, acked := r.acked[2]
	want := r.referred(1)
	if acked && r.verdict == checkpoint.Kept {
		want = r.referred(1, 2) // the job master has it, and deletes what is its own
	}
	if diff := cmp.Diff(want, there(t, mem)); diff != "" {
		t.Errorf("acked %t: %s", acked, diff)
	}
	_ = r.stop()
}

// A storage that forgets what was not synced has everything that an ack refers to, from the moment of the ack on.
func TestFault_B76_WhatIsAcknowledgedSurvivesACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := storagetest.NewMem()
		r := newSharedRig(t, mem, 1, nil)
		r.hold(6)
		commits := 0
		mu := sync.Mutex{}
		mem.SetFaults(func(op storagetest.Op) storagetest.Fault {
			mu.Lock()
			defer mu.Unlock()
			if op.Kind == storagetest.Commit {
				if commits++; commits == 4 {
					return storagetest.Fault{Unsynced: true, After: errors.New("the disk was not flushed")}
				}
			}
			return storagetest.Fault{}
		})
		r.start()
		for id := checkpoint.ID(1); id < 4; id++ {
			r.trigger(id, 0, job.FormatNone)
		}
		_ = r.stop()
		mem.Crash()
		if _, acked := r.acked[1]; acked {
			t.Error("a file that was not synced was acknowledged")
		}
		for id := checkpoint.ID(2); id < 4; id++ {
			for _, f := range r.keyed(id).Files {
				data, err := mem.ReadFile(context.Background(), f.In(checkpoint.Dir(sharedJob, id)), 1000)
				if err != nil || checkpoint.Checksum(data) != f.CRC32C || int64(len(data)) != f.Size {
					t.Errorf("checkpoint %d: %s: %v", id, f.Path, err)
				}
			}
		}
	})
}

func TestShared_DamageIsFoundBeforeAnythingIsRestored(t *testing.T) {
	for name, damage := range map[string]struct {
		do   func(mem *storagetest.Mem, file string) error
		want string
	}{
		"missing": {func(mem *storagetest.Mem, file string) error { return mem.Remove(context.Background(), file) }, "is missing"},
		"short": {func(mem *storagetest.Mem, file string) error {
			return mem.WriteFile(context.Background(), file, []byte("short"), 1)
		}, "has 5 bytes, recorded were 100"},
		"changed": {func(mem *storagetest.Mem, file string) error {
			return mem.WriteFile(context.Background(), file, bytes.Repeat([]byte("x"), 100), 1)
		}, "is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			mem := storagetest.NewMem()
			var restore *task.Restore
			synctest.Test(t, func(t *testing.T) {
				r := newSharedRig(t, mem, 1, nil)
				r.hold(3)
				r.start()
				r.trigger(1, 0, job.FormatNone)
				restore = r.restoreOf(1)
				if err := damage.do(mem, r.referred(1)[1]); err != nil {
					t.Fatal(err)
				}
				_ = r.stop()
				next := newSharedRig(t, mem, 2, restore).start()
				err := <-next.ended
				if err == nil || !strings.Contains(err.Error(), damage.want) || !stream.IsPermanent(err) || len(next.op.holds) > 0 {
					t.Errorf("ended with %v; restored %v", err, next.op.holds)
				}
				next.cancel()
			})
		})
	}
}

// After a rescale a task gets the files of several, or more than its own part of one. Then names say nothing, and the first checkpoint is full.
func TestShared_PartsOfOthers_AreClippedAndNobodysBase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := storagetest.NewMem()
		r := newSharedRig(t, mem, 1, nil)
		r.hold(3)
		r.start()
		r.trigger(1, 0, job.FormatNone)
		_ = r.stop()
		restore := r.restoreOf(1)
		k := restore.State.Operators[0].Keyed[0]
		k.Range, k.Clipped = job.KeyGroupRange{Start: 2, End: 4}, true
		restore.State.Operators[0].Keyed = []checkpoint.Keyed{k}
		next := newSharedRig(t, mem, 2, restore).start()
		if diff := cmp.Diff([][2]int{{2, 4}}, next.op.groups); diff != "" || next.op.whole[0] {
			t.Errorf("restored %v, whole %v", next.op.groups, next.op.whole)
		}
		next.trigger(2, 1, job.FormatNone)
		for _, f := range next.keyed(2).Files {
			if !strings.Contains(path.Base(f.Path), "-a2-c2-") {
				t.Errorf("%s is called %s, as a file of another content may be", f.Path, f.Name)
			}
		}
		_ = next.stop()
		left, err := os.ReadDir(func() string { dir, _ := next.cfg.Shared.(*sharedFiles).taskDir(); return dir }())
		if err != nil || len(left) > 0 {
			t.Errorf("copies are left behind: %v %v", left, err)
		}
	})
}

func TestShared_AnotherBackend_IsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := storagetest.NewMem()
		r := newSharedRig(t, mem, 1, nil)
		r.hold(1)
		r.start()
		r.trigger(1, 0, job.FormatNone)
		_ = r.stop()
		restore := r.restoreOf(1)
		restore.State.Operators[0].Keyed[0].Backend = "pebble"
		next := newSharedRig(t, mem, 2, restore).start()
		if err := <-next.ended; err == nil || !stream.IsPermanent(err) || !strings.Contains(err.Error(), "--state-backend pebble") {
			t.Errorf("ended with %v", err)
		}
		next.cancel()
	})
}
