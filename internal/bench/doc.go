// Command bench measures what a user of Weir waits for, on a cluster of real processes: the time of a small checkpoint and where it goes, whether
// checkpoints every 100 ms all complete, recovery after kill -9, and records per CPU-second of a chain and of an exchange in one process and between
// two.
//
// Owns: the benchmark jobs and the report.
//
// Promises: CPU is that of all processes of the cluster, user and system. Figures that are compared are measured in one run, in turn.
//
// Goroutines: none.
//
// Not here: benchmarks of one package, which are in its tests.
//
// Start at: main.go.
package main
