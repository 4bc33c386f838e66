package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream"
)

type ckID = checkpoint.ID

func idOf(i int) checkpoint.ID { return checkpoint.ID(i) }

func TestSnapshot_IsTakenBetweenTheRecordsBeforeAndBehindTheBarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		// The ack comes when the task has nothing left to do.
		r.ops[0].items = stream.Items{Persist: func() error { time.Sleep(time.Millisecond); return nil }}
		r.in.put(0, recordsOf("before"), barrierOf(1), recordsOf("behind"))
		r.in.put(1, recordsOf("late"), barrierOf(1))
		r.start()
		r.expect("a.open", "b.open", "running",
			"a.collect(0:before)", "a.collect(1:late)",
			`send["before" "late"]`, "barrier(1)", "a.snapshot(1)", "b.snapshot(1)",
			"a.collect(0:behind)")
		time.Sleep(time.Millisecond)
		r.expect("ack(1)")
	})
}

func TestSnapshot_OfASource_IsTriggered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.source(func() (stream.Next, error) { return stream.WaitForWake, nil })
		r.start()
		cp := cpOf(3)
		time.Sleep(20 * time.Millisecond)
		r.post(Trigger{cp}, Trigger{cp})
		r.expect("a.open", "running", "barrier(3)", "a.snapshot(3)", "ack(3)")
		if m := r.master.metrics; m.StartDelay != 20*time.Millisecond || m.Alignment != 0 {
			t.Errorf("metrics %+v, want a start delay of 20 ms", m)
		}
	})
}

func TestSnapshot_MeasuresItsParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.ops[0].hooks["snapshot(1)"] = func() error { time.Sleep(3 * time.Millisecond); return nil }
		r.ops[0].items = stream.Items{Items: [][]byte{[]byte("12345")}, Persist: func() error { time.Sleep(time.Second); return nil }}
		r.start()
		b := barrierOf(1)
		time.Sleep(time.Millisecond)
		r.in.put(0, b)
		time.Sleep(7 * time.Millisecond)
		r.in.put(1, b)
		time.Sleep(2 * time.Second)
		r.j.take()
		want := checkpoint.Metrics{
			StartDelay: time.Millisecond, Alignment: 7 * time.Millisecond, Sync: 3 * time.Millisecond, Async: time.Second, StateBytes: 5,
		}
		if r.master.metrics != want {
			t.Errorf("metrics %+v, want %+v", r.master.metrics, want)
		}
	})
}

func TestSnapshot_FailureOfTheSynchronousPartFailsTheTask(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("half-way") },
		"panic": func() error { panic("half-way") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 3)
				first := r.keyed(0, nil)
				r.ops[1].hooks["snapshot(1)"] = fail
				r.start()
				r.both(barrierOf(1))
				if err := r.wait(); err == nil || !strings.Contains(err.Error(), "half-way") {
					t.Errorf("Run returned %v", err)
				}
				if got := r.j.take(); slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "ack") }) {
					t.Errorf("it was acknowledged: %q", got)
				}
				if name == "error" && first.released.Load() == 0 {
					t.Error("what was captured before was not released")
				}
			})
		})
	}
}

func TestSnapshot_FailureOfTheAsynchronousPartIsDeclined(t *testing.T) {
	failure := errors.New("disk full")
	fail := func() error { return failure }
	for name, prepare := range map[string]func(r *rig){
		"create":  func(r *rig) { r.files.hooks["create"] = fail },
		"write":   func(r *rig) { r.files.hooks["write"] = fail },
		"commit":  func(r *rig) { r.files.hooks["commit"] = fail },
		"encode":  func(r *rig) { r.ops[1].hooks["append"] = fail },
		"persist": func(r *rig) { r.ops[0].items.Persist = fail },
		"panic":   func(r *rig) { r.ops[0].items.Persist = func() error { panic("disk full") } },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 2)
				r.ops[0].items.Items = [][]byte{big(job.DefaultInlineLimit+1, 1)}
				k := r.keyed(1, map[int][]byte{2: []byte("x")})
				prepare(r)
				r.start()
				r.both(barrierOf(1))
				got := r.j.take()
				declined := slices.IndexFunc(got, func(s string) bool {
					return strings.HasPrefix(s, fmt.Sprintf("decline(1, %s", checkpoint.AsyncException)) && strings.Contains(s, "disk full")
				})
				if declined < 0 || !slices.Contains(got, "remove(1)") || len(r.files.names()) > 0 {
					t.Fatalf("got %q and files %v, want it declined and nothing left", got, r.files.names())
				}
				if k.released.Load() == 0 {
					t.Error("the view of keyed state was not released")
				}
				prepareNothing(r)
				r.both(barrierOf(2))
				if got := r.j.take(); !slices.Contains(got, "ack(2)") {
					t.Errorf("the next one: %q, want an ack", got)
				}
			})
		})
	}
}

