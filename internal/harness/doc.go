// Package harness runs a cluster of real processes on this machine, and kills them: for end-to-end tests, benchmarks and the demo.
//
// Owns: the processes that it starts; it kills no others.
//
// Promises: Stop ends every process, also after a failure. What a process logs is in a file of its own below the cluster's directory.
//
// Goroutines: one per process that waits for its end; Stop waits for them.
//
// Not here: anything of the product. Only tests and tools import this package.
//
// Start at: cluster.go.
package harness
