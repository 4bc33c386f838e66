package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

func (w *weir) cancelCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "cancel ID", Short: "cancel a job and wait for its end", Args: takes("ID"), ValidArgsFunction: w.completeJobID,
	}
	cmd.Long = "Cancels a job. What it has not committed is lost, unless it starts again from one of its checkpoints.\n\n" +
		"With --with-savepoint the job goes on until a savepoint has completed and takes no checkpoint meanwhile, so a job that starts from the savepoint\n" +
		"goes on exactly where the output ends. To have the output of up to the savepoint committed before, use stop."
	with := cmd.Flags().Bool("with-savepoint", false, "take a savepoint first; if it does not complete, the job goes on")
	dir, format := savepointDirFlag(cmd), formatFlag(cmd)
	return w.query(cmd, waitTimeout, func(ctx context.Context, jobs gateway.Jobs, args []string) error {
		f, err := parseFormat(*format)
		if err != nil {
			return err
		}
		if *with {
			return w.stop(ctx, jobs, args[0], gateway.StopJob{Directory: *dir, Mode: job.StopCancel, Format: f})
		}
		if *dir != "" || cmd.Flags().Changed("format") {
			return usagef("--savepoint-dir and --format are for --with-savepoint")
		}
		s, err := findRunning(ctx, jobs, args[0])
		if err != nil {
			return err
		}
		if s.State, err = jobs.Cancel(ctx, s.ID); err != nil {
			return err
		}
		if w.json() {
			err = writeJSON(w.process.Stdout, struct {
				Job   job.ID `json:"job_id"`
				State string `json:"state"`
			}{s.ID, s.State.String()})
		} else {
			line(w.process.Stdout, "job %s is %s", s.ID, s.State)
		}
		if err == nil && s.State != job.Canceled {
			err = fmt.Errorf("job %s had ended before it was canceled", s.ID)
		}
		return err
	})
}
