// Package stream is the SDK: a job is a function that connects sources, transformations and sinks of typed streams.
//
// Owns: the job definition, the operators that Weir has built in, and the interfaces that sources, sinks and operators of one's own satisfy.
//
// Promises: a definition is deterministic: the same parameters give the same graph in every process. All functions of one subtask run on one
// goroutine, the task's; only what Prepared.Persist and snapshots do runs beside it. Records are immutable once emitted.
//
// Goroutines: none of its own.
//
// Not here: chaining and the job graph (internal/plan), running (internal/task), moving batches (internal/exchange).
//
// Start at: job.go for users, keyed.go and state.go for keyed state, operator.go for how a task runs an operator, edge.go for what an exchange
// sees.
package stream
