package task

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream"
)

// restoreOf makes of the ack of one task what the next one starts from.
func restoreOf(r *rig, id checkpoint.ID) *Restore {
	state := r.master.acked[id]
	out := checkpoint.Restore{Ended: state.Ended}
	for _, op := range state.Operators {
		given := checkpoint.OperatorRestore{Operator: op.Operator}
		if op.Items != nil {
			given.Items = append(given.Items, *op.Items)
		}
		if op.Keyed != nil {
			given.Keyed = append(given.Keyed, *op.Keyed)
		}
		out.Operators = append(out.Operators, given)
	}
	return &Restore{Checkpoint: id, Dir: fmt.Sprintf("j/chk-%d", id), State: out}
}

// snapshotted runs a task with state in two operators up to checkpoint 1, which a file and the ack hold.
func takeOne(t *testing.T) *rig {
	r := newRig(t, 2)
	r.ops[0].items.Items = [][]byte{[]byte("one"), big(job.DefaultInlineLimit, 5)}
	r.keyed(1, map[int][]byte{2: []byte("group two"), 4: big(job.DefaultInlineLimit, 7)})
	r.start()
	r.both(barrierOf(1))
	r.j.take()
	_ = r.stop()
	return r
}

// next returns the successor of r's task, with empty state.
func next(t *testing.T, r *rig) (*rig, *keyedOperator) {
	n := newRig(t, 2)
	n.files.made = r.files.made
	n.cfg.Restore = restoreOf(r, 1)
	return n, n.keyed(1, map[int][]byte{})
}

func TestRestore_GivesBackWhatWasSnapshotted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := takeOne(t)
		n, k := next(t, r)
		n.start()
		got := n.j.take()
		if len(got) != 5 || !strings.HasPrefix(got[0], "a.restore") || !strings.HasPrefix(got[1], "b.restore") || got[2] != "a.open" || got[4] != "running" {
			t.Errorf("got %.60q, want it restored before it is opened", got)
		}
		if len(n.ops[0].restored) != 2 || string(n.ops[0].restored[0]) != "one" || len(n.ops[1].restored) != 0 {
			t.Errorf("items of a %.20q, of b %q", n.ops[0].restored, n.ops[1].restored)
		}
		if string(k.groups[2]) != "group two" || string(k.groups[3]) != "" || len(k.groups[4]) != job.DefaultInlineLimit {
			t.Error("the key groups are not what was snapshotted")
		}
		if n.task.Notified() != 1 {
			t.Errorf("notified %d, want the restored checkpoint", n.task.Notified())
		}
	})
}

func TestRestore_DamagedOrMissingStateEndsTheTaskBeforeItOpens(t *testing.T) {
	name := "j/chk-1/" + checkpoint.StateFile(testAttempt, 1)
	for what, damage := range map[string]func(n *rig){
		"missing":        func(n *rig) { delete(n.files.made, name) },
		"truncated":      func(n *rig) { n.files.made[name] = n.files.made[name][:100] },
		"changed":        func(n *rig) { n.files.made[name][10]++ },
		"keyed, changed": func(n *rig) { n.files.made[name][job.DefaultInlineLimit+100]++ },
		"items refused":  func(n *rig) { n.ops[1].hooks["restore[]"] = func() error { return errors.New("no") } },
		"schema": func(n *rig) {
			n.cfg.Restore.State.Operators[1].Keyed[0].States[0].ValueType = "string"
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, _ := next(t, takeOne(t))
				damage(n)
				err := n.start().wait()
				if err == nil || !strings.Contains(err.Error(), "restore from checkpoint 1") {
					t.Errorf("Run returned %v", err)
				}
				for _, line := range n.j.take() {
					if strings.HasSuffix(line, ".open") || line == "running" {
						t.Errorf("the task went on: %s", line)
					}
				}
			})
		})
	}
}

func TestRestore_StateThatAnOperatorNoLongerHasIsPermanent(t *testing.T) {
	for i, what := range []string{"operator a has no list state any more", "operator b has no keyed state any more"} {
		synctest.Test(t, func(t *testing.T) {
			n, _ := next(t, takeOne(t))
			n.cfg.Chain.Operators[i].Operator = stateless{}
			if err := n.start().wait(); !stream.IsPermanent(err) || !strings.Contains(err.Error(), what) {
				t.Errorf("Run returned %v, want it permanent: %s", err, what)
			}
		})
	}
}

func TestRestore_EndedTaskIsNotFlushedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1).start()
		r.both(endOfData)
		r.both(barrierOf(1))
		r.expect("a.open", "running", "a.finish", "end-of-data", "report-end-of-data", "barrier(1)", "a.snapshot(1)", "ack(1)")
		n := newRig(t, 1)
		n.cfg.Restore = restoreOf(r, 1)
		n.start()
		n.both(endOfData)
		n.expect("a.restore[]", "a.open", "running", "end-of-data", "report-end-of-data")
		n.both(barrierOf(2))
		n.j.take()
		if !n.master.acked[2].Ended {
			t.Error("the next checkpoint forgets that the input had ended")
		}
	})
}

func TestRestore_BarriersOfOlderCheckpointsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _ := next(t, takeOne(t))
		n.start()
		n.j.take()
		n.both(barrierOf(1))
		n.expect()
	})
}
