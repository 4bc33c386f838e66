package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/cli/format"
	"github.com/weirstream/weir/internal/cli/view"
	"github.com/weirstream/weir/internal/gateway"
)

func (w *weir) checkpointStatsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "stats ID", Short: "show how many checkpoints of a job have completed and failed, how long they take and how big they are",
		Args: takes("ID"), ValidArgsFunction: w.completeJobID,
	}
	return w.query(cmd, askTimeout, func(ctx context.Context, jobs gateway.Jobs, args []string) error {
		s, err := find(ctx, jobs, args[0])
		if err != nil {
			return err
		}
		h, err := jobs.Checkpoints(ctx, s.ID)
		if err != nil {
			return err
		}
		if w.json() {
			return writeJSON(w.process.Stdout, view.OfCheckpointStats(s, h))
		}
		writeCheckpointStats(w.process.Stdout, h, time.Now())
		return nil
	})
}

func writeCheckpointStats(out io.Writer, h gateway.CheckpointHistory, now time.Time) {
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line(tw, "Checkpoints:\t%d completed, %d failed, %d in progress", h.Completed, h.Failed, h.InProgress)
	latest := func(name string, c *gateway.CheckpointStatus) {
		if c != nil {
			text := fmt.Sprintf("%d, triggered %s, took %s, %s", c.ID, format.Age(now, c.Triggered), format.Duration(c.Duration), format.Bytes(c.StateBytes))
			if c.Failure != "" {
				text += ", " + c.Failure
			}
			line(tw, "%s:\t%s", name, text)
		}
	}
	latest("Latest completed", h.LatestCompleted())
	latest("Latest failed", h.LatestFailed())
	latest("Latest savepoint", h.LatestSavepoint())
	if r := h.LastRestore; r != nil {
		line(tw, "Restored:\t%s, the latest from %s %d, %s", format.Counted(h.Restored, "time"), r.Kind, r.ID, format.Age(now, r.Time))
	}
	_ = tw.Flush() // as in line
	if h.Summary.Duration.Count == 0 {
		return
	}
	line(out, "\nOf the latest %s:", format.Counted(h.Summary.Duration.Count, "completed checkpoint"))
	t := newTable("", "MIN", "AVG", "P50", "P90", "P95", "P99", "P99.9", "MAX")
	t.add(append([]string{"duration"}, summaryCells(h.Summary.Duration, format.Duration)...)...)
	t.add(append([]string{"longest alignment"}, summaryCells(h.Summary.Alignment, format.Duration)...)...)
	t.add(append([]string{"size"}, summaryCells(h.Summary.StateBytes, format.Bytes)...)...)
	t.write(out)
}

func summaryCells[T checkpoint.Quantity](s checkpoint.StatsSummary[T], format func(T) string) []string {
	return []string{format(s.Min), format(s.Avg), format(s.P50), format(s.P90), format(s.P95), format(s.P99), format(s.P999), format(s.Max)}
}

// writeSummaryLines says how long the latest completed checkpoints took and how big they are, below a list of them.
func writeSummaryLines(out io.Writer, s checkpoint.CompletedSummary) {
	if s.Duration.Count == 0 {
		return
	}
	line(out, "")
	line(out, "duration of %s: %s", format.Counted(s.Duration.Count, "completed checkpoint"), summaryText(s.Duration, format.Duration))
	line(out, "longest alignment: %s", summaryText(s.Alignment, format.Duration))
	line(out, "size: %s", summaryText(s.StateBytes, format.Bytes))
}

func summaryText[T checkpoint.Quantity](s checkpoint.StatsSummary[T], format func(T) string) string {
	names := []string{"min", "avg", "p50", "p90", "p95", "p99", "p99.9", "max"}
	parts := make([]string, len(names))
	for i, cell := range summaryCells(s, format) {
		parts[i] = names[i] + " " + cell
	}
	return strings.Join(parts, ", ")
}
