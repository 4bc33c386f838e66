package scheduler

import (
	"fmt"
	"strings"

	"github.com/weirstream/weir/internal/job"
)

// Each event and effect is one stable line: of the log, of the transcripts and of the dashboard's timeline.

func (Start) String() string { return "start" }

func (e SlotsAllocated) String() string {
	line := "slots"
	for _, s := range e.Slots {
		line += " " + string(s.Executor)
	}
	return line
}

func (e SlotsShort) String() string {
	return because(fmt.Sprintf("slots-short %d of %d", e.Available, e.Required), e.Message)
}

func (e TaskStateChanged) String() string {
	line := fmt.Sprintf("task %s %s", e.Attempt, e.State)
	if e.EndOfData {
		line += " end-of-data"
	}
	return because(line, failure(e.Failure))
}

func (e ExecutorLost) String() string {
	return because("executor "+string(e.Executor)+" lost", e.Message)
}

func (e DeployFailed) String() string {
	return because(listed("deploy-failed "+string(e.Executor), e.Attempts), failure(e.Failure))
}

func (e TasksUnknown) String() string {
	return listed("tasks-unknown", e.Attempts)
}

func (e JobFailed) String() string {
	line := "job-failed"
	if e.Attempt != (job.AttemptID{}) {
		line += " " + e.Attempt.String()
	}
	return because(line, failure(e.Failure))
}

func listed(line string, attempts []job.AttemptID) string {
	for _, a := range attempts {
		line += " " + a.String()
	}
	return line
}

func (CheckpointCompleted) String() string { return "checkpoint-completed" }
func (CancelRequested) String() string     { return "cancel-requested" }
func (e Replan) String() string {
	line := "replan"
	for _, v := range e.Graph.Vertices {
		line += fmt.Sprintf(" %s=%d", v.ID, v.Parallelism)
	}
	if e.Trial {
		line += " on trial"
	}
	return line
}
func (Tick) String() string { return "tick" }
func (e RequestSlots) String() string {
	line := fmt.Sprintf("request-slots %d", e.Count)
	for _, list := range []struct {
		word      string
		executors []job.ExecutorID
	}{{"keep", e.Keep}, {"prefer", e.Prefer}} {
		if len(list.executors) > 0 {
			line += fmt.Sprintf(" %s %s", list.word, list.executors)
		}
	}
	return line
}

func (ReleaseSlots) String() string  { return "release-slots" }
func (e Deploy) String() string      { return placed("deploy", e.Placements) }
func (e CancelTasks) String() string { return placed("cancel-tasks", e.Placements) }
func (e TasksRunning) String() string {
	if n := len(e.Finished); n > 0 {
		return fmt.Sprintf("all %d tasks are RUNNING, but %d that have finished", len(e.Placements), n)
	}
	return fmt.Sprintf("all %d tasks are RUNNING", len(e.Placements))
}
func (e TasksStopped) String() string {
	return because(listed("tasks-stopped", e.Attempts), failure(e.Failure))
}
func (e RegionsRestart) String() string {
	return because("region fails too ("+oneLine(e.Detail)+")", failure(e.Failure))
}
func (e TaskFinished) String() string { return fmt.Sprintf("task %s has finished", e.Attempt) }
func (e Replanned) String() string {
	return fmt.Sprintf("runs by another plan, of %s", plural(len(e.Graph.Tasks()), "task"))
}
func (e ReplanFailed) String() string {
	return because("the new plan does not run", failure(e.Failure))
}
func (EndOfDataReached) String() string { return "all tasks have reached their end of input" }
func (e DropExecutor) String() string   { return because("drop-executor "+string(e.Executor), e.Message) }

func (e JobStatusChanged) String() string {
	line := fmt.Sprintf("job %s -> %s", e.From, e.To)
	if e.Detail != "" {
		line += " (" + oneLine(e.Detail) + ")"
	}
	return because(line, failure(e.Failure))
}

func (e Waiting) String() string {
	if e.Detail == "" {
		return "waiting over"
	}
	return because("waiting", e.Detail)
}

func placed(verb string, placements []job.Placement) string {
	for _, p := range placements {
		verb += fmt.Sprintf(" %s@%s", p.Attempt, p.Executor)
	}
	return verb
}

func failure(f job.Failure) string {
	if f == (job.Failure{}) {
		return ""
	}
	return f.Class.String() + " failure, " + f.String()
}

func because(line, why string) string {
	if why == "" {
		return line
	}
	return line + ": " + oneLine(why)
}

func oneLine(s string) string {
	return strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(s)
}

// plural is "1 task", "2 tasks".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
