package task

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream"
)

func stopAt(id int64, mode job.StopMode) Trigger {
	cp := cpOf(id)
	cp.Stop = mode
	return Trigger{cp}
}

func TestStop_SuspendedSourceStandsStillUntilItsFateIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.source(func() (stream.Next, error) {
			r.j.add("poll")
			return stream.WaitForWake, nil
		})
		r.start()
		r.expect("a.open", "b.open", "running", "poll")

		r.post(stopAt(1, job.StopSuspend))
		synctest.Wait()
		if got := r.j.take(); slices.Contains(got, "poll") || !slices.Contains(got, "barrier(1)") {
			t.Fatalf("behind the barrier of the savepoint: %q", got)
		}
		r.mail.Wake()
		r.expect()

		r.post(Aborted{ID: 1})
		synctest.Wait()
		if got := r.j.take(); !slices.Contains(got, "poll") {
			t.Fatalf("the savepoint was aborted, and the source does not go on: %q", got)
		}

		r.post(stopAt(2, job.StopSuspend))
		synctest.Wait()
		r.j.take()
		r.post(Completed{2})
		if err := r.wait(); err != nil {
			t.Errorf("Run returned %v, want that the task has finished", err)
		}
		r.expect("a.complete(2)", "b.complete(2)", "closed", "a.close", "b.close")
		if r.task.Ended() {
			t.Error("a suspended task says that its input is over")
		}
	})
}

// TestFault_B46_DrainFlushesWhatOperatorsHold: the end of the input goes ahead of the barrier, so what operators emit then is in the savepoint.
func TestFault_B46_DrainFlushesWhatOperatorsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.source(func() (stream.Next, error) { return stream.WaitForWake, nil })
		r.ops[0].hooks["finish"] = func() error {
			r.out.waiting = append(r.out.waiting, "held")
			return nil
		}
		r.start()
		r.expect("a.open", "b.open", "running")
		r.post(stopAt(1, job.StopDrain))
		synctest.Wait()
		got := r.j.take()
		want := []string{"a.finish", "b.finish", `send["held"]`, "end-of-data", "report-end-of-data", "barrier(1)"}
		if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			t.Fatalf("drained: %q, want it to begin with %q", got, want)
		}
		if !r.master.acked[1].Ended {
			t.Error("the snapshot does not say that the task has ended")
		}
		r.post(Completed{1})
		if err := r.wait(); err != nil {
			t.Errorf("Run returned %v, want that the task has finished", err)
		}
	})
}

// TestFault_B102_RestoredFromItsStop_CommitsAndFinishes: nothing is read from its source, nothing is emitted but the end.
func TestFault_B102_RestoredFromItsStop_CommitsAndFinishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.source(func() (stream.Next, error) {
			r.j.add("poll")
			return stream.More, nil
		})
		r.cfg.Restore = &Restore{Checkpoint: 7, Dir: "save", Stopped: true}
		r.start()
		r.expect("a.restore[]", "a.open", "end-of-data", "report-end-of-data", "running")
		r.post(Completed{7})
		if err := r.wait(); err != nil {
			t.Errorf("Run returned %v, want that the task has finished", err)
		}
		r.expect("a.complete(7)", "closed", "a.close")
	})
}
