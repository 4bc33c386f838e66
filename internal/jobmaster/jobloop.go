package jobmaster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/board"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/ha"
	"github.com/weirstream/weir/internal/inbox"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/masterhook"
	"github.com/weirstream/weir/internal/rescale"
	"github.com/weirstream/weir/internal/scheduler"
	"github.com/weirstream/weir/internal/slotpool"
)

// spec is what a job was submitted as. Only the loop changes it, when the job is rescaled: its graph, and what its options say of parallelism.
type spec struct {
	id        job.ID
	order     int // of submission
	name      string
	params    map[string]string
	options   job.Options
	graph     *job.Graph
	submitted time.Time
	restored  *checkpoint.Completed // nil: an empty start
	recovered *ha.Record            // nil: it is new
	hooks     *masterhook.Set       // nil: not opened yet
}

// jobLoop runs one job. All fields but inbox, board and work belong to the goroutine in run.
type jobLoop struct {
	spec
	cfg      *Config
	registry *slotpool.Registry
	log      *zap.Logger
	inbox    *inbox.Inbox[message]
	board    *board.Board
	work     sync.WaitGroup // everything that the loop has started

	sched *scheduler.Core
	coord *coordinator.Core
	queue []fmt.Stringer // events for the cores that have not been stepped

	running execution
	calls   callers
	calling storageCalls
	end     ending
	changed bool // since the last publication
}

// execution is what the loop knows of the present execution of the job.
type execution struct {
	request   int                                  // number of the latest request for slots
	sessions  map[job.ExecutorID]*slotpool.Session // of the slots that were granted
	senders   map[job.ExecutorID]*sender           // to where attempts were placed
	deploying []job.Placement                      // waits until the coordinator has settled
	placed    map[job.AttemptID]job.ExecutorID     // present attempts
	counts    map[job.AttemptID]recordCounts
	restored  checkpoint.ID          // what it started from
	failing   map[job.AttemptID]bool // reported as FAILED by one heartbeat
	behind    map[job.AttemptID]bool // said that they work off a backlog
	all       bool                   // the coordinator knows that all tasks run
	rescaling rescaling
}

type recordCounts struct{ in, out int64 }

// storageCalls are those that run beside the loop.
type storageCalls struct {
	tokens   chan struct{} // one for each that runs
	open     int           // not answered
	ledger   ha.Ledger
	held     []coordinator.InitLocation // of checkpoints whose ids are not reserved
	stop     *stopWritten               // waits until it is recorded that the job is stopped with it; nil: none
	recovery recovering
	hooks    hookCalls
}

// ending is how a job ends.
type ending struct {
	at         time.Time // when it entered its terminal state
	dirRemoved bool      // or being removed
	savepoint  string    // directory of the one that it was canceled with; empty: none
}

// callers wait for answers of the coordinator.
type callers struct {
	last    coordinator.RequestID
	acks    map[coordinator.RequestID]chan<- checkpoint.Verdict
	trigger map[coordinator.RequestID]chan<- coordinator.Reply
	replies []func() // go out after the status has been published
}

func newJobLoop(cfg *Config, r *slotpool.Registry, s spec) *jobLoop {
	l := &jobLoop{
		spec: s, cfg: cfg, registry: r, log: cfg.Log.With(zap.String("job", string(s.id))),
		inbox: inbox.New[message](), board: board.New(),
	}
	l.recall()
	l.sched = scheduler.New(scheduler.Config{
		Job: s.id, Graph: s.graph, Restart: s.options.Restart, CancelTimeout: cfg.Rules.CancelTimeout, FirstAttempt: l.calling.ledger.FirstAttempt(),
	})
	l.coord = l.newCoordinator(s.restored, nil)
	l.calling.tokens = make(chan struct{}, maxStorageCalls)
	l.running = execution{
		sessions: map[job.ExecutorID]*slotpool.Session{}, senders: map[job.ExecutorID]*sender{}, placed: map[job.AttemptID]job.ExecutorID{},
		counts: map[job.AttemptID]recordCounts{}, behind: map[job.AttemptID]bool{}, failing: map[job.AttemptID]bool{},
		rescaling: rescaling{answers: map[int]chan<- rescale.Answer{}},
	}
	l.calling.hooks = hookCalls{set: s.hooks, stops: map[int]context.CancelFunc{}}
	l.calls.acks = map[coordinator.RequestID]chan<- checkpoint.Verdict{}
	l.calls.trigger = map[coordinator.RequestID]chan<- coordinator.Reply{}
	l.publish()
	return l
}

// run drives the job until it has ended and all its deletions are done, or until ctx ends. It returns when all that it started is gone.
func (l *jobLoop) run(ctx context.Context) {
	l.registry.Attach(l.id, holder{l.inbox})
	l.begin(ctx)
	l.settle(ctx)
	l.inbox.Begin()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		l.settle(ctx)
		l.answer()
		l.cleanUp(ctx)
		if l.over() {
			l.finish(ctx)
			return
		}
		l.arm(timer)
		stop := ctx.Done()
		if l.sched.State().Terminal() && l.endRecorded() {
			stop = nil // its deletions come to an end by themselves
		}
		select {
		case <-l.inbox.Signal():
			for _, m := range l.inbox.Take() {
				m.apply(l)
				l.settle(ctx)
			}
		case <-timer.C:
			l.tick(time.Now())
		case <-stop:
			l.finish(ctx)
			return
		}
	}
}

