package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/cli/format"
	"github.com/weirstream/weir/internal/cli/view"
	"github.com/weirstream/weir/internal/gateway"
)

func (w *weir) jobCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "job ID", Short: "show a job and its tasks", Args: takes("ID"), ValidArgsFunction: w.completeJobID}
	cmd.AddCommand(w.jobCheckCommand())
	return w.query(cmd, askTimeout, func(ctx context.Context, jobs gateway.Jobs, args []string) error {
		s, err := find(ctx, jobs, args[0])
		if err != nil {
			return err
		}
		if w.json() {
			return writeJSON(w.process.Stdout, view.OfJob(s))
		}
		writeJob(w.process.Stdout, s, time.Now())
		return nil
	})
}

func writeJob(out io.Writer, s gateway.JobStatus, now time.Time) {
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	field := func(name, value string) {
		if value != "" {
			line(tw, "%s:\t%s", name, value)
		}
	}
	running, tasks := s.CountTasks()
	field("Job", string(s.ID))
	field("Name", s.Name)
	field("State", s.State.String())
	field("Detail", s.Detail)
	field("Backlog", s.Backlog)
	field("Degraded", s.Degraded)
	field("Submitted", fmt.Sprintf("%s (%s)", s.Submitted.Local().Format(time.DateTime), format.Age(now, s.Submitted)))
	field("Ran for", format.Duration(ranFor(s, now)))
	field("Tasks", fmt.Sprintf("%d of %d running", running, tasks))
	field("Restarts", strconv.Itoa(s.Restarts))
	field("Checkpoints", fmt.Sprintf("%d completed, %d failed, %d in progress", s.Completed, s.Failed, s.InProgress))
	if s.Last != nil {
		field("Latest", fmt.Sprintf("%s %d, %s, %s, %s", s.Last.Kind, s.Last.ID, format.Duration(s.Last.Duration), format.Bytes(s.Last.StateBytes), s.Last.Path))
	}
	if r := s.LastRestore; r != nil {
		field("Restored", fmt.Sprintf("%s, the latest from %s %d, %s", format.Counted(s.Restored, "time"), r.Kind, r.ID, format.Age(now, r.Time)))
	}
	field("Leader epoch", strconv.FormatUint(uint64(s.Epoch), 10))
	field("Fingerprint", s.Fingerprint)
	_ = tw.Flush() // as in line
	for _, v := range s.Vertices {
		line(out, "\n%s (parallelism %d)", v.Name, v.Parallelism)
		t := newTable("SUBTASK", "ATTEMPT", "STATE", "EXECUTOR", "RECORDS IN", "RECORDS OUT", "LATEST FAILURE")
		for _, task := range v.Tasks {
			t.add(strconv.Itoa(task.Attempt.Task.Subtask), strconv.Itoa(task.Attempt.Attempt), task.State.String(), string(task.Executor),
				format.Count(task.RecordsIn), format.Count(task.RecordsOut), task.Failure)
		}
		t.write(out)
	}
}
