package jobmaster

import (
	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/inbox"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/scheduler"
	"github.com/weirstream/weir/internal/slotpool"
)

// message is what a loop takes out of its inbox. apply runs on the loop; it feeds events to the cores and must not wait.
type message interface{ apply(l *jobLoop) }

// holder gives a loop the news of the slot pool.
type holder struct{ inbox *inbox.Inbox[message] }

// ExecutorLost implements slotpool.Holder.
func (h holder) ExecutorLost(s *slotpool.Session, text string) { h.inbox.Post(executorLost{s, text}) }

// Granted implements slotpool.Holder.
func (h holder) Granted(a slotpool.Allocation) { h.inbox.Post(granted{a}) }

// fed is a result that is an event already.
type fed struct{ event interface{ String() string } }

func (m fed) apply(l *jobLoop) { l.feed(m.event) }

// stored is the result of a storage call; the event may be nil.
type stored struct{ event coordinator.Event }

func (m stored) apply(l *jobLoop) {
	l.calling.open--
	if m.event != nil {
		l.feed(m.event)
	}
}

// granted is news of a request for slots.
type granted struct{ slotpool.Allocation }

func (m granted) apply(l *jobLoop) { l.granted(m.Allocation) }

// executorLost: a session has ended.
type executorLost struct {
	session *slotpool.Session
	message string
}

func (m executorLost) apply(l *jobLoop) {
	ev := scheduler.ExecutorLost{Executor: m.session.Registration.Executor, Message: m.message}
	if l.running.sessions[ev.Executor] != m.session {
		return // the job has nothing there, or knows already
	}
	delete(l.running.sessions, ev.Executor)
	if l.running.senders[ev.Executor] != nil {
		l.note(ev)
	}
	l.feed(ev)
}

// cancelRequest is Jobs.Cancel.
type cancelRequest struct{}

func (cancelRequest) apply(l *jobLoop) { l.feed(scheduler.CancelRequested{}) }

// triggerRequest is Jobs.TriggerCheckpoint, TriggerSavepoint or Stop.
type triggerRequest struct {
	kind      checkpoint.Kind
	directory string
	stop      job.StopMode
	format    job.SavepointFormat
	answer    chan<- coordinator.Reply
}

func (m triggerRequest) apply(l *jobLoop) {
	if m.stop != job.StopNone && l.running.rescaling.core.Active() {
		l.reply(func() {
			m.answer <- coordinator.Reply{Reason: checkpoint.NotAllRunning, Message: "the job is being rescaled; wait for the end of that"}
		})
		return
	}
	l.calls.last++
	l.calls.trigger[l.calls.last] = m.answer
	l.feed(coordinator.TriggerRequested{Request: l.calls.last, Kind: m.kind, Directory: m.directory, Stop: m.stop, Format: m.format})
}

// acknowledgement is JobMaster.AcknowledgeCheckpoint.
type acknowledgement struct {
	ack    gateway.Ack
	answer chan<- checkpoint.Verdict
}

func (m acknowledgement) apply(l *jobLoop) {
	l.calls.last++
	l.calls.acks[l.calls.last] = m.answer
	a := m.ack
	l.feed(coordinator.Ack{Request: l.calls.last, Epoch: a.Epoch, Attempt: a.Attempt, ID: a.ID, State: a.State, Metrics: a.Metrics})
}

// refusal is JobMaster.DeclineCheckpoint.
type refusal struct {
	decline gateway.Decline
	answer  chan<- bool // whether the attempt is known
}

func (m refusal) apply(l *jobLoop) {
	d := m.decline
	_, known := l.attempt(d.Attempt)
	if known {
		l.feed(coordinator.Decline{Epoch: d.Epoch, Attempt: d.Attempt, ID: d.ID, Reason: d.Reason, Message: d.Message})
	}
	l.reply(func() { m.answer <- known })
}

// taskUpdate is JobMaster.UpdateTaskState.
type taskUpdate struct {
	update gateway.TaskUpdate
	answer chan<- bool // whether the attempt is known
}

func (m taskUpdate) apply(l *jobLoop) {
	u := m.update
	_, known := l.attempt(u.Attempt)
	if known {
		if u.State == job.TaskFailed {
			l.log.Warn("task failed", zap.Stringer("attempt", u.Attempt), zap.Stringer("class", u.Failure.Class), zap.Stringer("failure", u.Failure))
		}
		l.feed(scheduler.TaskStateChanged{Attempt: u.Attempt, State: u.State, Failure: u.Failure, EndOfData: u.EndOfData})
		l.backlog(u.Attempt, u.State == job.TaskRunning && u.Backlog)
	}
	l.reply(func() { m.answer <- known })
}

// backlog takes the word of a task about its backlog. The coordinator hears of it when all tasks run; what they have said before then comes
// with that.
func (l *jobLoop) backlog(a job.AttemptID, behind bool) {
	if l.running.behind[a] == behind {
		return
	}
	l.running.behind[a] = behind
	if l.running.all {
		l.feed(coordinator.BacklogChanged{Attempt: a, Behind: behind})
	}
}

// taskReports are the tasks of one job in the heartbeat of an executor.
type taskReports struct {
	executor job.ExecutorID
	reports  []gateway.TaskReport
	answer   chan<- reportAnswer
}

type reportAnswer struct {
	unknown   []job.AttemptID
	completed checkpoint.ID
}

// apply makes up for updates that were lost on their way.
func (m taskReports) apply(l *jobLoop) {
	var out reportAnswer
	for _, r := range m.reports {
		e, present := l.attempt(r.Attempt)
		if !present || e.Executor != m.executor || e.State.Terminal() && e.State != job.TaskFinished {
			out.unknown = append(out.unknown, r.Attempt)
			continue
		}
		l.changed = true
		l.running.counts[r.Attempt] = recordCounts{r.RecordsIn, r.RecordsOut}
		if l.believes(r) {
			l.feed(scheduler.TaskStateChanged{Attempt: r.Attempt, State: r.State, EndOfData: r.EndOfData})
		}
		if r.NotifiedCheckpoint > 0 {
			l.feed(coordinator.NotifyConfirmed{Attempt: r.Attempt, ID: r.NotifiedCheckpoint})
		}
	}
	if own := l.coord.Retained(); len(own) > 0 {
		out.completed = own[len(own)-1].Metadata.ID
	}
	l.reply(func() { m.answer <- out })
}

// believes reports whether the state in a heartbeat is taken over. A failure is only taken from the second heartbeat that tells of it,
// because the update that is under way says also why.
func (l *jobLoop) believes(r gateway.TaskReport) bool {
	if r.State != job.TaskFailed {
		return true
	}
	seen := l.running.failing[r.Attempt]
	l.running.failing[r.Attempt] = true
	return seen
}
