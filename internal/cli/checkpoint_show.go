package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/cli/format"
	"github.com/weirstream/weir/internal/cli/view"
	"github.com/weirstream/weir/internal/gateway"
)

func (w *weir) checkpointShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ID [N]", Short: "show a checkpoint of a job, the latest completed one without N, with the part of each subtask",
		Args: takes("ID", "[N]"), ValidArgsFunction: w.completeJobID,
	}
	return w.query(cmd, askTimeout, func(ctx context.Context, jobs gateway.Jobs, args []string) error {
		d, err := findCheckpoint(ctx, jobs, args)
		if err != nil {
			return err
		}
		if w.json() {
			return writeJSON(w.process.Stdout, view.CheckpointDetail{
				Checkpoint: view.OfCheckpoint(d.CheckpointStatus), Vertices: view.Each(d.Vertices, view.OfVertexCheckpoint),
				Subtasks: view.Each(d.Subtasks, view.OfSubtask),
			})
		}
		writeCheckpoint(w.process.Stdout, d)
		return nil
	})
}

// findCheckpoint looks up what the arguments ID [N] name.
func findCheckpoint(ctx context.Context, jobs gateway.Jobs, args []string) (gateway.CheckpointDetail, error) {
	s, err := find(ctx, jobs, args[0])
	if err != nil {
		return gateway.CheckpointDetail{}, err
	}
	n, err := checkpointNumber(s, args[1:])
	if err != nil {
		return gateway.CheckpointDetail{}, err
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

func writeCheckpoint(out io.Writer, d gateway.CheckpointDetail) {
	c := d.CheckpointStatus
	line(out, "%s %d is %s: triggered %s, took %s, %s, %d of %d tasks acknowledged", c.Kind, c.ID, c.State, c.Triggered.Local().Format(time.DateTime),
		format.Duration(c.Duration), format.Bytes(c.StateBytes), c.Acknowledged, c.Tasks)
	if note := checkpointNote(c); note != "" {
		line(out, "note: %s", note)
	}
	if c.Path != "" && !c.Discarded {
		line(out, "path: %s", c.Path)
	}
	if split := phaseLine(phasesOf(c, d.Subtasks)); split != "" {
		line(out, "phases of the last to acknowledge: %s", split)
	}
	writeVertexCheckpoints(out, d.Vertices)
	t := newTable("SUBTASK", "ACKNOWLEDGED AFTER", "START DELAY", "ALIGNMENT", "SYNC", "ASYNC", "SIZE")
	for _, s := range d.Subtasks {
		if !answered(s) {
			t.add(s.Task.String(), "", "", "", "", "", "")
			continue
		}
		m, after := s.Metrics, format.Duration(s.Latency)
		if s.Late {
			after += ", too late"
		}
		t.add(s.Task.String(), after, format.Duration(m.StartDelay), format.Duration(m.Alignment), format.Duration(m.Sync),
			format.Duration(m.Async), format.Bytes(m.StateBytes))
	}
	t.write(out)
}

// writeVertexCheckpoints shows for each vertex the least, the average and the greatest of what its subtasks measured.
func writeVertexCheckpoints(out io.Writer, vertices []gateway.VertexCheckpoint) {
	if len(vertices) == 0 {
		return
	}
	line(out, "")
	t := newTable("VERTEX", "TASKS", "MIN, AVG, MAX OF ACKNOWLEDGED AFTER", "START DELAY", "ALIGNMENT", "SYNC", "ASYNC", "SIZE", "TOTAL SIZE")
	for _, v := range vertices {
		m := v.Metrics
		t.add(string(v.Vertex), fmt.Sprintf("%d/%d", v.Acknowledged, v.Tasks), minAvgMax(v.Latency, format.Duration), minAvgMax(m.StartDelay, format.Duration),
			minAvgMax(m.Alignment, format.Duration), minAvgMax(m.Sync, format.Duration), minAvgMax(m.Async, format.Duration), minAvgMax(m.StateBytes, format.Bytes),
			format.Bytes(m.StateBytes.Sum))
	}
	t.write(out)
	line(out, "")
}

func minAvgMax[T checkpoint.Quantity](s checkpoint.StatsSummary[T], format func(T) string) string {
	if s.Count == 0 {
		return ""
	}
	return format(s.Min) + ", " + format(s.Avg) + ", " + format(s.Max)
}
