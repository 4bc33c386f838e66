package sim

import (
	"testing"
	"time"

	"github.com/weirstream/weir/internal/job"
)

// bounded is a job whose input ends, without faults and with no periodic checkpoint before its end unless asked for.
func bounded(seed uint64) Config {
	return Config{
		Seed: seed, FaultsFor: 10 * time.Second, Bounded: true,
		Checkpoint: job.CheckpointOptions{Interval: -1, Timeout: 5 * time.Second, Retained: 1, TolerableFailures: 10},
		Restart:    job.RestartOptions{InitialDelay: 50 * time.Millisecond, MaxDelay: 2 * time.Second, Attempts: 50},
	}
}

// TestFault_B18_FinalCheckpointWithoutPeriodicOnes: without periodic checkpoints there is one at the end of the input, and only one; after a
// failover the ends are reached anew, and nothing of the execution before makes it come early or twice.
func TestFault_B18_FinalCheckpointWithoutPeriodicOnes(t *testing.T) {
	for seed := range uint64(30) {
		if r := play(t, bounded(seed), "-run "+t.Name()); r.State != job.Finished || r.Completed != 1 || r.Restarts != 0 {
			t.Errorf("seed %d: %s after %d checkpoints and %d restarts, want FINISHED after one", seed, r.State, r.Completed, r.Restarts)
		}
		cfg := bounded(seed)
		cfg.Faults.TaskError = 3 * time.Second
		if r := play(t, cfg, "-run "+t.Name()); r.State != job.Finished {
			t.Errorf("seed %d with failing tasks: %s, want FINISHED", seed, r.State)
		}
	}
}

// TestFault_B97_KilledBehindTheFinalCheckpoint: the final checkpoint is durable, and every process dies before, while or after the tasks
// commit it. The job ends all the same, and nothing is there twice: the run compares the output with the model's.
func TestFault_B97_KilledBehindTheFinalCheckpoint(t *testing.T) {
	restarts := 0
	for seed := range uint64(60) {
		cfg := bounded(seed)
		cfg.Faults.KillBehindEnd = true
		r := play(t, cfg, "-run "+t.Name())
		if r.State != job.Finished {
			t.Errorf("seed %d: %s, want FINISHED", seed, r.State)
		}
		restarts += r.Restarts + r.Leaders - 1 // the next job master starts the tasks anew
	}
	if restarts < 30 {
		t.Errorf("%d restarts in 60 runs: the processes died when all was over", restarts)
	}
}

// TestFault_B102_KilledBehindTheStop: the savepoint that stops the job is durable, and every process dies before, while or after the tasks commit it. The
// job restarts from it and from nothing else, and ends; the one that goes on from it and the first have together exactly the output of the model.
func TestFault_B102_KilledBehindTheStop(t *testing.T) {
	killed, stopped := 0, 0
	for seed := range uint64(60) {
		cfg := bounded(seed)
		cfg.Checkpoint.Interval = time.Second
		cfg.Stop, cfg.Faults.KillBehindEnd = 2*time.Second, true
		r := play(t, cfg, "-run "+t.Name())
		if r.State != job.Finished && r.State != job.Canceled {
			t.Errorf("seed %d: %s, want that it was stopped or FINISHED", seed, r.State)
		}
		killed += r.Faults["kill"]
		stopped += r.Faults["job stopped, suspend"] + r.Faults["job stopped, drain"]
	}
	if killed < 30 || stopped < 30 {
		t.Errorf("%d stops and %d kills in 60 runs: nothing is tested", stopped, killed)
	}
}
