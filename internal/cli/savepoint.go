package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

func (w *weir) savepointCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "savepoint ID", Short: "take a savepoint of a job and wait until it is completed", Args: takes("ID"), ValidArgsFunction: w.completeJobID,
	}
	cmd.AddCommand(w.savepointListCommand(), w.savepointDisposeCommand())
	dir := cmd.Flags().String("dir", "", "absolute path or URL of the `DIRECTORY` to put it in (default: the job master's --savepoint-dir)")
	format := formatFlag(cmd)
	return w.query(cmd, waitTimeout, func(ctx context.Context, jobs gateway.Jobs, args []string) error {
		f, err := parseFormat(*format)
		if err != nil {
			return err
		}
		s, err := find(ctx, jobs, args[0])
		if err != nil {
			return err
		}
		r, err := jobs.TriggerSavepoint(ctx, gateway.TriggerSavepoint{Job: s.ID, Directory: *dir, Format: f})
		if err != nil {
			return err
		}
		return w.writeTriggered("savepoint", s, r)
	})
}

// formatFlag is how the state in a savepoint is written.
func formatFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("format", job.FormatCanonical.String(), "`canonical`: every state backend reads it; native: the backend's own files, copied, which only it reads")
}

func parseFormat(name string) (job.SavepointFormat, error) {
	f, ok := job.ParseSavepointFormat(name)
	if !ok {
		return f, usagef("--format is %q; it can be canonical or native", name)
	}
	return f, nil
}
