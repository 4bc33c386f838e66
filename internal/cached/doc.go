// Package cached is keyed state that may be larger than memory: all of it is in a store on disk, a part of it in tables in memory in front of that.
//
// Owns: what is in memory, what of it the store does not have yet, and the budget for all operators of the process.
//
// Promises: what is in memory costs about what a table in memory costs, and to set a value reads nothing. The store is written by seals only: what was
// written since the one before is frozen, in microseconds, and goes into the store beside the task, in order of its keys. A seal begins when a quarter of
// the budget waits for one, and with each snapshot; so a snapshot is a freeze, and afterwards what the store then has. What is sealed may be dropped from
// memory, and what was not used for the longest time is, some of it with each entry that comes in. When nothing can be dropped because it is not sealed
// yet, the task waits for the seal: that is the only wait. What an operator had is never found changed or lost by an error of the disk: from then on
// each call that needs the disk fails, and every snapshot.
//
// Goroutines: one per operator, which seals, until Close. Tables and Operator belong to the task's goroutine, a Snapshot to any one.
//
// Not here: files (package lsm), names and kinds of state (package stream).
//
// Start at: table.go, then operator.go, seal.go and snapshot.go.
package cached
