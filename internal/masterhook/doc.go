// Package masterhook calls the master hooks of a job: code of its own that runs in the job master.
//
// Owns: the opened hooks of one job under one leader epoch.
//
// Promises: the methods of one hook run one after another. Each call ends within Timeout for who waits for it, whatever the code does: a panic, an
// answer that is too large, and no answer are errors that name the hook. Hooks of a job are called side by side; of several errors the first
// in the order of the definition is told.
//
// Goroutines: one per call, for as long as the hook's code runs. Code that does not return can be left behind by nobody but the end of the process; so
// that there is never more than one such goroutine per hook, the hook is not called again before it has returned. Wait waits for them, for a while.
//
// Not here: when hooks are called (package coordinator and the job loop), how they are made of a definition (package node).
//
// Start at: Set.
package masterhook
