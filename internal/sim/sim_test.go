package sim

import (
	"os"
	"strconv"
	"testing"
)

func TestSim_One(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("N"))
	done := 0
	rest := 0
	kinds := map[string]int{}
	fin := map[string]int{}
	for seed := range uint64(n) {
		r := Run(RandomConfig(seed))
		if r.Violation != nil {
			t.Errorf("seed %d: %v", seed, r.Violation)
		}
		done += r.Completed
		rest += r.Restarts
		fin[r.State.String()]++
		for k, v := range r.Faults {
			kinds[k] += v
		}
	}
	t.Log(done, rest, kinds, fin)
}
