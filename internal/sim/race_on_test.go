//go:build race

package sim

// defaultSeeds is less with the race detector: a seed runs on one goroutine, so the detector finds only what seeds would share, and a few
// of them side by side show that as well as many.
const defaultSeeds = 40
