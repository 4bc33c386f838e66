package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/cli/format"
	"github.com/weirstream/weir/internal/cli/view"
	"github.com/weirstream/weir/internal/gateway"
)

func (w *weir) checkpointTriggerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "trigger ID", Short: "take a checkpoint of a job now and wait until it is completed", Args: takes("ID"), ValidArgsFunction: w.completeJobID,
	}
	return w.query(cmd, waitTimeout, func(ctx context.Context, jobs gateway.Jobs, args []string) error {
		s, err := find(ctx, jobs, args[0])
		if err != nil {
			return err
		}
		r, err := jobs.TriggerCheckpoint(ctx, s.ID, 0)
		if err != nil {
			return err
		}
		return w.writeTriggered("checkpoint", s, r)
	})
}

func (w *weir) writeTriggered(kind string, s gateway.JobStatus, r gateway.CheckpointResult) error {
	if w.json() {
		return writeJSON(w.process.Stdout, view.Triggered{Job: string(s.ID), ID: int64(r.ID), Path: r.Path, DurationMS: view.MS(r.Duration)})
	}
	line(w.process.Stdout, "%s %d of job %s completed in %s: %s", kind, r.ID, s.ID, format.Duration(r.Duration), r.Path)
	return nil
}
