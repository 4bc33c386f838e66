// Package storage is where checkpoints are kept: files that appear whole or not at all.
//
// Owns: the layout of the root directory's temporary files, and when a file, a name or a directory is durable.
//
// Promises: what Commit, WriteFile, MkdirAll, Remove and RemoveAll have done survives a crash of the machine when they have returned without
// an error. A reader never sees a part of a file. After an error it is unknown whether the thing was done, but never half done. All methods may
// be called by any number of goroutines and processes at once.
//
// Goroutines: none; calls block until the disk has answered.
//
// Not here: what is in the files (package checkpoint), which of them may be deleted (package coordinator).
//
// Start at: storage.go. Package storagetest has the conformance suite and a fake that injects faults and crashes.
package storage
