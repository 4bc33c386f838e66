package jobmaster

import (
	"slices"

	"github.com/weirstream/weir/internal/board"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/scheduler"
)

// publish shows the state of the job.
func (l *jobLoop) publish() {
	checkpoints := l.withRecovered(l.coord.History())
	counts := l.coord.Counts()
	v := board.View{Checkpoints: checkpoints, Restored: l.running.restored, Summary: l.coord.Summary()}
	v.Status = gateway.JobStatus{
		ID: l.id, Name: l.name, State: l.shown(), Detail: l.detail(), Submitted: l.submitted, Ended: l.end.at,
		Restarts: l.sched.Restarts(), Vertices: l.vertices(), CheckpointCounts: gateway.CheckpointCounts(counts), LastRestore: l.lastRestore(),
		Epoch: l.cfg.Epoch, Fingerprint: l.graph.Fingerprint,
		Conditions: gateway.Conditions{Backlog: l.coord.Backlog(), Degraded: l.coord.Degraded(), StoppedWith: l.stoppedWith()},
	}
	for _, s := range slices.Backward(checkpoints) {
		if s.State == coordinator.StateCompleted {
			last := v.Describe(s, l.location)
			v.Status.Last = &last
			break
		}
	}
	l.board.Publish(v)
}

func (l *jobLoop) lastRestore() *gateway.RestoreStatus {
	r, ok := l.coord.LastRestore()
	if !ok {
		return nil
	}
	return &gateway.RestoreStatus{ID: r.ID, Kind: r.Kind, Path: l.location(r.Dir), Time: r.At}
}

// shown is the state that people see: nobody hears of an end that the next job master would not know.
func (l *jobLoop) shown() job.State {
	state := l.sched.State()
	if l.endRecorded() {
		return state
	}
	switch state {
	case job.Finished:
		return job.Running
	case job.Failed:
		return job.Failing
	case job.Canceled:
		return job.Cancelling
	default:
		return state
	}
}

// detail says what the job waits for, or what has failed.
func (l *jobLoop) detail() string {
	detail, failure := l.sched.Detail(), l.sched.Failure().String()
	switch state := l.sched.State(); {
	case state.Terminal() && !l.endRecorded():
		return "waits until its end is recorded in the data directory"
	case l.calling.recovery.open && !state.Terminal():
		return l.calling.recovery.detail()
	case l.running.deploying != nil && !l.attemptRecorded():
		return "waits until its attempt is recorded in the data directory"
	case l.running.deploying != nil && l.coord.Settled() && !l.calling.hooks.restored:
		return "waits for its master hooks: " + l.calling.hooks.set.String()
	case l.running.deploying != nil:
		return "waits for a checkpoint that is being written or whose fate is not known"
	case state == job.Restarting || state == job.Failing || state == job.Failed:
		if detail == "" || failure == "" {
			return detail + failure
		}
		return detail + "; " + failure
	}
	if with := l.stoppedWith(); with != "" && detail == "" {
		return "stopped with savepoint " + with
	}
	return detail
}

// stoppedWith is the path of the savepoint that the job was stopped or canceled with; empty: it was not.
func (l *jobLoop) stoppedWith() string {
	if s := l.coord.Stopped(); s != nil {
		return l.location(s.Dir)
	}
	return l.location(l.end.savepoint)
}

func (l *jobLoop) vertices() []gateway.VertexStatus {
	byTask := map[job.TaskID]scheduler.Execution{}
	for _, e := range l.sched.Executions() {
		byTask[e.Task] = e
	}
	out := make([]gateway.VertexStatus, len(l.graph.Vertices))
	for i, v := range l.graph.Vertices {
		out[i] = gateway.VertexStatus{ID: v.ID, Name: v.Name, Parallelism: v.Parallelism, Source: l.graph.IsSource(v.ID)}
		for n := range v.Parallelism {
			e := byTask[job.TaskID{Vertex: v.ID, Subtask: n}]
			id := job.AttemptID{Job: l.id, Task: e.Task, Attempt: e.Attempt}
			records := l.running.counts[id]
			out[i].Tasks = append(out[i].Tasks, gateway.TaskStatus{
				Attempt: id, State: e.State, Executor: e.Executor, Failure: e.LastFailure.String(), RecordsIn: records.in, RecordsOut: records.out,
			})
		}
	}
	return out
}

// location is a checkpoint's directory as people write it.
func (l *jobLoop) location(dir string) string {
	return l.cfg.Archive.Location(dir)
}