// prepareNothing heals what a test has broken.
func prepareNothing(r *rig) {
	clear(r.files.hooks)
	delete(r.ops[1].hooks, "append")
	r.ops[0].items.Persist = nil
}

func TestSnapshot_VerdictDecidesAboutTheFile(t *testing.T) {
	for verdict, removed := range map[checkpoint.Verdict]bool{
		checkpoint.Kept: false, checkpoint.Duplicate: false, checkpoint.StaleEpoch: false,
		checkpoint.TooLate: true, checkpoint.Unknown: true,
	} {
		t.Run(verdict.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 1)
				r.ops[0].items.Items = [][]byte{big(job.DefaultInlineLimit+1, 1)}
				r.master.verdict = verdict
				r.start()
				r.both(barrierOf(1))
				r.j.take()
				if got := len(r.files.names()) == 0; got != removed {
					t.Errorf("file removed: %v, want %v", got, removed)
				}
			})
		})
	}
}

func TestSnapshot_FileOfAnAckThatMayHaveBeenAppliedStays(t *testing.T) {
	for reason, failure := range map[checkpoint.Reason]error{
		checkpoint.IOException: errors.New("connection lost"),
		checkpoint.AckTooLarge: fmt.Errorf("%w: 5 MB", ErrAckTooLarge),
	} {
		t.Run(string(reason), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 1)
				r.ops[0].items.Items = [][]byte{big(job.DefaultInlineLimit+1, 1)}
				r.master.err = failure
				r.start()
				r.both(barrierOf(1))
				r.expect("a.open", "running", "barrier(1)", "a.snapshot(1)", "ack(1)",
					fmt.Sprintf("decline(1, %s, %s)", reason, failure))
				if len(r.files.names()) != 1 {
					t.Errorf("files %v, want the one that was acknowledged", r.files.names())
				}
			})
		})
	}
}

// hang makes an asynchronous part that does not end before the returned function is called.
func hang(r *rig) (release func()) {
	stuck := make(chan struct{})
	r.ops[0].items.Persist = func() error { <-stuck; return nil }
	release = sync.OnceFunc(func() { close(stuck) })
	return release
}

func TestSnapshot_AbortEndsAStalledUploadWithoutStoppingRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.ops[0].items.Items = [][]byte{big(job.DefaultInlineLimit+1, 1)}
		release := hang(r)
		r.start()
		t.Cleanup(release)
		r.both(barrierOf(1))
		r.expect("a.open", "running", "barrier(1)", "a.snapshot(1)")
		r.post(Aborted{ID: 1})
		r.in.put(0, recordsOf("x"))
		r.expect("a.aborted(1)", "a.collect(0:x)")
		release()
		got := r.j.take()
		if slices.Contains(got, "ack(1)") || !slices.Contains(got, "remove(1)") || len(r.files.names()) > 0 {
			t.Errorf("got %q and files %v, want nothing acknowledged and nothing left", got, r.files.names())
		}
	})
}

func TestSnapshot_NumberInFlightIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		k := r.keyed(0, nil)
		release := hang(r)
		r.start()
		t.Cleanup(release)
		for id := range int64(maxInFlight) {
			r.both(barrierOf(id + 1))
			r.j.take()
			r.post(Aborted{ID: checkpoint.ID(id + 1)})
			r.j.take()
		}
		r.both(barrierOf(maxInFlight + 1))
		r.expect("barrier(5)", "a.snapshot(5)", "a.snapshot-keyed",
			fmt.Sprintf("decline(5, %s, 4 earlier snapshots are still being written)", checkpoint.TaskNotReady))
		if k.released.Load() != 1 {
			t.Errorf("%d views released, want the one that is not persisted", k.released.Load())
		}
		release()
		r.j.take()
		r.ops[0].items.Persist = nil
		r.both(barrierOf(maxInFlight + 2))
		if got := r.j.take(); !slices.Contains(got, "ack(6)") {
			t.Errorf("after they have ended: %q, want an ack", got)
		}
	})
}

func TestSnapshot_OperatorsAreClosedWhenNothingIsPersistedAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		release := hang(r)
		persist := r.ops[0].items.Persist
		r.ops[0].items.Persist = func() error { defer r.j.add("persisted"); return persist() }
		r.start()
		t.Cleanup(release)
		r.both(barrierOf(1))
		r.j.take()
		r.cancel(errStop)
		r.expect()
		release()
		got := r.j.take()
		if i := slices.Index(got, "persisted"); i < 0 || slices.Index(got, "a.close") < i {
			t.Errorf("got %q, want it closed after it was persisted", got)
		}
	})
}

