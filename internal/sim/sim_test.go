package sim

import (
	"testing"
)

func TestSim_One(t *testing.T) {
	for seed := range uint64(20) {
		r := Run(RandomConfig(seed))
		t.Logf("seed %d: %s after %s, %d steps, %d completed, %d restarts, %v", seed, r.State, r.Time, r.Steps, r.Completed, r.Restarts, r.Faults)
		if r.Violation != nil {
			for _, l := range r.Log {
				t.Log(l)
			}
			t.Fatal(r.Violation)
		}
	}
}
