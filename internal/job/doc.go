// Package job is the vocabulary of jobs: ids, execution attempts, the job graph, placements, options and key groups.
//
// Owns: names and arithmetic that every other package must agree on.
//
// Promises: plain values without behaviour that could fail at run time; nothing here blocks or allocates in secret.
//
// Goroutines: none.
//
// Not here: user code (package stream), states and transitions (package scheduler), anything of the wire.
//
// Start at: ids.go, then graph.go.
package job
