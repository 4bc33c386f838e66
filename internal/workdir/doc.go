// Package workdir is the directory that a task executor has on a disk of its host.
//
// Owns: the layout below it: lock, executor-id, work/<job>/<attempt> for what tasks have open, local/ for what may outlive them.
//
// Promises: one process at a time has the directory, because it holds a lock on it until it is closed or has ended. Nothing is made before the
// first use, so an executor whose jobs need no disk needs none. What an earlier process left in work/ is removed at the first use: it belongs to
// attempts that have ended with their process.
//
// Goroutines: none. The methods may be called by any number.
//
// Not here: what is in the files (package lsm), checkpoints (package storage).
//
// Start at: workdir.go.
package workdir
