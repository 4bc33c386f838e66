package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/cli/view"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

func (w *weir) stopCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "stop ID", Short: "stop a job with a savepoint and wait for its end", Args: takes("ID"), ValidArgsFunction: w.completeJobID,
		Long: "Stops a job with a savepoint: its sources emit nothing behind it, its sinks commit all that is before it, and the job is FINISHED.\n" +
			"weir run NAME --from PATH goes on from there. If the savepoint does not complete, the job goes on.\n\n" +
			"With --drain the sources end instead, as if their input were over, and operators emit what they hold; that is for good: a job that\n" +
			"starts from such a savepoint ends at once.",
	}
	drain := cmd.Flags().Bool("drain", false, "end the input and have operators emit what they hold")
	dir, format := savepointDirFlag(cmd), formatFlag(cmd)
	return w.query(cmd, waitTimeout, func(ctx context.Context, jobs gateway.Jobs, args []string) error {
		f, err := parseFormat(*format)
		if err != nil {
			return err
		}
		mode := job.StopSuspend
		if *drain {
			mode = job.StopDrain
		}
		return w.stop(ctx, jobs, args[0], gateway.StopJob{Directory: *dir, Mode: mode, Format: f})
	})
}

func savepointDirFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("savepoint-dir", "", "absolute path or URL of the `DIRECTORY` to put the savepoint in (default: the job master's --savepoint-dir)")
}

// stop ends a job with a savepoint.
func (w *weir) stop(ctx context.Context, jobs gateway.Jobs, id string, r gateway.StopJob) error {
	s, err := findRunning(ctx, jobs, id)
	if err != nil {
		return err
	}
	r.Job = s.ID
	got, err := jobs.Stop(ctx, r)
	if err != nil {
		return err
	}
	if w.json() {
		return writeJSON(w.process.Stdout, view.Stopped{
			Job: string(s.ID), State: got.State.String(), ID: int64(got.Savepoint.ID), Path: got.Savepoint.Path, DurationMS: view.MS(got.Savepoint.Duration),
		})
	}
	line(w.process.Stdout, "job %s is %s, with savepoint %d: %s", s.ID, got.State, got.Savepoint.ID, got.Savepoint.Path)
	return nil
}
