// Package plan turns a job's definition into its job graph, and the graph's vertices into chains of operators that a task can run.
//
// Owns: chaining, the ids and the fingerprint of the graph.
//
// Promises: the same definition, parameters and options give the same graph in every process, but for the splits. A panic of the definition
// is an error.
//
// Goroutines: none.
//
// Not here: placing and deploying (package scheduler), running (package task).
//
// Start at: program.go.
package plan
