package task

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/stream"
)

func TestRun_OpensWorksAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2).start()
		r.expect("a.open", "b.open", "running")
		r.in.put(1, recordsOf("x", "y"))
		r.expect("a.collect(1:x)", "a.collect(1:y)")
		if err := r.stop(); !errors.Is(err, errStop) {
			t.Errorf("Run returned %v, want the cause of the cancellation", err)
		}
		r.expect("a.close", "b.close")
		if in, out := r.task.Records(); in != 2 || out != 0 {
			t.Errorf("%d records in, %d out, want 2 and none", in, out)
		}
	})
}

func TestRun_ClosesEverythingOnceAfterAFailure(t *testing.T) {
	failure := errors.New("broken")
	for name, c := range map[string]struct {
		prepare func(r *rig)
		want    []string
	}{
		"open":    {func(r *rig) { r.ops[1].hooks["open"] = func() error { return failure } }, []string{"a.open", "b.open"}},
		"collect": {func(r *rig) { r.ops[0].hooks["collect(0:x)"] = func() error { return failure } }, []string{"a.open", "b.open", "c.open", "running", "a.collect(0:x)"}},
		"input":   {func(r *rig) { r.in.fail(failure) }, []string{"a.open", "b.open", "c.open", "running", "a.collect(0:x)"}},
		"close": {func(r *rig) {
			r.ops[0].hooks["collect(0:x)"] = func() error { return failure }
			r.ops[0].hooks["close"] = func() error { return errors.New("also broken") }
			r.ops[1].hooks["close"] = func() error { panic("broken too") }
		}, []string{"a.open", "b.open", "c.open", "running", "a.collect(0:x)"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 3)
				c.prepare(r)
				r.in.put(0, recordsOf("x"))
				if err := r.start().wait(); !errors.Is(err, failure) {
					t.Errorf("Run returned %v, want the first failure", err)
				}
				r.expect(append(c.want, "a.close", "b.close", "c.close")...)
				if err := r.mail.Post(Completed{1}); !errors.Is(err, ErrMailboxClosed) {
					t.Errorf("mail after the end: %v, want ErrMailboxClosed", err)
				}
			})
		})
	}
}

func TestRun_ReportsAFailureOfClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		failure := errors.New("cannot close")
		r.ops[1].hooks["close"] = func() error { return failure }
		r.start()
		r.both(endOfData)
		r.both(barrierFinal(1))
		r.j.take()
		r.post(Completed{1})
		if err := r.wait(); !errors.Is(err, failure) {
			t.Errorf("Run returned %v, want %v", err, failure)
		}
	})
}

func barrierFinal(id int64) element.Element {
	e := barrierOf(id)
	e.Checkpoint.Final = true
	return e
}

func TestLinger_SendsWhenRecordsHaveWaitedLongEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1).start()
		r.in.put(0, recordsOf("x"))
		r.expect("a.open", "running", "a.collect(0:x)")
		time.Sleep(r.cfg.Linger - 2)
		r.in.put(0, recordsOf("y")) // does not begin a new wait
		r.expect("a.collect(0:y)")
		time.Sleep(1)
		r.expect()
		time.Sleep(1)
		r.expect(`send["x" "y"]`)
		time.Sleep(time.Hour)
		r.in.put(0, recordsOf("z"))
		time.Sleep(r.cfg.Linger - 1)
		r.expect("a.collect(0:z)")
		time.Sleep(1)
		r.expect(`send["z"]`)
		if in, out := r.task.Records(); in != 3 || out != 3 {
			t.Errorf("%d records in, %d out, want 3 and 3", in, out)
		}
	})
}

func TestLinger_NegativeSendsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.cfg.Linger = -1
		r.in.put(0, recordsOf("x", "y"), recordsOf("z"))
		r.start()
		r.expect("a.open", "running", "a.collect(0:x)", "a.collect(0:y)", `send["x" "y"]`, "a.collect(0:z)", `send["z"]`)
	})
}

func TestLinger_BusySourceDoesNotHoldRecordsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		polls := 0
		r.source(func() (stream.Next, error) {
			if polls++; polls == 1 {
				r.out.waiting = append(r.out.waiting, "x")
			}
			time.Sleep(r.cfg.Linger / 10) // it reads, and everything is filtered out
			return stream.More, nil
		})
		r.start()
		time.Sleep(2 * r.cfg.Linger)
		if got := r.j.take(); !slices.Contains(got, `send["x"]`) {
			t.Errorf("got %q, want the record sent", got)
		}
		_ = r.stop()
	})
}

func TestSource_IsPolledWhenItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		start := time.Now()
		var next atomic.Value
		r.source(func() (stream.Next, error) {
			r.j.add("poll at %s", time.Since(start))
			return next.Load().(stream.Next), nil
		})
		next.Store(stream.WaitUntil(start.Add(time.Minute)))
		r.start()
		r.expect("a.open", "running", "poll at 0s")
		next.Store(stream.WaitForWake)
		time.Sleep(time.Minute)
		r.expect("poll at 1m0s")
		time.Sleep(time.Hour)
		r.expect()
		next.Store(stream.WaitUntil(start.Add(24 * time.Hour)))
		r.mail.Wake()
		r.expect("poll at 1h1m0s")
		next.Store(stream.End)
		r.mail.Wake()
		r.expect("poll at 1h1m0s", "a.finish", "end-of-data", "report-end-of-data")
		r.mail.Wake()
		time.Sleep(48 * time.Hour)
		r.expect()
		if !r.task.Ended() {
			t.Error("the task has not ended its input")
		}
	})
}

