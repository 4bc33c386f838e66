// Package jobmaster runs jobs: it takes the registrations of task executors, and drives one loop per job around the two pure
// cores, the scheduler and the checkpoint coordinator.
//
// Owns: the jobs of one leader epoch, every call to an executor and every write of checkpoint metadata.
//
// Promises: a job's cores are touched by its loop alone, and nothing that the loop does waits for storage, network or another loop. Calls of
// one job to one executor arrive in the order in which they were decided; a slow executor delays no other. What a caller was told is in the
// status that is published by then. With a store, nothing that the next job master must know happens before its record is durable. Run returns when all it started is gone, deletions included.
//
// Goroutines: Run; the sweep of the checkpoint directory; per job the loop, two per executor that runs its tasks (the sender and its watcher), and one per storage call. Methods of
// the interfaces run on their callers' goroutines; a registration stays on its own until it ends.
//
//	caller ──message──► inbox ──event──► core ──effect──► another core, a sender, a storage call, the slot pool
//	                      ▲                                        │
//	                      └───────────────── result ◄──────────────┘
//
// Not here: decisions (packages scheduler and coordinator), who has which slots (package slotpool), the wire (package rpc), files (package storage), user code.
//
// Start at: jobmaster.go for the outside, jobloop.go for the inside; scheduling.go and checkpoints.go do the effects; store.go keeps records,
// recover.go begins from them.
package jobmaster
