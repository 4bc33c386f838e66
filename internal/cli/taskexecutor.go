package cli

import (
	"runtime"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/cli/format"
	"github.com/weirstream/weir/internal/node"
	"github.com/weirstream/weir/stream"
)

// TaskExecutor runs the command line of a task executor process that has jobs, and returns the exit code.
func TaskExecutor(p Process, jobs []stream.Definition) int {
	cmd := taskExecutor(p, p.Name, jobs)
	cmd.CompletionOptions.DisableDefaultCmd = true
	return p.execute(cmd)
}

func taskExecutor(p Process, use string, jobs []stream.Definition) *cobra.Command {
	config := node.TaskExecutorConfig{Jobs: jobs}
	var logs logFlags
	var stateMemory format.ByteSize
	cmd := &cobra.Command{
		Use: use, Short: "runs a task executor: it runs the tasks of jobs",
		Long: "Runs a task executor until it is told to stop by SIGINT or SIGTERM; a second signal kills it.\n\n" +
			"Each flag can be set in the environment too: --jobmaster as WEIR_JOBMASTER.\n\n" +
			"Exit codes: 0 stopped, 1 failed, 2 used wrongly.",
		Version: node.Version(), Args: takes(),
	}
	f := cmd.Flags()
	f.StringVar(&config.JobMaster, "jobmaster", "", "`HOST:PORT` of the job master (required)")
	f.StringVar(&config.Listen, "listen", ":6122", "`[HOST]:PORT` to serve gRPC on")
	f.StringVar(&config.Advertise, "advertise", "", "`HOST` that the others reach this process at (default: the one that reaches the job master)")
	f.StringVar(&config.ID, "id", "", "name of the executor, which stays the same over restarts (default: one that is kept in --data-dir, or without one the address)")
	f.BoolVar(&config.LocalRecovery, "local-recovery", true, "keep a copy of the state of the latest checkpoints in the data directory, and start tasks from it when they come back")
	f.IntVar(&config.Slots, "slots", 0, "slots: each takes a subtask of every operator of a job (default: one per CPU)")
	f.StringVar(&config.DataDir, "data-dir", "", "`DIR` on a disk of this host for what tasks keep there, of this executor alone (default: one below the user's cache directory, when it is needed)")
	f.Var(&stateMemory, "state-memory", "memory for the state of jobs that keep it on disk, all of them together (default: a quarter of the machine's, or of the limit of the container)")
	f.DurationVar(&config.RegistrationTimeout, "registration-timeout", 0, "time without a job master after which the process ends; 0: never")
	addHTTPFlags(cmd, &config.HTTP, ":9249")
	logs.add(cmd, "info")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if config.JobMaster == "" {
			return usagef("--jobmaster HOST:PORT is missing; give it, or set %s", envName("jobmaster"))
		}
		if err := checkAddress("jobmaster", config.JobMaster); err != nil {
			return err
		}
		if err := checkAddress("listen", config.Listen); err != nil {
			return err
		}
		if err := checkHTTP(config.HTTP); err != nil {
			return err
		}
		if config.Slots < 0 || config.Slots == 0 && cmd.Flags().Changed("slots") {
			return usagef("--slots is %d; it can be 1 or more", config.Slots)
		}
		if config.Slots == 0 {
			config.Slots = runtime.NumCPU()
		}
		if config.StateMemory = int64(stateMemory); config.StateMemory < node.MinStateMemory && cmd.Flags().Changed("state-memory") {
			return usagef("--state-memory is %s; it can be %dMiB or more", &stateMemory, node.MinStateMemory>>20)
		}
		log, err := logs.logger(p.Stderr)
		if err != nil {
			return err
		}
		config.Log = log
		return node.RunTaskExecutor(cmd.Context(), config)
	}
	cmd.AddCommand(health(p, ":6122"))
	return cmd
}
