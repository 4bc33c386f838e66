// Package retention holds the rules of what is kept of a job's checkpoints and what may be deleted.
//
// Owns: who refers to which shared file (Ledger), what a sweep may take (Orphans), what is left of a job (Shared, Leftovers) and what people may delete by hand.
//
// Promises: pure functions and values. What is deleted is decided by metadata and by acks that were kept, never by counting messages. What is not known, such as
// metadata that cannot be read, keeps everything that it could refer to.
//
// Goroutines: none.
//
// Not here: names and the format of metadata (package checkpoint), when a checkpoint is over (package coordinator), the deleting (packages archive and inspect).
//
// Start at: ledger.go, then sweep.go.
package retention
