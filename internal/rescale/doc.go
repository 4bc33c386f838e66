// Package rescale is the core that changes the parallelism of a running job: what is asked, in which order things are done, and what becomes of it
// when one of them fails. It also estimates what a rescale will take.
//
// Owns: the one rescale of a job that is going on.
//
// Promises: every request is answered exactly once. A plan is recorded before anything of it is deployed, so that the next job master goes on by the
// old plan or by the new one. Until all tasks have run by the new plan the job can go back to the old one, and does instead of failing, or when
// the slots do not come. As long as no task was told to stop the job has noticed nothing.
//
//	          Requested        Surveyed        slots are there       Checkpointed       Recorded          Running
//	(idle) ─────────► PLANNING ─────► WAITING ─────────► CHECKPOINT ─────► RECORDING ─────► STARTING ─────► (idle)
//	                     │               │                   │                                │ Failed, or no slots in time
//	                     └── refused ────┴── too long ───────┴── not taken ──► (idle)         ▼
//	                                                                         GOING BACK ──Recorded──► RETURNING ──Running──► (idle)
//
// An end of the job ends it in every phase.
//
//	what is asked meanwhile     before the tasks are told to stop            after
//	another rescale             refused                                      refused
//	stop, cancel with savepoint refused                                      refused
//	cancel                      done                                         done
//	checkpoint, savepoint       taken; aborted if it is still pending then   refused: not all tasks run
//	a task fails                nothing was changed, or the restart is       a restart by the new plan; it goes back if that would be
//	                            already by the new plan                      the end of the job
//	the job master dies         the next one goes on by the old plan, or by the new one from when it is recorded
//
// Goroutines: none.
//
// Not here: the tasks (package scheduler), checkpoints (package coordinator), records, calls to executors (package jobmaster).
//
// Start at: core.go, then estimate.go.
package rescale
