// Package exchange moves elements between tasks: by reference inside a process, over one stream per sending task and receiving executor
// between processes.
//
// Owns: channels, their credit, the receiving gates, and the frames on the wire.
//
// Promises: a channel keeps its order. At most the credit of a channel in record batches is between its ends; a sender without credit blocks, and a
// channel that its receiver does not read never holds up another one. Barriers and other events need no credit. When an end is lost, the
// other end learns of it with an error.
//
// Goroutines: per stream one that reads it, on either side; they end with the task that sends, or with the gate. Sending and receiving of elements
// happens on the goroutines of the tasks.
//
// Not here: choosing the receiver of a record (routers, package stream), alignment (package task), gRPC (package rpc).
//
// Start at: gate.go for the receiving end, output.go for the sending one, network.go for how they meet.
package exchange
