package coordinator_test

import (
	"fmt"

	"github.com/weirstream/weir/internal/checkpoint"
	. "github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/job"
)

// What the loop of a world does about the effects of a checkpoint's life.

// hooked is the graph of a seed: with a master hook in every second one.
func hooked(seed uint64, g *job.Graph) *job.Graph {
	if seed%2 == 1 {
		g.MasterHooks = []string{"lease"}
	}
	return g
}

// callHooks has the hook answer, in the trigger phase of a checkpoint whose directory is ready.
func (w *world) callHooks(e CallHooks) {
	if w.triggering != e.ID || w.ended[e.ID] != "" {
		w.fail("hooks are called for %d, which is not in its trigger phase", e.ID)
	}
	answer := HooksCalled{ID: e.ID, Err: w.maybe("lease lost")}
	if answer.Err == "" {
		answer.States = []checkpoint.MasterState{{Hook: "lease", State: fmt.Append(nil, e.ID)}}
		w.hooks[e.ID] = true
	}
	w.inbox = append(w.inbox, answer)
}

func (w *world) begin(e InitLocation) {
	if w.attempt == 0 {
		w.fail("checkpoint %d triggered while no task runs", e.ID)
	}
	if w.stops.completed != 0 {
		w.fail("checkpoint %d triggered after %d has stopped the job", e.ID, w.stops.completed)
	}
	if e.ID <= w.lastBegun {
		w.fail("I2: id %d after %d", e.ID, w.lastBegun)
	}
	w.lastBegun, w.begun[e.ID], w.kinds[e.ID] = e.ID, true, e.Kind
	w.kept[e.ID] = map[job.AttemptID]bool{}
	limit := w.options.MaxConcurrent
	if e.Kind == checkpoint.Savepoint {
		limit = job.MaxConcurrentCheckpoints
	}
	if open := len(w.begun) - len(w.ended); open > limit {
		w.fail("%s %d makes %d pending ones, %d may be", e.Kind, e.ID, open, limit)
	}
	if p := w.triggering; p != 0 && w.ended[p] == "" {
		w.fail("checkpoint %d begins in the trigger phase of %d", e.ID, p)
	}
	w.triggering = e.ID
	w.inbox = append(w.inbox, LocationReady{ID: e.ID, Dir: fmt.Sprintf("/cp/chk-%d", e.ID), Err: w.maybe("disk full")})
}

// trigger has every task of the running execution answer: with an ack, rarely otherwise.
func (w *world) trigger(e SendTrigger) {
	if w.triggering == e.ID {
		w.triggering = 0
	}
	w.suspend(e)
	if w.ended[e.ID] != "" {
		w.fail("barrier for %d, which is over", e.ID)
	}
	for _, task := range w.tasks() {
		w.request++
		fate := w.rng.IntN(40)
		if w.healed {
			fate = 39
		}
		switch fate {
		case 0:
			w.inbox = append(w.inbox, Decline{Epoch: 1, Attempt: task.Attempt, ID: e.ID, Reason: checkpoint.AsyncException})
		case 1:
			w.inbox = append(w.inbox, TriggerFailed{ID: e.ID, Attempt: task.Attempt, Err: "unreachable"})
		default:
			w.inbox = append(w.inbox, Ack{
				Request: w.request, Epoch: 1, Attempt: task.Attempt, ID: e.ID,
				State: checkpoint.SubtaskState{Operators: []checkpoint.OperatorState{{Operator: task.Attempt.String(), Keyed: w.upload(e, task.Attempt)}}},
			})
		}
	}
}

// verdict checks that no executor is told to delete what a checkpoint refers to or may come to refer to.
func (w *world) verdict(e AckReply) {
	a := w.acks[e.Request]
	w.answered(a, e.Verdict)
	switch e.Verdict {
	case checkpoint.Kept:
		if w.kept[a.ID][a.Attempt] {
			w.fail("%s of %d was kept twice", a.Attempt, a.ID)
		}
		w.kept[a.ID][a.Attempt] = true
	case checkpoint.TooLate, checkpoint.Unknown:
		if w.kept[a.ID][a.Attempt] && (w.ended[a.ID] != "aborted" || w.doubtful[a.ID] && w.durable[a.ID]) {
			w.fail("%s is told to delete its part of %d, which is not aborted", a.Attempt, a.ID)
		}
	}
}

// write checks that metadata refers to acknowledged state of one execution, all of it and nothing else.
func (w *world) write(e WriteMetadata) {
	w.writing[e.ID] = true
	w.shared.referred[e.ID] = e.Metadata.SharedFiles()
	n := 0
	for _, v := range e.Metadata.Vertices {
		for i, sub := range v.Subtasks {
			n++
			if sub.Subtask != i {
				w.fail("metadata of %d: subtask %d of %s at place %d", e.ID, sub.Subtask, v.Vertex, i)
			}
			task := job.TaskID{Vertex: v.Vertex, Subtask: i}
			a := job.AttemptID{Job: testJob, Task: task, Attempt: w.regions.attempts[task]}
			if !w.kept[e.ID][a] || sub.Operators[0].Operator != a.String() {
				w.fail("metadata of %d refers to state of %s that was not acknowledged", e.ID, a)
			}
		}
	}
	if got := e.Metadata.MasterState("lease"); w.hooks[e.ID] != (string(got) == fmt.Sprint(e.ID)) {
		w.fail("metadata of %d holds %q of the master hook", e.ID, got)
	}
	if n != len(w.regions.graph.Tasks()) {
		w.fail("metadata of %d has %d subtasks", e.ID, n)
	}
	answer := MetadataWritten{ID: e.ID, Err: w.maybe("connection reset")}
	if answer.Err != "" {
		answer.Outcome = []WriteOutcome{NotWritten, Uncertain}[w.rng.IntN(2)]
	}
	w.inbox = append(w.inbox, answer)
}

func (w *world) notify(e SendNotifyComplete) {
	if !w.durable[e.ID] || w.ended[e.ID] != "completed" || w.kinds[e.ID] != checkpoint.Checkpoint && e.ID != w.stops.completed {
		w.fail("I7: completion of %d notified, which is not a durable completed checkpoint", e.ID)
	}
	for _, a := range e.Attempts {
		if !w.regions.runs(a) {
			w.fail("%s notified, which does not run", a)
		}
		w.inbox = append(w.inbox, NotifyConfirmed{Attempt: a, ID: e.ID})
	}
}
