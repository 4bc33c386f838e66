package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/connector/file"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/harness"
	"github.com/weirstream/weir/internal/harness/reference"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream"
	"github.com/weirstream/weir/stream/app"
)

// The test binary is a program of one's own when it is called as one: a task executor that has this job.
const programArgument = "taskexecutor"

func program() { app.Main(app.Job("pipelines", pipelines)) }

type row struct {
	Line string `csv:"line"`
}

// pipelines has no exchange, so that each subtask is a failover region.
func pipelines(j *stream.Job) error {
	lines := stream.From(j, "lines", file.Lines(j.Param("input"), file.Rate(j.IntParam("rate", 0))))
	rows := stream.Map(lines, "rows", func(line string) row { return row{line} })
	stream.To(rows, "out", file.ExactlyOnceCSV[row](j.Param("output"), file.WithoutHeader()))
	return nil
}

// TestKill9_IndependentPipelines_OnlyThoseOfTheExecutorRestartAndTheAnswerIsExact: F7. After each kill the tasks of the other executor are the attempts
// that they were, those of the killed one come back to it, and checkpoints go on.
func TestKill9_IndependentPipelines_OnlyThoseOfTheExecutorRestartAndTheAnswerIsExact(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	own := binaries
	own.TaskExecutor = []string{self, programArgument}
	dir := t.TempDir()
	const slots = 2
	c := startCluster(t, own, dir, 2, slots)
	input, output := filepath.Join(dir, "input"), filepath.Join(dir, "output")
	want := writeLines(t, input, 8, 7500)
	id, err := c.Jobs.Submit(t.Context(), gateway.Submission{
		JobName: "pipelines", Params: map[string]string{"input": input, "output": output, "rate": "1000"},
		Options: job.Options{Parallelism: 2 * slots, Checkpoint: job.CheckpointOptions{Interval: 200 * time.Millisecond}},
	})
	if err != nil {
		t.Fatal(err)
	}
	before := awaitStatus(t, c, id, "a checkpoint", func(s gateway.JobStatus) bool { return completed(s) > 0 })
	for n := range 4 {
		victim := job.ExecutorID(fmt.Sprintf("e%d", 1+n%2))
		if err := c.KillExecutor(string(victim)); err != nil {
			t.Fatal(err)
		}
		if err := c.StartExecutor(string(victim), slots); err != nil {
			t.Fatal(err)
		}
		restarted := awaitStatus(t, c, id, fmt.Sprintf("all tasks after kill %d", n+1), func(s gateway.JobStatus) bool {
			return s.Restarts > before.Restarts && slices.IndexFunc(tasksOf(s), func(t gateway.TaskStatus) bool { return t.State != job.TaskRunning }) < 0
		})
		for i, task := range tasksOf(restarted) {
			wanted := tasksOf(before)[i]
			if wanted.Executor == victim {
				wanted.Attempt.Attempt++
			}
			if task.Attempt != wanted.Attempt || task.Executor != wanted.Executor {
				t.Errorf("after kill %d of %s: %s runs on %s, want %s on %s", n+1, victim, task.Attempt, task.Executor, wanted.Attempt, wanted.Executor)
			}
		}
		before = awaitStatus(t, c, id, fmt.Sprintf("a checkpoint after kill %d", n+1), func(s gateway.JobStatus) bool { return completed(s) > completed(restarted) })
	}
	if last := await(t, c, id); last.State != job.Finished {
		t.Fatalf("job is %s: %s", last.State, last.Detail)
	}
	got, err := reference.OutputRows(output, "")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%d rows, want %d and the same", len(got), len(want))
	}
	audit(t, c)
}

// writeLines writes files of different lines, and returns these, sorted.
func writeLines(t *testing.T, dir string, files, lines int) (all []string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for f := range files {
		var text strings.Builder
		for n := range lines {
			line := fmt.Sprintf("file %d line %05d", f, n)
			all = append(all, line)
			text.WriteString(line + "\n")
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.txt", f)), []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(all)
	return all
}

func tasksOf(s gateway.JobStatus) (out []gateway.TaskStatus) {
	for _, v := range s.Vertices {
		out = append(out, v.Tasks...)
	}
	return out
}

func completed(s gateway.JobStatus) checkpoint.ID {
	if s.Last == nil {
		return 0
	}
	return s.Last.ID
}

var errSeen = errors.New("it is as it should be")

// awaitStatus watches the job until it is as it should be.
func awaitStatus(t *testing.T, c *harness.Cluster, id job.ID, what string, is func(gateway.JobStatus) bool) (last gateway.JobStatus) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	seen := false
	err := c.Jobs.Watch(ctx, id, func(s gateway.JobStatus, _ []gateway.JobEvent) error {
		if last, seen = s, is(s); seen {
			return errSeen
		}
		return nil
	})
	if !seen {
		t.Fatalf("%s has not come (%v); the job is %s: %s", what, err, last.State, last.Detail)
	}
	return last
}
