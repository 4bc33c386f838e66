// Package dirlock keeps a directory to one process at a time.
//
// Owns: the lock file in such a directory.
//
// Promises: a lock is held by one opener at a time, also within one process. The kernel takes it back when the process has ended, after its last
// system call; so nothing that an earlier holder began is still under way.
//
// Goroutines: none.
//
// Not here: what the directory is for (packages ha and workdir).
//
// Start at: lock_unix.go.
package dirlock

import "errors"

// ErrLocked is in the error of Acquire when somebody else has the lock.
var ErrLocked = errors.New("another process has the lock")
