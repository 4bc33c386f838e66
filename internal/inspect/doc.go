// Package inspect reads checkpoints and savepoints where they are stored, without a cluster.
//
// Owns: what people are told of a stored checkpoint: its content down to the value of a key, how it differs from another one, and which parts of
// it are missing or damaged.
//
// Promises: looking changes nothing, and needs no more than the right to read. Reports are pure functions over metadata; a damaged checkpoint
// gives findings that name operator and subtask, never a panic. State is verified before it is decoded, and a key group at a time is in memory.
//
// Goroutines: none.
//
// Not here: the format (package checkpoint), what a running job does with its checkpoints (package jobmaster), how reports look (package cli).
//
// Start at: read.go, then report.go for the content, verify.go for the damage, and keyed.go for what is in keyed state.
package inspect
