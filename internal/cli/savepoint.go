package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/gateway"
)

func (w *weir) savepointCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "savepoint ID", Short: "take a savepoint of a job and wait until it is completed", Args: takes("ID"), ValidArgsFunction: w.completeJobID,
	}
	cmd.AddCommand(w.savepointListCommand(), w.savepointDisposeCommand())
	dir := cmd.Flags().String("dir", "", "absolute path or URL of the `DIRECTORY` to put it in (default: the job master's --savepoint-dir)")
	return w.query(cmd, waitTimeout, func(ctx context.Context, jobs gateway.Jobs, args []string) error {
		s, err := find(ctx, jobs, args[0])
		if err != nil {
			return err
		}
		r, err := jobs.TriggerSavepoint(ctx, s.ID, 0, *dir)
		if err != nil {
			return err
		}
		return w.writeTriggered("savepoint", s, r)
	})
}
