package taskexecutor

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/localstate"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/storage/storagetest"
	"github.com/weirstream/weir/stream"
)

// chained is a job of one vertex: a source, and two operators with list state behind it. Each starts with what it had, and is seen when it opens.
func chained(r *rig, seen map[string][]int) {
	collecting := func(s stream.Stream[int], id string, factor int) stream.Stream[int] {
		list := stream.NewListState[int]("all")
		return stream.ProcessStream(s, id, stream.ProcessFunction[int, int]{
			Open: func(c *stream.OperatorContext) error {
				seen[id] = slices.Collect(list.All(c))
				return nil
			},
			Process: func(c *stream.OperatorContext, v int, emit func(int) error) error {
				list.Append(c, factor*v)
				return emit(v)
			},
		}, list)
	}
	r.cfg.Jobs = []stream.Definition{stream.Define("idle", "", func(j *stream.Job) error {
		src := stream.From(j, "src", stream.Source[int](r.src))
		stream.To(collecting(collecting(src, "a", 1), "b", 10), "out", stream.Sink[int](nothing{}))
		return nil
	})}
}

// chain is executors that run the job one after another, in one directory and on one storage.
type chain struct {
	t     *testing.T
	dir   string
	store Storage
	seen  map[string][]int
	last  *rig
	n     int // attempts so far
}

// next starts a process: the one before was killed. It has local copies and runs the next attempt, from a checkpoint if there is one.
func (c *chain) next(from *gateway.Ack) *rig {
	c.t.Helper()
	if c.last != nil {
		c.last.cancel()
		<-c.last.done
	}
	r := newRig(c.t)
	r.src.emit = 50
	r.open = func(string) (Storage, error) { return c.store, nil }
	r.cfg.Local = localstate.New(zap.NewNop(), func() (string, error) { return c.dir, nil })
	r.cfg.Incarnation = fmt.Sprintf("i%d", c.n+1)
	clear(c.seen)
	chained(r, c.seen)
	r.start()
	r.m.take()
	c.last, c.n = r, c.n+1
	d := r.deployment(c.n, "src")
	d.Options.Checkpoint.InlineLimit = 1
	d.Placements = d.Placements[:1]
	if from != nil {
		restore := checkpoint.Restore{}
		for _, op := range from.State.Operators {
			o := checkpoint.OperatorRestore{Operator: op.Operator, Lists: op.Lists}
			if op.Items != nil {
				o.Items = []checkpoint.Items{*op.Items}
			}
			restore.Operators = append(restore.Operators, o)
		}
		d.Tasks[0].Restore = &gateway.TaskRestore{Checkpoint: from.ID, Dir: checkpoint.Dir(testJob, from.ID), State: restore}
	}
	r.deploy(d)
	got := r.m.take()
	if len(got) != 2 || !strings.HasSuffix(got[1], "RUNNING") {
		c.t.Fatalf("the job master was told %q", got)
	}
	return r
}

// take takes a checkpoint and returns its ack.
func (c *chain) take(id checkpoint.ID) gateway.Ack {
	c.t.Helper()
	r := c.last
	_, err := r.e.TriggerCheckpoint(c.t.Context(), gateway.TriggerCheckpoint{
		Epoch: 7, ID: id, Dir: checkpoint.Dir(testJob, id), Timestamp: time.Now(), Attempts: []job.AttemptID{attempt("src", c.n)},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	r.expect(fmt.Sprintf("ack %d src[0]#%d", id, c.n))
	return r.m.acks[len(r.m.acks)-1]
}

func (c *chain) complete(id checkpoint.ID) {
	c.t.Helper()
	done := gateway.NotifyCheckpointComplete{Epoch: 7, ID: id, Attempts: []job.AttemptID{attempt("src", c.n)}}
	if _, err := c.last.e.NotifyCheckpointComplete(c.t.Context(), done); err != nil {
		c.t.Fatal(err)
	}
}

// expect: each operator of the chain starts with what it had when the source had emitted that often.
func (c *chain) expect(times int) {
	c.t.Helper()
	for id, factor := range map[string]int{"a": 1, "b": 10} {
		var want []int
		for range times {
			for v := range 50 {
				want = append(want, factor*v)
			}
		}
		if !slices.Equal(c.seen[id], want) {
			c.t.Errorf("operator %s starts with %v, want %v", id, c.seen[id], want)
		}
	}
}

// copies are the files below the directory of local copies.
func (c *chain) copies() (out []string) {
	c.t.Helper()
	err := filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// onEach runs a test on a storage whose files can be linked, and on one whose files are copied.
func onEach(t *testing.T, f func(t *testing.T, c *chain)) {
	for _, name := range []string{"linked", "copied"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &chain{t: t, dir: t.TempDir(), store: storagetest.NewMem(), seen: map[string][]int{}}
				if name == "linked" {
					local, err := storage.NewLocal(t.TempDir())
					if err != nil {
						t.Fatal(err)
					}
					c.store = local
				}
				f(t, c)
			})
		})
	}
}

