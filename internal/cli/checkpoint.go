package cli

import "github.com/spf13/cobra"

func (w *weir) checkpointCommand() *cobra.Command {
	return group("checkpoint", "list, measure, show, trigger, inspect, verify and sweep checkpoints",
		w.checkpointListCommand(), w.checkpointStatsCommand(), w.checkpointShowCommand(), w.checkpointExplainCommand(), w.checkpointTriggerCommand(),
		w.checkpointInspectCommand(), w.checkpointVerifyCommand(), w.checkpointSweepCommand(),
	)
}
