package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/gateway"
)

// completeTimeout is how long a shell waits for words to offer.
const completeTimeout = 2 * time.Second

// completeJobID offers the ids of jobs to the shell. When the job master cannot be asked it offers nothing.
func (w *weir) completeJobID(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var ids []string
	if len(args) == 0 {
		_ = w.complete(cmd, func(ctx context.Context, jobs gateway.Jobs) error {
			list, err := jobs.List(ctx)
			for _, s := range list {
				ids = append(ids, cobra.CompletionWithDesc(string(s.ID), s.Name+" "+s.State.String()))
			}
			return err
		})
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// completeJobName offers the names of the jobs that executors have.
func (w *weir) completeJobName(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if len(args) == 0 {
		_ = w.complete(cmd, func(ctx context.Context, jobs gateway.Jobs) error {
			executors, err := jobs.TaskExecutors(ctx)
			for _, e := range executors {
				names = append(names, e.Jobs...)
			}
			return err
		})
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

// complete asks the job master; the shell waits, so that it must answer soon.
func (w *weir) complete(cmd *cobra.Command, ask func(context.Context, gateway.Jobs) error) error {
	if err := w.process.applyEnv(cmd); err != nil { // the shell's completion does not go the way of a command
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	return w.connect(func(jobs gateway.Jobs) error { return ask(ctx, jobs) })
}
