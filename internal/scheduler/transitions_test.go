package scheduler

import (
	"testing"
	"time"

	"github.com/weirstream/weir/internal/job"
)

func TestTransitions_TerminalStatesHaveNone(t *testing.T) {
	for s := job.Created; s <= job.Restarting; s++ {
		if got := len(jobTransitions[s]) == 0; got != s.Terminal() {
			t.Errorf("job state %s: terminal %v, but no way out %v", s, s.Terminal(), got)
		}
	}
	for s := job.TaskCreated; s <= job.TaskFailed; s++ {
		if got := len(taskTransitions[s]) == 0; got != s.Terminal() {
			t.Errorf("task state %s: terminal %v, but no way out %v", s, s.Terminal(), got)
		}
	}
}

func TestTransitions_TasksOnlyGoForward(t *testing.T) {
	for from, tos := range taskTransitions {
		for _, to := range tos {
			if to <= from && from != job.TaskCanceling {
				t.Errorf("%s to %s goes back", from, to)
			}
		}
	}
}

func TestTransitions_EveryJobStateCanBeCanceled(t *testing.T) {
	for s := job.Created; s <= job.Restarting; s++ {
		want := !s.Terminal() && s != job.Cancelling
		c := New(Config{Job: "j", Graph: &job.Graph{Vertices: []job.Vertex{{ID: "a", Parallelism: 1}}}})
		c.state = s
		effects := c.Step(transcriptStart, CancelRequested{})
		first, _ := append(effects, nil)[0].(JobStatusChanged)
		if got := first.To == job.Cancelling; got != want {
			t.Errorf("in %s: cancel accepted %v, want %v: %v", s, got, want, effects)
		}
	}
}

func TestTransitions_OwnIllegalOnesAreAssertions(t *testing.T) {
	c := New(Config{Job: "j", Graph: &job.Graph{Vertices: []job.Vertex{{ID: "a", Parallelism: 1}}}})
	for name, illegal := range map[string]func(){
		"job":           func() { c.enter(job.Finished, job.Failure{}, "") },
		"task":          func() { c.tasks[0].move(job.TaskRunning) },
		"unknown event": func() { c.Step(time.Time{}, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			illegal()
		})
	}
}

// TestStep_EveryReportInEveryTaskState: an executor may send anything; only what the table allows changes the attempt.
func TestStep_EveryReportInEveryTaskState(t *testing.T) {
	for from := job.TaskDeploying; from <= job.TaskRunning; from++ {
		for to := job.TaskState(-1); to <= job.TaskFailed+1; to++ {
			c := New(Config{Job: "j", Graph: &job.Graph{Vertices: []job.Vertex{{ID: "a", Parallelism: 1}}}})
			c.Step(transcriptStart, Start{})
			c.Step(transcriptStart, SlotsAllocated{Slots: []job.Slot{{Executor: "e1"}}})
			id := c.tasks[0].attempt
			c.Step(transcriptStart, TaskStateChanged{Attempt: id, State: from})
			c.Step(transcriptStart, TaskStateChanged{Attempt: id, State: to})
			want, illegal := from, 1
			if legal(from, to) {
				want, illegal = to, 0
			} else if from == to {
				illegal = 0
			}
			if got := c.Executions()[0].State; got != want || c.Illegal() != illegal {
				t.Errorf("%s, reported %s: state %s (want %s), illegal %d (want %d)", from, to, got, want, c.Illegal(), illegal)
			}
		}
	}
}

func TestStep_GraphWithoutTasksFinishes(t *testing.T) {
	c := New(Config{Job: "j", Graph: &job.Graph{}})
	c.Step(transcriptStart, Start{})
	c.Step(transcriptStart, SlotsAllocated{})
	if c.State() != job.Finished {
		t.Errorf("the job is %s", c.State())
	}
}
