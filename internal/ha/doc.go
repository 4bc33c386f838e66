// Package ha keeps what a job master must know again after a restart: its leader epoch and the records of its jobs.
//
// Owns: the format and the files of a data directory.
//
// Promises: one store at a time has a directory open, because the first holds a lock on it until it is closed or its process has ended. Each
// opening has an epoch greater than all before it, durable before Open returns. A record is there whole or not at all, and is durable when
// its write has returned without an error; after an error it is or it is not. A record that does not read whole is an error that names the file, never a
// record less.
//
// Goroutines: none. The methods may be called by any number; writes of one record must not run at the same time.
//
// Not here: what the records are for (package jobmaster), checkpoints (package storage holds them, their own names say which is the newest).
//
// Start at: store.go; record.go has what is kept.
package ha