func TestSource_ThatWaits_StillSendsWhatLingers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.source(func() (stream.Next, error) {
			r.out.waiting = append(r.out.waiting, "x")
			return stream.WaitUntil(time.Now().Add(time.Minute)), nil
		})
		r.start()
		r.expect("a.open", "running")
		time.Sleep(r.cfg.Linger)
		r.expect(`send["x"]`)
	})
}

func TestSource_FailureEndsTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		failure := errors.New("cannot read")
		r.source(func() (stream.Next, error) { return stream.More, failure })
		if err := r.start().wait(); !errors.Is(err, failure) {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestMail_IsServedWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1).start()
		r.expect("a.open", "running")
		r.post(Completed{4})
		r.expect("a.complete(4)")
		if r.task.Notified() != 4 {
			t.Errorf("notified %d, want 4", r.task.Notified())
		}
	})
}

func TestMail_IsServedBetweenBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.ops[0].hooks["collect(0:x)"] = func() error { return r.mail.Post(Completed{4}) }
		r.in.put(0, recordsOf("x", "y"), recordsOf("z"))
		r.start()
		r.expect("a.open", "running", "a.collect(0:x)", "a.collect(0:y)", "a.complete(4)", "a.collect(0:z)")
	})
}

func TestMail_IsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		for i := range MaxMail {
			r.post(Completed{1 + idOf(i)})
		}
		if err := r.mail.Post(Completed{9}); !errors.Is(err, ErrMailboxFull) {
			t.Errorf("message %d: %v, want ErrMailboxFull", MaxMail+1, err)
		}
		r.start()
		r.j.take()
		if r.task.Notified() != MaxMail {
			t.Errorf("notified %d, want %d: mail was lost", r.task.Notified(), MaxMail)
		}
		r.post(Completed{MaxMail + 1})
	})
}

func TestBackPressure_HoldsTheInputUntilThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.cfg.Linger = -1
		r.out.stalled = make(chan struct{})
		r.in.put(0, recordsOf("x"), recordsOf("y"))
		r.start()
		r.expect("a.open", "running", "a.collect(0:x)", "stalled")
		close(r.out.stalled)
		r.expect(`send["x"]`, "a.collect(0:y)", "stalled", `send["y"]`)
	})
}

func TestBackPressure_EndsWithTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.cfg.Linger = -1
		r.out.stalled = make(chan struct{})
		r.in.put(0, recordsOf("x"))
		r.start()
		r.j.take()
		_ = r.stop()
		r.expect("a.close")
	})
}

func TestEndOfInput_FlushesHeadFirstAndEndsWithTheFinalCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.ops[0].hooks["finish"] = func() error { r.out.waiting = append(r.out.waiting, "rest"); return nil }
		r.start()
		r.in.put(0, endOfData)
		r.expect("a.open", "b.open", "running")
		r.in.put(1, recordsOf("x"), endOfData)
		r.expect("a.collect(1:x)", "a.finish", "b.finish", `send["x" "rest"]`, "end-of-data", "report-end-of-data")
		r.both(barrierFinal(7))
		r.expect("barrier(7)", "a.snapshot(7)", "b.snapshot(7)", "ack(7)")
		if !r.master.acked[7].Ended {
			t.Error("the ack does not say that the input had ended")
		}
		r.post(Completed{7})
		if err := r.wait(); err != nil {
			t.Errorf("Run returned %v, want FINISHED", err)
		}
		r.expect("a.complete(7)", "b.complete(7)", "closed", "a.close", "b.close")
	})
}

func TestNotify_ReachesAllOperatorsEvenIfSomeFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3)
		failure := errors.New("cannot commit")
		r.ops[0].hooks["complete(5)"] = func() error { return failure }
		r.ops[1].hooks["complete(5)"] = func() error { panic("cannot commit either") }
		r.start()
		r.post(Completed{5})
		if err := r.wait(); !errors.Is(err, failure) {
			t.Errorf("Run returned %v, want the first failure", err)
		}
		got := r.j.take()
		if !slices.Contains(got, "b.complete(5)") || !slices.Contains(got, "c.complete(5)") {
			t.Errorf("not all were told: %q", got)
		}
	})
}

func TestNotify_MissedCompletionComesBeforeTheAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1).start()
		r.master.ack = func(ctx context.Context, _ ckID) error { <-ctx.Done(); return ctx.Err() }
		r.both(barrierOf(8))
		r.expect("a.open", "running", "barrier(8)", "a.snapshot(8)")
		r.post(Aborted{ID: 8, Latest: 7}, Aborted{ID: 8, Latest: 7})
		got := r.j.take()
		if i := slices.Index(got, "a.complete(7)"); i < 0 || slices.Index(got, "a.aborted(8)") < i || slices.Contains(got[i+1:], "a.complete(7)") {
			t.Errorf("got %q, want complete(7) once, then aborted(8)", got)
		}
	})
}

func TestRun_RefusesAnUnknownElement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.in.put(0, element.Element{Kind: 99})
		if err := r.start().wait(); err == nil || !strings.Contains(err.Error(), "unknown kind 99") {
			t.Errorf("Run returned %v", err)
		}
	})
}
