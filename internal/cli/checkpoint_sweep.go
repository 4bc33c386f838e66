package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/cli/format"
	"github.com/weirstream/weir/internal/inspect"
	"github.com/weirstream/weir/internal/storage/schemes"
)

func (w *weir) checkpointSweepCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "sweep DIR", Short: "delete files in a checkpoint directory that belong to no checkpoint, without a cluster", Args: takes("DIR"),
		Long: "Deletes state files, unfinished files and empty directories in the checkpoint directory DIR that no checkpoint or savepoint refers to. A job\n" +
			"master does the same by itself. This command knows no jobs: --older-than must be more than a checkpoint of a running job may take.",
	}
	dryRun := cmd.Flags().Bool("dry-run", false, "show what would be deleted")
	age := cmd.Flags().Duration("older-than", time.Hour, "age that a file must have")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		files, err := schemes.OpenExisting(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		removed, err := inspect.Sweep(cmd.Context(), files, inspect.Sweeping{SafeAge: *age, Now: time.Now(), DryRun: *dryRun})
		if w.json() {
			if jsonErr := writeJSON(w.process.Stdout, sweptView{*dryRun, append([]string{}, removed...)}); jsonErr != nil {
				return jsonErr
			}
			return err
		}
		for _, name := range removed {
			line(w.process.Stdout, "%s", name)
		}
		switch {
		case len(removed) == 0 && err == nil:
			line(w.process.Stdout, "nothing to delete")
		case *dryRun:
			line(w.process.Stdout, "%s would be deleted", format.Counted(len(removed), "item"))
		default:
			line(w.process.Stdout, "%s deleted", format.Counted(len(removed), "item"))
		}
		return err
	}
	return cmd
}

// sweptView is what a sweep has deleted, or would.
type sweptView struct {
	DryRun  bool     `json:"dry_run"`
	Removed []string `json:"removed"`
}
