package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/cli/format"
	"github.com/weirstream/weir/internal/cli/view"
	"github.com/weirstream/weir/internal/inspect"
	"github.com/weirstream/weir/internal/storage"
)

func (w *weir) checkpointVerifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "verify PATH", Short: "read all state of a stored checkpoint or savepoint and compare its checksums, without a cluster", Args: takes("PATH"),
		Long: "Reads every piece of state that the checkpoint or savepoint at PATH (its directory or its _metadata file, a path or a URL) refers\n" +
			"to, and prints a line for each that is missing or damaged. Exits with 0 when it is whole, 1 when it is damaged, 2 when nothing is at PATH.",
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return w.verify(cmd.Context(), args[0]) }
	return cmd
}

func (w *weir) verify(ctx context.Context, location string) error {
	s, err := inspect.Read(ctx, location)
	if errors.Is(err, storage.ErrNotFound) {
		return &exitError{exitUsage, err, false}
	}
	if err != nil {
		return err
	}
	v, err := s.Verify(ctx)
	if err != nil {
		return err
	}
	if w.json() {
		if err := writeJSON(w.process.Stdout, view.OfVerified(s, v)); err != nil {
			return err
		}
	} else {
		for _, d := range v.Damage {
			line(w.process.Stdout, "%s", d)
		}
	}
	md := s.Metadata
	if n := len(v.Damage); n > 0 {
		return &exitError{exitFailed, fmt.Errorf("%s %d of job %s in %s is damaged: %d of %s cannot be restored (start from another one)",
			md.Kind, md.ID, md.Job, s.Location, n, format.Counted(v.Pieces, "piece")), false}
	}
	if !w.json() {
		line(w.process.Stdout, "%s %d of job %s (%s) is whole: %s of state, %s", md.Kind, md.ID, md.Job, md.JobName, format.Counted(v.Pieces, "piece"), format.Bytes(v.Bytes))
	}
	return nil
}
