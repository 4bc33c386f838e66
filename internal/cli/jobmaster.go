package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/node"
	"github.com/weirstream/weir/stream"
)

// JobMaster runs the command line of a job master process, which can run the master hooks of jobs, and returns the exit code.
func JobMaster(p Process, jobs []stream.Definition) int {
	cmd := jobMaster(p, p.Name, jobs)
	cmd.CompletionOptions.DisableDefaultCmd = true
	return p.execute(cmd)
}

func jobMaster(p Process, use string, jobs []stream.Definition) *cobra.Command {
	config := node.JobMasterConfig{Jobs: jobs}
	var logs logFlags
	cmd := &cobra.Command{
		Use: use, Short: "runs a job master: it takes jobs, gives their tasks to task executors, and coordinates checkpoints",
		Long: "Runs a job master until it is told to stop by SIGINT or SIGTERM; a second signal kills it.\n\n" +
			"Each flag can be set in the environment too: --checkpoint-dir as WEIR_CHECKPOINT_DIR.\n\n" +
			"Exit codes: 0 stopped, 1 failed, 2 used wrongly.",
		Version: node.Version(), Args: takes(),
	}
	f := cmd.Flags()
	f.StringVar(&config.Listen, "listen", ":6123", "`[HOST]:PORT` to serve gRPC on")
	f.StringVar(&config.CheckpointDir, "checkpoint-dir", "", "`DIRECTORY` for checkpoints, which every task executor must reach under the same name: a path, or s3://BUCKET/PREFIX (required)")
	f.StringVar(&config.SavepointDir, "savepoint-dir", "", "`DIRECTORY` for savepoints that are asked for without one: a path, or s3://BUCKET/PREFIX")
	f.StringVar(&config.DataDir, "data-dir", "", "`DIRECTORY` for the records of jobs: a job master that is started on it again goes on with them")
	f.BoolVar(&config.Fallback, "fallback", false, "a job of the data directory whose latest checkpoint cannot be read goes on from the next older one; without it the job waits")
	f.DurationVar(&config.HeartbeatInterval, "heartbeat-interval", 0, "time between heartbeats of a task executor (default 1s)")
	f.DurationVar(&config.HeartbeatTimeout, "heartbeat-timeout", 0, "time after which a silent task executor is lost (default 10s)")
	f.DurationVar(&config.SweepInterval, "sweep-interval", 10*time.Minute, "time between sweeps of the checkpoint directory for files that belong to no checkpoint; 0: never")
	f.DurationVar(&config.SweepAge, "sweep-age", time.Hour, "age that such a file must have before it is deleted; more than a checkpoint may take")
	f.IntVar(&config.CheckpointHistory, "checkpoint-history", job.DefaultCheckpointHistory, "checkpoints of each job that are remembered for weir checkpoint list and show")
	duringBacklog := cmd.Flags().Duration(intervalDuringBacklog, 0,
		"checkpoint interval of jobs that choose none while a source of theirs works off a backlog (default: their interval); 0: no periodic checkpoints meanwhile")
	addHTTPFlags(cmd, &config.HTTP, ":8081")
	logs.add(cmd, "info")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if config.CheckpointDir == "" {
			return usagef("--checkpoint-dir DIRECTORY is missing; give it, or set %s", envName("checkpoint-dir"))
		}
		if err := checkAddress("listen", config.Listen); err != nil {
			return err
		}
		if err := checkHTTP(config.HTTP); err != nil {
			return err
		}
		if n := config.CheckpointHistory; n < 1 || n > job.MaxCheckpointHistory {
			return usagef("--checkpoint-history is %d; it can be 1 to %d", n, job.MaxCheckpointHistory)
		}
		if *duringBacklog < 0 {
			return usagef("--%s is %s; it can be 0 or more", intervalDuringBacklog, *duringBacklog)
		}
		config.IntervalDuringBacklog = givenInterval(cmd, *duringBacklog)
		log, err := logs.logger(p.Stderr)
		if err != nil {
			return err
		}
		config.Log = log
		return node.RunJobMaster(cmd.Context(), config)
	}
	cmd.AddCommand(health(p, ":6123"))
	return cmd
}
