package taskexecutor

import (
	"context"
	"errors"
	"sync"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/plan"
	"github.com/weirstream/weir/internal/task"
	"github.com/weirstream/weir/stream"
)

// runningTask is a task in the table. It is what the task sees of the job master, too.
type runningTask struct {
	attempt    job.AttemptID
	session    *session
	deploy     gateway.DeployTasks
	deployment gateway.TaskDeployment
	program    *plan.Program
	vertex     *job.Vertex
	log        *zap.Logger
	mail       task.Mailbox
	gate       *exchange.Gate
	ctx        context.Context // of the attempt: a task in the table is a scope of its own
	stop       context.CancelCauseFunc
	ended      chan struct{}

	mu struct {
		sync.Mutex
		state     job.TaskState
		endOfData bool
		backlog   bool
		failure   job.Failure
		canceled  bool
		task      *task.Task // nil until it runs
	}
}

func newRunningTask(s *session, r gateway.DeployTasks, d gateway.TaskDeployment, p *plan.Program, v *job.Vertex) *runningTask {
	t := &runningTask{
		attempt: d.Attempt, session: s, deploy: r, deployment: d, program: p, vertex: v,
		log:  s.log.With(zap.String("job", string(r.Job)), zap.Stringer("attempt", d.Attempt)),
		mail: task.NewMailbox(), ended: make(chan struct{}),
	}
	t.ctx, t.stop = context.WithCancelCause(s.tasks)
	t.mu.state = job.TaskDeploying
	return t
}

// cancel reports whether this call is the one that ended the task.
func (t *runningTask) cancel(cause error) bool {
	t.mu.Lock()
	first := !t.mu.canceled
	t.mu.canceled = true
	t.mu.Unlock()
	if first {
		t.stop(cause)
	}
	return first
}

func (t *runningTask) setTask(running *task.Task) {
	t.mu.Lock()
	t.mu.task = running
	t.mu.Unlock()
}

func (t *runningTask) stateNow() job.TaskState {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.state
}

// report changes the state and queues it for the job master.
func (t *runningTask) report(state job.TaskState, failure job.Failure) {
	t.mu.Lock()
	t.mu.state, t.mu.failure = state, failure
	u := gateway.TaskUpdate{
		Epoch: t.session.epoch, Attempt: t.attempt, State: state, Failure: failure, EndOfData: t.mu.endOfData, Backlog: t.mu.backlog,
	}
	t.mu.Unlock()
	t.session.reports.add(t, u)
}

// inHeartbeat is what a heartbeat says of the task.
func (t *runningTask) inHeartbeat() gateway.TaskReport {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := gateway.TaskReport{Attempt: t.attempt, State: t.mu.state, EndOfData: t.mu.endOfData}
	if t.mu.task != nil {
		r.RecordsIn, r.RecordsOut = t.mu.task.Records()
		r.NotifiedCheckpoint = t.mu.task.Notified()
	}
	return r
}

// Running implements task.JobMaster.
func (t *runningTask) Running() { t.report(job.TaskRunning, job.Failure{}) }

// EndOfData implements task.JobMaster.
func (t *runningTask) EndOfData() {
	t.mu.Lock()
	t.mu.endOfData = true
	t.mu.Unlock()
	t.report(job.TaskRunning, job.Failure{})
}

// Backlog implements task.JobMaster.
func (t *runningTask) Backlog(behind bool) {
	t.mu.Lock()
	t.mu.backlog = behind
	running := t.mu.state == job.TaskRunning
	t.mu.Unlock()
	if running { // else it comes with the report that the task runs
		t.report(job.TaskRunning, job.Failure{})
	}
}

// Acknowledge implements task.JobMaster. It is called once for each snapshot, when that is durable.
func (t *runningTask) Acknowledge(ctx context.Context, id checkpoint.ID, state checkpoint.SubtaskState, m checkpoint.Metrics) (checkpoint.Verdict, error) {
	t.session.written.add(m.StateBytes)
	v, err := t.session.jobMaster.AcknowledgeCheckpoint(ctx, gateway.Ack{Epoch: t.session.epoch, Attempt: t.attempt, ID: id, State: state, Metrics: m})
	if gateway.CodeOf(err) == gateway.ResourceExhausted {
		return v, errors.Join(task.ErrAckTooLarge, err)
	}
	return v, err
}

// Decline implements task.JobMaster. It may be called from the task's goroutine, which must not wait for the network.
func (t *runningTask) Decline(_ context.Context, id checkpoint.ID, reason checkpoint.Reason, message string) {
	t.session.reports.addDecline(gateway.Decline{Epoch: t.session.epoch, Attempt: t.attempt, ID: id, Reason: reason, Message: message})
}

// outcome is the terminal state of a task that ended with err.
func outcome(ctx context.Context, err error) (job.TaskState, job.Failure) {
	cause := context.Cause(ctx)
	switch {
	case err == nil:
		return job.TaskFinished, job.Failure{}
	case errors.Is(cause, errCanceled) || errors.Is(cause, errUnknown) || errors.Is(cause, errSessionEnded):
		return job.TaskCanceled, job.Failure{}
	}
	f := job.Failure{Class: job.FailureInfrastructure, Message: err.Error()}
	var op *stream.OperatorError
	if errors.As(err, &op) {
		f.Class, f.Operator, f.Message = job.FailureTask, op.Operator, op.Err.Error()
	}
	if stream.IsStateFailure(err) { // the disk of this host, not the operator
		f.Class = job.FailureInfrastructure
	}
	if errors.Is(err, exchange.ErrRecord) {
		f.Class = job.FailureTask
	}
	if stream.IsPermanent(err) {
		f.Class = job.FailurePermanent
	}
	return job.TaskFailed, f
}

func (t *runningTask) logEnd(state job.TaskState, f job.Failure) {
	if state == job.TaskFailed {
		t.log.Warn("task failed", zap.Stringer("class", f.Class), zap.String("failure", f.String()))
		return
	}
	t.log.Info("task ended", zap.Stringer("state", state))
}
