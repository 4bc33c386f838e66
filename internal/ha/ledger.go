package ha

import (
	"github.com/weirstream/weir/internal/checkpoint"
)

// IDBlock is how many checkpoint ids are reserved by one write of a record.
const IDBlock = 100

// Ledger decides what has to be in a job's records, and what must wait until it is there. It is pure: its owner makes the write that is Due,
// one at a time, and says when it is durable.
type Ledger struct {
	durable, wanted Progress
	lastID          checkpoint.ID // the highest that may have been drawn
	plan            *Plan         // nil: none, or it is durable
	end             *End          // nil: the job has not ended
	ended           bool          // end is durable
	writing         bool
}

// NewLedger goes on from the record of an earlier job master; nil: the job is new.
func NewLedger(known *Record) Ledger {
	if known == nil {
		return Ledger{}
	}
	p := known.Progress
	return Ledger{durable: p, wanted: p, lastID: p.Reserved, end: known.End, ended: known.End != nil}
}

// FirstAttempt is the lowest number of an execution that no earlier job master can have used.
func (l *Ledger) FirstAttempt() int { return l.durable.Attempt + 1 }

// FirstID is the lowest checkpoint id that may be used.
func (l *Ledger) FirstID() checkpoint.ID { return l.lastID + 1 }

// Used notes that ids up to this one were used, by whomever.
func (l *Ledger) Used(id checkpoint.ID) { l.lastID = max(l.lastID, id) }

// ReserveAttempt has the number of an execution recorded. A job master that recovers the job starts above it, so no two tasks ever have the
// same attempt id.
func (l *Ledger) ReserveAttempt(n int) {
	l.wanted.Attempt = max(l.wanted.Attempt, n)
	l.wanted.Reserved = max(l.wanted.Reserved, l.lastID+IDBlock)
}

// AttemptReserved says that tasks with the number that was asked for may be deployed.
func (l *Ledger) AttemptReserved() bool { return l.durable.Attempt >= l.wanted.Attempt }

// Draw notes that the coordinator has drawn an id. Ids are reserved in blocks and well ahead, so that it is hardly ever waited for.
func (l *Ledger) Draw(id checkpoint.ID) {
	l.Used(id)
	if l.lastID+IDBlock/2 > l.durable.Reserved {
		l.wanted.Reserved = max(l.wanted.Reserved, l.lastID+IDBlock)
	}
}

// Reserved says that an id may be used where others can see it.
func (l *Ledger) Reserved(id checkpoint.ID) bool { return id <= l.durable.Reserved }

// Completed notes that the job has a checkpoint of its own: from now on it never starts without one.
func (l *Ledger) Completed(id checkpoint.ID) { l.wanted.Completed = max(l.wanted.Completed, id) }

// Stop has the savepoint recorded that the job is stopped with, by its directory: from then on it is what the job goes on from.
func (l *Ledger) Stop(dir string) { l.wanted.Stopped = dir }

// StopRecorded says that the savepoint is recorded that the job is stopped with.
func (l *Ledger) StopRecorded() bool { return l.durable.Stopped == l.wanted.Stopped }

// Replan has another plan of the job recorded.
func (l *Ledger) Replan(p Plan) { l.plan = &p }

// PlanRecorded says that the next job master would go on with the latest plan. Nothing of it may be deployed before.
func (l *Ledger) PlanRecorded() bool { return l.plan == nil }

// SetEnd has the end of the job recorded.
func (l *Ledger) SetEnd(e End) { l.end = &e }

// End is how the job has ended; nil: it has not.
func (l *Ledger) End() *End { return l.end }

// EndRecorded says that the job can never run again.
func (l *Ledger) EndRecorded() bool { return l.ended }

// Write is one write of a record: of the end if there is one, else of the plan if there is one, else of the progress.
type Write struct {
	Progress Progress
	Plan     *Plan
	End      *End
}

// Due gives the write that has to be made now; false: none. The next one is due when this one is Written.
func (l *Ledger) Due() (Write, bool) {
	d, w := l.durable, l.wanted
	out := Write{Progress: w}
	switch {
	case l.writing:
		return Write{}, false
	case l.end != nil && !l.ended:
		end := *l.end
		out.End = &end
	case l.end != nil: // nothing is of interest after it
		return Write{}, false
	case l.plan != nil:
		out.Plan = l.plan
	case w.Attempt > d.Attempt || w.Reserved > d.Reserved || d.Completed == 0 && w.Completed > 0 || d.Stopped != w.Stopped:
	default:
		return Write{}, false
	}
	l.writing = true
	return out, true
}

// Written: a write is durable.
func (l *Ledger) Written(w Write) {
	l.writing = false
	switch {
	case w.End != nil:
		l.ended = true
		return
	case w.Plan != nil:
		if l.plan == w.Plan { // no other one has been wanted since
			l.plan = nil
		}
		return
	}
	l.durable = w.Progress
}
