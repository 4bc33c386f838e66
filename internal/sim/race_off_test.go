//go:build !race

package sim

// defaultSeeds is how many seeds run if nobody says otherwise.
const defaultSeeds = 200