// over reports that nothing remains to be done for the job: it has ended, and so has every storage call, the last of which takes the job's
// directory away.
func (l *jobLoop) over() bool { return l.end.dirRemoved && l.calling.open == 0 }

// cleanUp removes the job's directory once everything that was in it is decided. Those who wait for the end of the job wait for its
// deletions too, but not for metadata that is still being written: that can last, and nobody can stop it.
func (l *jobLoop) cleanUp(ctx context.Context) {
	if !l.sched.State().Terminal() || !l.endRecorded() {
		return
	}
	l.endHooks(ctx)
	if l.calling.open == 0 && !l.end.dirRemoved {
		l.end.dirRemoved = true
		l.removeJobDir(ctx)
	}
	if l.over() || !l.coord.Settled() {
		l.answer()
		l.board.End()
	}
}

// finish ends the loop: first what it started, then those who wait for it. Messages that came last are not looked at; their senders see that
// the inbox has ended.
func (l *jobLoop) finish(ctx context.Context) {
	l.registry.Detach(l.id)
	l.stopSenders()
	l.calling.recovery.end()
	l.work.Wait()
	if set := l.calling.hooks.set; !set.Empty() {
		if err := set.Wait(); err != nil {
			l.log.Error(err.Error())
		}
	}
	l.publish()
	l.board.End()
	l.inbox.End()
	if ctx.Err() != nil && !l.sched.State().Terminal() {
		l.log.Info("job suspended", zap.String("reason", "the job master is shutting down"))
	}
}

// feed queues an event of one of the cores.
func (l *jobLoop) feed(ev fmt.Stringer) { l.queue = append(l.queue, ev) }

// settle steps the cores until no event is left. Effects may feed further events; they are stepped in order.
func (l *jobLoop) settle(ctx context.Context) {
	for {
		l.record(ctx)
		if len(l.queue) == 0 {
			l.restoreHooks(ctx)
			l.deploy()
		}
		if len(l.queue) == 0 {
			return
		}
		ev := l.queue[0]
		l.queue = l.queue[1:]
		l.changed = true
		l.log.Debug("event", zap.Stringer("event", ev))
		switch ev := ev.(type) {
		case scheduler.Event:
			for _, e := range l.sched.Step(time.Now(), ev) {
				l.schedule(ctx, e)
			}
		case rescale.Event:
			for _, e := range l.running.rescaling.core.Step(time.Now(), ev) {
				l.rescale(ctx, e)
			}
		case coordinator.Event:
			for _, e := range l.coord.Step(time.Now(), ev) {
				l.coordinate(ctx, e)
			}
		default:
			panic(fmt.Sprintf("jobmaster: %T is an event of no core", ev))
		}
	}
}

// answer publishes what has changed and then tells those who waited for it, so that what they ask next agrees with what they were told.
func (l *jobLoop) answer() {
	if l.changed {
		l.publish()
		l.changed = false
	}
	for _, reply := range l.calls.replies {
		reply()
	}
	l.calls.replies = nil
}

func (l *jobLoop) reply(f func()) { l.calls.replies = append(l.calls.replies, f) }

func (l *jobLoop) tick(now time.Time) {
	if at, ok := l.sched.Deadline(); ok && !now.Before(at) {
		l.feed(scheduler.Tick{Random: l.cfg.Random()})
	}
	if at, ok := l.coord.Deadline(); ok && !now.Before(at) {
		l.feed(coordinator.Tick{})
	}
	if at, ok := l.running.rescaling.core.Deadline(); ok && !now.Before(at) {
		l.feed(rescale.Tick{})
	}
}

// arm sets the one timer to the earliest deadline of the cores.
func (l *jobLoop) arm(timer *time.Timer) {
	timer.Stop()
	var next time.Time
	for _, deadline := range []func() (time.Time, bool){l.sched.Deadline, l.coord.Deadline, l.running.rescaling.core.Deadline} {
		if at, ok := deadline(); ok && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if !next.IsZero() {
		timer.Reset(max(time.Until(next), 0))
	}
}

// attempt finds the present attempt of a task; false: id is not it.
func (l *jobLoop) attempt(id job.AttemptID) (scheduler.Execution, bool) {
	if id.Job != l.id {
		return scheduler.Execution{}, false
	}
	for _, e := range l.sched.Executions() {
		if e.Task == id.Task {
			return e, e.Attempt == id.Attempt
		}
	}
	return scheduler.Execution{}, false
}

// note writes a line into the log and the timeline.
func (l *jobLoop) note(e fmt.Stringer, fields ...zap.Field) {
	l.log.Info(e.String(), fields...)
	l.board.Note(gateway.JobEvent{Time: time.Now(), Text: e.String()})
}