func TestFault_B80_TwoOperatorsOfAChain_EachStartFromTheirOwnLocalCopy(t *testing.T) {
	onEach(t, func(t *testing.T, c *chain) {
		c.next(nil)
		ack := c.take(1)
		c.complete(1)
		r := c.next(&ack)
		c.expect(1)
		s := r.e.Stats()
		if s.RestoredLocalBytes == 0 || s.RestoredStorageBytes != 0 || s.LocalCopiesDamaged != 0 || s.LocalCopiesFailed != 0 {
			t.Errorf("%+v, want all of the state from local copies", s)
		}
		ack = c.take(2)
		c.next(&ack)
		c.expect(2)
	})
}

func TestLocal_CopiesThatAreNotWhole_AreDeletedAndTheStorageIsRead(t *testing.T) {
	for name, damage := range map[string]func(file string, data []byte) error{
		"changed": func(file string, data []byte) error {
			data[len(data)/2] ^= 1
			return os.WriteFile(file, data, 0o600)
		},
		"cut":   func(file string, data []byte) error { return os.WriteFile(file, data[:len(data)/2], 0o600) },
		"empty": func(file string, _ []byte) error { return os.WriteFile(file, nil, 0o600) },
		"gone":  func(string, []byte) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, c *chain) {
				c.next(nil)
				ack := c.take(1)
				c.complete(1)
				for _, file := range c.copies() {
					data, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					if err := os.Remove(file); err != nil { // the file in the storage is another one, or its other name
						t.Fatal(err)
					}
					if err := damage(file, data); err != nil {
						t.Fatal(err)
					}
				}
				r := c.next(&ack)
				c.expect(1)
				if s := r.e.Stats(); s.RestoredStorageBytes == 0 || (s.LocalCopiesDamaged > 0) != (name != "gone") {
					t.Errorf("%+v, want the storage read", s)
				}
				if left := c.copies(); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		})
	}
}

// Whatever order notifications come in, there are copies of the latest completed checkpoint, and a restart finds them; the storage is not touched.
func TestLocal_RandomLifeOfCheckpoints_KeepsTheCopiesOfTheLatest(t *testing.T) {
	for seed := range uint64(6) {
		onEach(t, func(t *testing.T, c *chain) {
			rng := rand.New(rand.NewPCG(seed, 5))
			c.next(nil)
			var latest *gateway.Ack
			id := checkpoint.ID(0)
			for range 4 {
				for range 1 + rng.IntN(4) {
					id++
					ack := c.take(id)
					if rng.IntN(3) == 0 {
						aborted := gateway.NotifyCheckpointAborted{Epoch: 7, ID: id, Attempts: []job.AttemptID{attempt("src", c.n)}}
						if _, err := c.last.e.NotifyCheckpointAborted(t.Context(), aborted); err != nil {
							t.Fatal(err)
						}
						continue
					}
					c.complete(id)
					latest = &ack
					if rng.IntN(2) == 0 {
						c.complete(max(1, id-1)) // late, and once more
					}
				}
				if latest == nil {
					continue
				}
				r := c.next(latest)
				for _, op := range latest.State.Operators {
					for _, list := range op.Lists {
						if got, want := len(c.seen[op.Operator]), list.Items.Len(); got != want || want == 0 {
							t.Errorf("seed %d: operator %s starts with %d items of %d", seed, op.Operator, got, want)
						}
					}
				}
				if s := r.e.Stats(); s.RestoredStorageBytes != 0 || s.LocalCopiesFailed != 0 {
					t.Errorf("seed %d: %+v, want nothing from the storage", seed, s)
				}
				for _, file := range c.copies() {
					if !strings.Contains(file, fmt.Sprintf("/chk-%d/", latest.ID)) {
						t.Errorf("seed %d: %s is left, latest is %d", seed, file, latest.ID)
					}
				}
			}
		})
	}
}

// When the disk is full tasks do without copies.
func TestLocal_DirectoryThatCannotBeUsed_HoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &chain{t: t, dir: filepath.Join(t.TempDir(), "none", "none"), store: storagetest.NewMem(), seen: map[string][]int{}}
		c.next(nil)
		ack := c.take(1)
		c.complete(1)
		if s := c.last.e.Stats(); s.LocalCopiesFailed == 0 {
			t.Errorf("%+v, want the failure counted", s)
		}
		c.next(&ack)
		c.expect(1)
	})
}

// Savepoints belong to people: there are no copies of them.
func TestLocal_Savepoint_HasNoCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &chain{t: t, dir: t.TempDir(), store: storagetest.NewMem(), seen: map[string][]int{}}
		r := c.next(nil)
		_, err := r.e.TriggerCheckpoint(context.Background(), gateway.TriggerCheckpoint{
			Epoch: 7, ID: 1, Dir: "savepoint-j1-00", Timestamp: time.Now(), Attempts: []job.AttemptID{attempt("src", 1)},
		})
		if err != nil {
			t.Fatal(err)
		}
		r.expect("ack 1 src[0]#1")
		if left := c.copies(); len(left) > 0 {
			t.Errorf("copies %v", left)
		}
	})
}
