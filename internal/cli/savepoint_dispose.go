package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/inspect"
)

func (w *weir) savepointDisposeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "dispose PATH", Short: "delete a savepoint, or a checkpoint that a job has left behind", Args: takes("PATH"),
		Long: "Deletes the savepoint or checkpoint whose directory is at PATH, its metadata first. The job master does it, and refuses what a running job\n" +
			"uses; with --offline this process does it, without a look at jobs. A directory that holds anything else is left alone.",
	}
	yes := cmd.Flags().Bool("yes", false, "delete without asking; needed on a terminal")
	offline := cmd.Flags().Bool("offline", false, "delete without a job master: no running job may use it")
	dispose := w.query(&cobra.Command{}, waitTimeout, func(ctx context.Context, jobs gateway.Jobs, args []string) error {
		return jobs.DisposeSavepoint(ctx, args[0])
	})
	cmd.Flags().AddFlag(dispose.Flags().Lookup("timeout"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		path, err := absolutePath(args[0])
		if err != nil {
			return err
		}
		if w.process.Terminal && !*yes {
			return usagef("%s would be deleted for good: say so with --yes", path)
		}
		if *offline {
			err = inspect.Dispose(cmd.Context(), path)
		} else {
			dispose.SetContext(cmd.Context())
			err = dispose.RunE(dispose, []string{path})
		}
		var e *gateway.Error
		if errors.As(err, &e) && e.Reason == reasonUnreachable {
			e.Remedy += "; --offline deletes it without one"
		}
		if err != nil {
			return err
		}
		if w.json() {
			return writeJSON(w.process.Stdout, struct {
				Path string `json:"path"`
			}{path})
		}
		line(w.process.Stdout, "%s is deleted", path)
		return nil
	}
	return cmd
}

// absolutePath makes a plain path absolute: the job master has another working directory.
func absolutePath(path string) (string, error) {
	if strings.Contains(path, "://") {
		return path, nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("directory %s: %w", path, err)
	}
	return abs, nil
}
