// Package slotpool knows the task executors that are registered, and which job has how many of their slots.
//
// Owns: the sessions of executors, their slots, and the requests of jobs that wait for slots.
//
// Promises: no slot is given twice. A job gets all the slots that it asks for, or none. Jobs that wait are looked at in the order of their
// submission whenever something has changed. Every job hears of executors and slots in the order in which things happened.
//
// Goroutines: none of its own. A registration stays on the goroutine of its caller until it ends.
//
// Not here: what a slot is used for (package scheduler), calls to executors (package jobmaster).
//
// Start at: pool.go, which decides and is pure; registry.go holds the lock around it, and the sessions.
package slotpool
