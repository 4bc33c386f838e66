// Package inbox is the only way into a loop that owns something: a queue of messages.
//
// Owns: the messages that wait, and whether the loop has begun and ended.
//
// Promises: messages come out in the order in which they were put in. Callers wait while too many of theirs are in the queue; results of what
// the loop itself has started are always taken, since a loop that waited for another one's inbox could wait for itself. Their number is bounded
// by what the loop started. Nobody waits for a loop that has ended.
//
// Goroutines: none.
//
// Not here: what a message means.
//
// Start at: inbox.go.
package inbox
