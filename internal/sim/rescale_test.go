package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/job"
)

// B82: jobs with forward, hash and rebalance edges, and with operators without state between others, are rescaled again and again while executors and
// the job master die, and have the output of the model in the end.
func TestFault_B82_RescaledWhileProcessesDie_IsExact(t *testing.T) {
	rescaled, finished := 0, 0
	for seed := range uint64(60) {
		cfg := Config{
			Seed: seed, FaultsFor: 20 * time.Second, Bounded: true, Rescale: 800 * time.Millisecond, Native: seed%2 == 0,
			Faults:     Faults{ExecutorCrash: 5 * time.Second, MasterCrash: 7 * time.Second, TaskError: 6 * time.Second, MasterDies: 0.01},
			Checkpoint: job.CheckpointOptions{Interval: 700 * time.Millisecond, Timeout: 4 * time.Second, Retained: 2, TolerableFailures: 3},
			Restart:    job.RestartOptions{InitialDelay: 50 * time.Millisecond, MaxDelay: time.Second, Attempts: 20},
		}
		r := play(t, cfg, fmt.Sprintf("-run TestFault_B82 (seed %d)", seed))
		rescaled += r.Faults["rescaled"]
		if r.State == job.Finished {
			finished++
		}
	}
	if rescaled < 100 || finished < 50 {
		t.Errorf("rescaled %d times, and %d of 60 jobs finished: the faults leave nothing to test", rescaled, finished)
	}
}
