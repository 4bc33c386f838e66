package sim

import (
	"fmt"
	"maps"
	"slices"
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

// Two job masters die between the record of a new plan and its first deployment. What had finished before is in no checkpoint of the new plan, and the
// model counts it all the same, whichever job master deploys first (seed 20889).
func TestPlans_JobMastersDieBeforeTheFirstDeployment_NothingIsForgotten(t *testing.T) {
	begun, afterEnds := 0, 0
	for seed := range uint64(60) {
		s := newSim(Config{
			Seed: seed, FaultsFor: 10 * time.Second, Bounded: true, Rescale: 2 * time.Second,
			Checkpoint: job.CheckpointOptions{Interval: 300 * time.Millisecond, Timeout: 4 * time.Second, Retained: 2, TolerableFailures: 3},
			Restart:    job.RestartOptions{InitialDelay: 50 * time.Millisecond, MaxDelay: time.Second, Attempts: 20},
		})
		s.begin()
		inForce, died := s.work.graph.Fingerprint, map[job.LeaderEpoch]bool{}
		for s.failed == nil && !s.watch.over && s.count < maxSteps && s.step() {
			m := s.master
			planned := m.work
			if g := m.rescaling.graph; g != nil {
				planned = s.planOf(g.Fingerprint)
			}
			if m.life.over || planned.graph.Fingerprint == inForce || !m.records.ledger.PlanRecorded() {
				continue
			}
			switch {
			case len(died) < 2 && !died[m.life.epoch]:
				died[m.life.epoch] = true
				m.crash("a plan is recorded")
			case s.watch.running:
				inForce = planned.graph.Fingerprint
				clear(died)
				begun++
				if p := s.plans.floor; p != nil && slices.Contains(slices.Collect(maps.Values(p.ended)), true) {
					afterEnds++
				}
			}
		}
		if s.failed != nil || !s.watch.over {
			t.Errorf("seed %d: %v after %d steps, job %s", seed, s.failed, s.count, s.master.state())
		}
	}
	if begun < 30 || afterEnds < 10 {
		t.Errorf("the third job master began %d plans, %d of them after tasks had ended: nothing is tested", begun, afterEnds)
	}
	t.Logf("the third job master began %d plans, %d of them after tasks had ended", begun, afterEnds)
}
