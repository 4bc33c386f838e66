package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/node"
	"github.com/weirstream/weir/stream"
)

func (w *weir) localCommand() *cobra.Command {
	var s submission
	var logs logFlags
	cmd := &cobra.Command{
		Use: "local JOB", Short: "run a job in this process, without a cluster", Args: takes("JOB"), ValidArgs: w.names(),
		Long: "Runs a job of this binary with a job master and a task executor in this process. The first Ctrl-C cancels the job, a second one\n" +
			"ends the process. Exits as run does.\n\nJobs: " + strings.Join(w.names(), ", "),
	}
	s.add(cmd)
	logs.add(cmd, "error")
	dir := cmd.Flags().String("checkpoint-dir", "", "`DIRECTORY` for checkpoints (default: one that is deleted at the end)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !slices.ContainsFunc(w.jobs, func(d stream.Definition) bool { return d.Name == args[0] }) {
			return w.unknownJob(args[0])
		}
		request, err := s.read(cmd, args[0])
		if err != nil {
			return err
		}
		left := "was stopped where it was (run it again with --from and the path of a checkpoint below " + *dir + ")"
		if *dir == "" {
			left = "was stopped where it was; its checkpoints are deleted (--checkpoint-dir keeps them)"
			temp, err := os.MkdirTemp("", "weir-local-")
			if err != nil {
				return fmt.Errorf("directory for checkpoints: %w (choose one with --checkpoint-dir)", err)
			}
			defer func() { _ = os.RemoveAll(temp) }() // what is left is in the directory for what may be deleted
			*dir = temp
		}
		log, err := logs.logger(w.process.Stderr)
		if err != nil {
			return err
		}
		config := node.LocalConfig{
			CheckpointDir: *dir, Slots: max(job.DefaultMaxParallelism, request.Options.Parallelism), Jobs: w.jobs, Log: log,
		}
		interrupted := cmd.Context()
		return node.RunLocal(context.WithoutCancel(interrupted), config, func(ctx context.Context, jobs gateway.Jobs) error {
			id, err := jobs.Submit(ctx, request)
			if err != nil {
				return err
			}
			return w.follow(interrupted, jobs, id, left)
		})
	}
	return cmd
}
