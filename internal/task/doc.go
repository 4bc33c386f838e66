// Package task runs one execution attempt of one subtask: its chain of operators, its part of every checkpoint, and its end.
//
// Owns: the barrier protocol of a task (core.go, pure), the mailbox loop around it, snapshots, and the life of the operators.
//
// Promises: operators and the core are touched by the task's goroutine only. A barrier goes on to all outputs before any record behind it is
// processed. A snapshot stops the task for its synchronous part only, and is acknowledged after everything it refers to is durable. Every
// function of the user may panic: the attempt fails with the operator's name.
//
// Goroutines: the loop, one for each snapshot that is being persisted, and one that reads ahead of a restore; Run returns when all have ended.
//
// Not here: who triggers (package coordinator), moving elements (package exchange), files (package storage), the wire (package rpc).
//
// Start at: core.go for the protocol, task.go for the loop.
//
//	event                    when accepted                         effects
//	Trigger(n)               a source, n not seen                  Snapshot
//	Barrier(channel, n)      n not seen                            Block; with the last channel Unblock, Snapshot
//	Cancel(channel, n)       n not seen                            Unblock, ForwardCancel, Decline
//	Aborted(n, latest)       always                                NotifyComplete(latest), then Unblock, ForwardCancel, StopSnapshot, NotifyAborted
//	Completed(n)             n above the last notified             NotifyComplete, and Finish after the final checkpoint
//	ChannelEnded, InputEnded once each                             EndInput with the last
package task
