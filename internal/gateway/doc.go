// Package gateway is the vocabulary of what the processes say to each other: the interfaces of the job master and the task executor, their
// requests and answers as plain values, and the errors that cross the wire.
//
// Owns: the contract between the control plane and the executors, and between people and the job master.
//
// Promises: an interface here behaves the same whether the other side is in this process or behind gRPC. Every control request carries the leader
// epoch and the attempts that it concerns.
//
// Goroutines: none.
//
// Not here: the wire format (package rpc), what the sides do (packages jobmaster and taskexecutor).
//
// Start at: executor.go, jobmaster.go, jobs.go.
package gateway
