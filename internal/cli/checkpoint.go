package cli

import "github.com/spf13/cobra"

func (w *weir) checkpointCommand() *cobra.Command {
	return group("checkpoint", "list, show, trigger, inspect and verify checkpoints",
		w.checkpointListCommand(), w.checkpointShowCommand(), w.checkpointExplainCommand(), w.checkpointTriggerCommand(),
		w.checkpointInspectCommand(), w.checkpointVerifyCommand(),
	)
}
