// Package sim plays a whole cluster with seeded faults on one goroutine, and is the judge of the checkpoint protocol.
//
// The cores of the coordinator, the scheduler and the tasks, the choice of what a restore uses, and the format of the metadata are the real
// ones; so are the records of the job master, what it makes of them when it starts again, what it deploys, and what a sweep deletes. Executors,
// network, storage and the outside world that a sink writes to are simulated. The loops between the cores are written again here, as packages
// jobmaster and task have them, because a simulation needs them without goroutines.
//
// Owns: virtual time, the faults, the model of what the output must be, the invariants.
//
// Promises: one Config gives one run, to the last line of its log. A violated invariant ends the run at the step that violated it.
//
// The job master dies and comes back as the next leader epoch; what is under way to and from it still arrives. At most one lives at a time, as
// the lock on its data directory has it, and nothing of a dead one is done to the storage.
//
// What the network guarantees, as the real one: the calls of the job master to one executor stay in order, unless their caller has given
// them up, and deployments always; a channel between two tasks is first in first out and whole, until one of its ends dies. Everything else
// may be lost, late, repeated and out of order.
//
// Goroutines: none.
//
// Not here: what real loops can do wrong by themselves (their own packages test that), files on a real disk (package storage).
//
// Start at: Run in sim.go, then invariants.go, commits.go, barriers.go, progress.go and succession.go for what is checked; a failing seed prints the command
// that replays it.
package sim
