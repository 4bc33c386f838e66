// Package inspecttest audits the checkpoints that a test leaves in storage: whatever the test was about, each file there must have a reason.
//
// Owns: the comparison of a directory with what a job master said of its jobs.
//
// Promises: an audit of a directory in which nothing is written any more finds every file that is missing, damaged or of no use. It reads all state.
//
// Goroutines: none.
//
// Not here: anything of the product. Only tests and tools import this package.
//
// Start at: audit.go.
package inspecttest
