// Package localstate keeps copies of the state files of the latest checkpoints on a disk of the executor, so that a restart need not read them from
// the checkpoint storage.
//
// Owns: which copies there are and how long they stay (core.go, pure); the files, <dir>/<job>/chk-<n>/<file> (store.go, copy.go).
//
// Promises: a copy is never the only one, and nobody waits for it: what goes wrong with one is counted, said in the log, and the copy forgotten. A copy
// has the name of the file in the storage; two files never have the same one there, so neither have two copies, whichever operator, task or process
// wrote them. Of a job there are the copies of its latest completed checkpoint and of at most MaxPending others. What is stored late, for a
// checkpoint that is over, is discarded.
//
// Goroutines: none. A Store may be used by any number.
//
// Not here: whether the bytes are the right ones: who reads a copy verifies it (package taskexecutor); the storage (package storage).
//
// Start at: core.go.
package localstate
