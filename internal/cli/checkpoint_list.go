package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/cli/format"
	"github.com/weirstream/weir/internal/cli/view"
	"github.com/weirstream/weir/internal/gateway"
)

func (w *weir) checkpointListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list ID", Short: "list the latest checkpoints and savepoints of a job, newest first", Args: takes("ID"), ValidArgsFunction: w.completeJobID,
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
			return writeJSON(w.process.Stdout, view.Each(h.Checkpoints, view.OfCheckpoint))
		}
		now := time.Now()
		t := newTable("ID", "KIND", "STATE", "TRIGGERED", "DURATION", "SIZE", "TASKS", "NOTE", "PATH")
		for _, c := range h.Checkpoints {
			t.add(strconv.FormatInt(int64(c.ID), 10), c.Kind.String(), c.State.String(), format.Age(now, c.Triggered), format.Duration(c.Duration),
				format.Bytes(c.StateBytes), fmt.Sprintf("%d/%d", c.Acknowledged, c.Tasks), checkpointNote(c), c.Path)
		}
		t.write(w.process.Stdout)
		writeSummaryLines(w.process.Stdout, h.Summary)
		return nil
	})
}

// checkpointNote says what else there is to say about a checkpoint.
func checkpointNote(c gateway.CheckpointStatus) string {
	var notes []string
	if c.Restored {
		notes = append(notes, "restored from")
	}
	if c.Discarded {
		notes = append(notes, "subsumed, deleted")
	}
	if c.Failure != "" {
		notes = append(notes, c.Failure)
	}
	return strings.Join(notes, ", ")
}
