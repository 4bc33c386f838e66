// Package taskexecutor hosts the tasks of one executor: it registers at the job master, deploys, cancels and reports tasks, and hands
// checkpoint messages to their mailboxes, and finds the state of tasks: in the checkpoint storage, or in copies of it on a disk of its own.
//
// Owns: the table of tasks, the session at the job master, and the order in which states are reported.
//
// Promises: every request is fenced by leader epoch and attempt first. A task that was accepted is reported terminal, exactly once per session. When the
// session ends, every task is canceled and has ended before the executor registers again. State is verified before a task gets it, wherever it was read.
//
// Goroutines: Run's session loop with its heartbeat and its reporter, one per task, one per task that is being canceled; Run waits for all of
// them.
//
// Not here: the loop of a task (package task), the wire (package rpc), slots (the job master counts them).
//
// Start at: executor.go, then deploy.go.
package taskexecutor