func TestSnapshot_AckInFlightEndsWithTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.master.ack = func(ctx context.Context, _ ckID) error { <-ctx.Done(); return context.Cause(ctx) }
		r.ops[0].items.Items = [][]byte{big(job.DefaultInlineLimit+1, 1)}
		r.start()
		r.both(barrierOf(1))
		r.j.take()
		_ = r.stop()
		r.expect("a.close")
		if len(r.files.names()) != 1 {
			t.Error("the file is gone although the ack may have been applied")
		}
	})
}

// parts collects everything that an ack refers to, by operator.
func parts(t *testing.T, r *rig, id int64) (items map[string][]string, keyed map[string]map[int]string) {
	t.Helper()
	items, keyed = map[string][]string{}, map[string]map[int]string{}
	for _, op := range r.master.acked[checkpoint.ID(id)].Operators {
		if op.Items != nil {
			data, err := r.files.read(fmt.Sprintf("j/chk-%d", id), op.Items.Handle)
			if err != nil {
				t.Fatal(err)
			}
			for i := range op.Items.Len() {
				items[op.Operator] = append(items[op.Operator], string(op.Items.Item(data, i)))
			}
		}
		if op.Keyed != nil {
			data, err := r.files.read(fmt.Sprintf("j/chk-%d", id), op.Keyed.Handle)
			if err != nil {
				t.Fatal(err)
			}
			groups := map[int]string{}
			for g := op.Keyed.Range.Start; g < op.Keyed.Range.End; g++ {
				groups[g] = string(op.Keyed.Group(data, g))
			}
			keyed[op.Operator] = groups
		}
	}
	return items, keyed
}

func TestSnapshot_LayoutOfTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3)
		r.cfg.InlineLimit = 10
		r.ops[0].items.Items = [][]byte{[]byte("12345"), {}, []byte("67890")} // 10 bytes: inline
		r.ops[1].items.Items = [][]byte{[]byte("12345678901")}                // 11 bytes: in the file
		huge := map[int][]byte{2: big(writeChunk+7, 1), 4: big(2*writeChunk, 9)}
		r.keyed(1, huge)
		r.keyed(2, map[int][]byte{3: []byte("abc")})
		r.start()
		r.both(barrierOf(1))
		r.j.take()
		state := r.master.acked[1]
		if len(state.Operators) != 3 || state.Subtask != 1 || state.Ended {
			t.Fatalf("state %+v", state)
		}
		a, b, c := state.Operators[0], state.Operators[1], state.Operators[2]
		switch {
		case !a.Items.Handle.IsInline() || a.Keyed != nil:
			t.Errorf("a: %+v, want items inline", a)
		case b.Items.Handle.Path != checkpoint.StateFile(testAttempt, 1) || b.Items.Handle.Offset != 0 || b.Items.Handle.Length != 11:
			t.Errorf("b: items %+v, want 11 bytes at the start of the file", b.Items)
		case b.Keyed.Handle.Offset != 11 || b.Keyed.Handle.Length != int64(3*writeChunk+7):
			t.Errorf("b: keyed state %+v, want it behind the items", b.Keyed)
		case c.Items != nil || !c.Keyed.Handle.IsInline():
			t.Errorf("c: %+v, want keyed state inline and no items", c)
		case c.Keyed.Range != r.cfg.KeyGroups || len(c.Keyed.States) != 1 || c.Keyed.States[0].Name != "n":
			t.Errorf("c: %+v, want the key groups of the task and its schema", c.Keyed)
		}
		items, keyed := parts(t, r, 1)
		if want := []string{"12345", "", "67890"}; !slices.Equal(items["a"], want) {
			t.Errorf("items of a: %q, want %q", items["a"], want)
		}
		if got := keyed["b"]; got[2] != string(huge[2]) || got[3] != "" || got[4] != string(huge[4]) {
			t.Error("the key groups of b are not what was captured")
		}
		if got := keyed["c"]; got[2] != "" || got[3] != "abc" || got[4] != "" {
			t.Errorf("the key groups of c: %v", got)
		}
		if want := int64(10 + 11 + 3*writeChunk + 7 + 3); r.master.metrics.StateBytes != want {
			t.Errorf("%d bytes of state, want %d", r.master.metrics.StateBytes, want)
		}
	})
}

func TestSnapshot_SmallStateMakesNoFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.ops[0].items.Items = [][]byte{big(job.DefaultInlineLimit, 3)}
		r.files.hooks["create"] = func() error { return errors.New("a file is made") }
		r.start()
		r.both(barrierOf(1))
		r.j.take()
		state := r.master.acked[1]
		if len(state.Operators) != 1 || state.Operators[0].Operator != "a" {
			t.Errorf("state %+v, want that of a only", state)
		}
	})
}
