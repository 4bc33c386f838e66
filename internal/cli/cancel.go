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
	return w.query(cmd, waitTimeout, func(ctx context.Context, jobs gateway.Jobs, args []string) error {
		s, err := find(ctx, jobs, args[0])
		if err != nil {
			return err
		}
		if s.State.Terminal() {
			return fmt.Errorf("job %s is %s already", s.ID, s.State)
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
