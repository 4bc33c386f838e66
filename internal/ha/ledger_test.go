package ha

import (
	"math/rand/v2"
	"testing"

	"github.com/weirstream/weir/internal/checkpoint"
)

// Whatever the order of draws, writes and deaths: what was allowed to be used is never allowed again by a later job master.
func TestLedger_NothingIsUsedTwice_OverJobMasters(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var record Record
		usedAttempt, usedID := 0, checkpoint.ID(0)
		for range 10 {
			l := NewLedger(&record)
			if l.FirstAttempt() <= usedAttempt || l.FirstID() <= usedID {
				t.Fatalf("seed %d: begins with attempt %d and id %d, used are %d and %d", seed, l.FirstAttempt(), l.FirstID(), usedAttempt, usedID)
			}
			attempt, id := l.FirstAttempt(), l.FirstID()-1
			var open []Write
			asked := false
			for range 400 {
				switch rng.IntN(5) {
				case 0:
					l.ReserveAttempt(attempt)
					asked = true
				case 1:
					if asked && l.AttemptReserved() {
						usedAttempt, asked = attempt, false
						attempt++
					}
				case 2, 3:
					id++
					l.Draw(id)
					if l.Reserved(id) {
						usedID = id
					}
				case 4:
					if len(open) > 0 {
						record.Progress = open[0].Progress
						l.Written(open[0])
						open = nil
					} else if w, due := l.Due(); due {
						open = append(open, w)
					}
				}
				if usedID > record.Progress.Reserved || usedAttempt > record.Progress.Attempt {
					t.Fatalf("seed %d: id %d and attempt %d are used, the record has %+v", seed, usedID, usedAttempt, record.Progress)
				}
			}
			if len(open) > 0 && rng.IntN(2) == 0 {
				record.Progress = open[0].Progress // it was written, and the job master died before it heard of it
			}
		}
	}
}

func TestLedger_OneWriteAtATime_TheEndFirst(t *testing.T) {
	l := NewLedger(nil)
	if _, due := l.Due(); due {
		t.Fatal("a write is due, and nothing has happened")
	}
	l.ReserveAttempt(1)
	if l.AttemptReserved() {
		t.Error("attempt 1 may be used before it is recorded")
	}
	w, due := l.Due()
	if !due || w.End != nil || w.Progress.Attempt != 1 || w.Progress.Reserved != IDBlock {
		t.Fatalf("due %t: %+v", due, w)
	}
	l.SetEnd(End{Failure: "why"})
	if _, due := l.Due(); due {
		t.Error("a second write is due while the first is under way")
	}
	l.Written(w)
	if !l.AttemptReserved() || !l.Reserved(IDBlock) || l.Reserved(IDBlock+1) {
		t.Errorf("after the write: %+v", l)
	}
	l.ReserveAttempt(2)
	w, due = l.Due()
	if !due || w.End == nil || w.End.Failure != "why" || l.EndRecorded() {
		t.Fatalf("due %t: %+v", due, w)
	}
	l.Written(w)
	if !l.EndRecorded() {
		t.Error("the end is durable and does not count as recorded")
	}
	if w, due = l.Due(); due {
		t.Errorf("after the end %+v is due", w)
	}
}

// The first completed checkpoint is recorded at once, later ones with what is due anyway: it is enough to know that there is one.
func TestLedger_Completed_IsWrittenOnce(t *testing.T) {
	l := NewLedger(&Record{Progress: Progress{Attempt: 1, Reserved: 300}})
	l.Completed(301)
	w, due := l.Due()
	if !due || w.Progress.Completed != 301 {
		t.Fatalf("due %t: %+v", due, w)
	}
	l.Written(w)
	l.Completed(302)
	if w, due := l.Due(); due {
		t.Errorf("due again: %+v", w)
	}
	l.ReserveAttempt(2)
	if w, _ := l.Due(); w.Progress.Completed != 302 {
		t.Errorf("with the next write: %+v", w)
	}
}

// A savepoint that stops the job counts when it is recorded, and is never taken back.
func TestLedger_Stop_IsWrittenAtOnce(t *testing.T) {
	l := NewLedger(&Record{Progress: Progress{Attempt: 1, Reserved: 300}})
	if !l.StopRecorded() {
		t.Error("a job that was not stopped waits for a record of it")
	}
	l.Stop("/save/savepoint-1")
	if l.StopRecorded() {
		t.Error("recorded before it was written")
	}
	w, due := l.Due()
	if !due || w.Progress.Stopped != "/save/savepoint-1" {
		t.Fatalf("due %t: %+v", due, w)
	}
	l.Written(w)
	if _, due := l.Due(); due || !l.StopRecorded() {
		t.Errorf("after the write due %t, recorded %t", due, l.StopRecorded())
	}
}

func TestLedger_PlanIsRecorded_BeforeProgressAndOnlyTheLatestCounts(t *testing.T) {
	var l Ledger
	l.ReserveAttempt(1)
	first, second := Plan{Parallelism: 2}, Plan{Parallelism: 3}
	l.Replan(first)
	w, due := l.Due()
	if !due || w.Plan == nil || w.Plan.Parallelism != 2 || l.PlanRecorded() {
		t.Fatalf("the first plan is not due: %+v", w)
	}
	l.Replan(second)
	l.Written(w)
	if l.PlanRecorded() {
		t.Fatal("the second plan counts as recorded with the first")
	}
	w, due = l.Due()
	if !due || w.Plan == nil || w.Plan.Parallelism != 3 {
		t.Fatalf("the second plan is not due: %+v", w)
	}
	l.Written(w)
	if w, due = l.Due(); !l.PlanRecorded() || !due || w.Plan != nil || w.Progress.Attempt != 1 {
		t.Fatalf("the progress is not due behind the plans: %+v", w)
	}
	l.Written(w)
	l.Replan(first)
	l.SetEnd(End{})
	if w, _ = l.Due(); w.End == nil {
		t.Errorf("the end is not first: %+v", w)
	}
	if l.Written(w); l.writing {
		t.Error("a write is out")
	}
	if w, due = l.Due(); due {
		t.Errorf("behind the end %+v is written", w)
	}
}
