// Package timer is the timers of keyed state: which key wants to be called at which time.
//
// Owns: the order in which timers are due, and the meaning of the rows that hold them.
//
// Promises: a key has at most one timer for a time. Timers are given by time, those of one time in the order in which they were set. What is set is
// a row of a table, so it is in a snapshot as soon as it is set and gone from it as soon as it is taken, and the snapshot costs what that of the
// table costs. To set, to delete and to take a timer costs a row and about the logarithm of the number of timers.
//
// Goroutines: none. A Queue has one owner, the task loop.
//
// Not here: what time it is, encoding and snapshots of tables (package stream).
//
// Start at: queue.go.
package timer
