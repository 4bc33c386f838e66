package scheduler

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/job"
)

func TestString_OneStableLineEach(t *testing.T) {
	id := job.AttemptID{Job: "j", Task: job.TaskID{Vertex: "map", Subtask: 1}, Attempt: 2}
	at := []job.Placement{{Attempt: id, Executor: "e1", Address: "h:1"}}
	f := job.Failure{Class: job.FailureTask, Operator: "map", Message: "boom\r\nat line 3"}
	for _, c := range []struct {
		value fmt.Stringer
		want  string
	}{
		{Start{}, `start`},
		{SlotsAllocated{Slots: []job.Slot{{Executor: "e1"}, {Executor: "e2"}}}, `slots e1 e2`},
		{SlotsShort{Required: 4, Available: 1, Message: "full"}, `slots-short 1 of 4: full`},
		{TaskStateChanged{Attempt: id, State: job.TaskRunning, EndOfData: true}, `task map[1]#2 RUNNING end-of-data`},
		{TaskStateChanged{Attempt: id, State: job.TaskFailed, Failure: f}, `task map[1]#2 FAILED: task failure, operator map: boom\r\nat line 3`},
		{ExecutorLost{Executor: "e1"}, `executor e1 lost`},
		{DeployFailed{Executor: "e1", Attempts: []job.AttemptID{id, id}, Failure: f}, `deploy-failed e1 map[1]#2 map[1]#2: task failure, operator map: boom\r\nat line 3`},
		{TasksUnknown{Attempts: []job.AttemptID{id, id}}, `tasks-unknown map[1]#2 map[1]#2`},
		{JobFailed{Failure: f}, `job-failed: task failure, operator map: boom\r\nat line 3`},
		{JobFailed{Failure: f, Attempt: id}, `job-failed map[1]#2: task failure, operator map: boom\r\nat line 3`},
		{CheckpointCompleted{}, `checkpoint-completed`},
		{CancelRequested{}, `cancel-requested`},
		{Tick{Random: 0.5}, `tick`},
		{RequestSlots{Count: 2}, `request-slots 2`},
		{RequestSlots{Count: 2, Keep: []job.ExecutorID{"e1"}, Prefer: []job.ExecutorID{"e1", "e2"}}, `request-slots 2 keep [e1] prefer [e1 e2]`},
		{ReleaseSlots{}, `release-slots`},
		{Deploy{Placements: at}, `deploy map[1]#2@e1`},
		{CancelTasks{Placements: at}, `cancel-tasks map[1]#2@e1`},
		{DropExecutor{Executor: "e1", Message: "hangs"}, `drop-executor e1: hangs`},
		{JobStatusChanged{From: job.Running, To: job.Restarting, Failure: f, Detail: "restart 1 in 1s"}, `job RUNNING -> RESTARTING (restart 1 in 1s): task failure, operator map: boom\r\nat line 3`},
		{TasksRunning{Placements: at}, `all 1 tasks are RUNNING`},
		{TasksRunning{Placements: at, Finished: []job.AttemptID{id}}, `all 1 tasks are RUNNING, but 1 that have finished`},
		{TasksStopped{}, `tasks-stopped`},
		{TasksStopped{Attempts: []job.AttemptID{id}, Failure: f}, `tasks-stopped map[1]#2: task failure, operator map: boom\r\nat line 3`},
		{RegionsRestart{Failure: f, Detail: "restart 1 in 1s: 1 task of 2"}, `region fails too (restart 1 in 1s: 1 task of 2): task failure, operator map: boom\r\nat line 3`},
		{EndOfDataReached{}, `all tasks have reached their end of input`},
		{Waiting{Detail: "2 slots"}, `waiting: 2 slots`},
		{Waiting{}, `waiting over`},
	} {
		got := c.value.String()
		if got != c.want || strings.ContainsAny(got, "\r\n") {
			t.Errorf("%T: got %q, want %q", c.value, got, c.want)
		}
	}
}
