package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
)

func (w *weir) checkpointShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ID [N]", Short: "show a checkpoint of a job, the latest completed one without N, with the part of each subtask",
		Args: takes("ID", "[N]"), ValidArgsFunction: w.completeJobID,
	}
	return w.query(cmd, askTimeout, func(ctx context.Context, jobs gateway.Jobs, args []string) error {
		c, subtasks, err := findCheckpoint(ctx, jobs, args)
		if err != nil {
			return err
		}
		if w.json() {
			return writeJSON(w.process.Stdout, checkpointDetailView{viewCheckpoint(c), viewEach(subtasks, viewSubtask)})
		}
		writeCheckpoint(w.process.Stdout, c, subtasks)
		return nil
	})
}

// findCheckpoint looks up what the arguments ID [N] name.
func findCheckpoint(ctx context.Context, jobs gateway.Jobs, args []string) (gateway.CheckpointStatus, []gateway.SubtaskCheckpoint, error) {
	s, err := find(ctx, jobs, args[0])
	if err != nil {
		return gateway.CheckpointStatus{}, nil, err
	}
	n, err := checkpointNumber(s, args[1:])
	if err != nil {
		return gateway.CheckpointStatus{}, nil, err
	}
	return jobs.Checkpoint(ctx, s.ID, n)
}

// checkpointNumber reads N; without it the latest completed checkpoint of the job is meant.
func checkpointNumber(s gateway.JobStatus, args []string) (checkpoint.ID, error) {
	if len(args) > 0 {
		n, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil || n < 1 {
			return 0, usagef("checkpoint %q is not a number from 1 up", args[0])
		}
		return checkpoint.ID(n), nil
	}
	if s.Last == nil {
		return 0, fmt.Errorf("job %s has no completed checkpoint (weir checkpoint list %s shows the others)", s.ID, s.ID)
	}
	return s.Last.ID, nil
}

func writeCheckpoint(out io.Writer, c gateway.CheckpointStatus, subtasks []gateway.SubtaskCheckpoint) {
	line(out, "%s %d is %s: triggered %s, took %s, %s, %d of %d tasks acknowledged", c.Kind, c.ID, c.State, c.Triggered.Local().Format(time.DateTime),
		formatDuration(c.Duration), formatBytes(c.StateBytes), c.Acknowledged, c.Tasks)
	if note := checkpointNote(c); note != "" {
		line(out, "note: %s", note)
	}
	if c.Path != "" && !c.Discarded {
		line(out, "path: %s", c.Path)
	}
	if split := phaseLine(phasesOf(c, subtasks)); split != "" {
		line(out, "phases of the last to acknowledge: %s", split)
	}
	t := newTable("SUBTASK", "ACKNOWLEDGED AFTER", "START DELAY", "ALIGNMENT", "SYNC", "ASYNC", "SIZE")
	for _, s := range subtasks {
		if !s.Acknowledged {
			t.add(s.Task.String(), "", "", "", "", "", "")
			continue
		}
		m := s.Metrics
		t.add(s.Task.String(), formatDuration(s.Latency), formatDuration(m.StartDelay), formatDuration(m.Alignment), formatDuration(m.Sync),
			formatDuration(m.Async), formatBytes(m.StateBytes))
	}
	t.write(out)
}
