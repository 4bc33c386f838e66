// Package node is the composition root: it puts a job master process, a task executor process, and a whole cluster in one process together.
//
// Owns: the wiring, the listeners, and the caches of connections and storages of a process.
//
// Promises: Run functions block until everything they started is gone. An error that keeps a process from its work comes back at once, in one line.
//
// Goroutines: the parts' Run functions, in a group: the first error ends the rest.
//
// Not here: flags (cmd), behaviour (everywhere else). Nothing imports this package but cmd, stream/app and tests.
//
// Start at: jobmaster.go.
package node
