// Package scheduler is the core that brings a job's tasks to run, and to run again after failures.
//
// Owns: the state of the job, one execution attempt of each task, what it asks of the slots, and the restart strategy.
//
// Promises: the same events at the same times give the same effects. Messages of old attempts change nothing and are counted. An execution is
// deployed only when each attempt of the one before has ended, was lost with its executor, or was given up together with it. A job in a
// terminal state stays in it. Failures that belong to one restart are one restart, whose cause is the first of them. What fails restarts with the
// tasks that it is connected to, its failover region; other regions run on.
//
// Goroutines: none.
//
// Not here: which executors have free slots (package slotpool), checkpoints (package coordinator), the wire.
//
// Start at: core.go (Step), then region.go, seats.go, deploy.go, failover.go and cancel.go; the legal transitions are in transitions.go.
//
// The job:
//
//	CREATED --> RUNNING --> FINISHED
//	   |         |   ^
//	   |         v   |
//	   |      RESTARTING            every state on the left and below: --> FAILING --> FAILED
//	   v                            every state that is not terminal:  --> CANCELLING --> CANCELED
//	(waits for slots as RESTARTING does, after the attempts have ended and the delay has passed)
//
// It is RESTARTING while any region waits to be deployed again, and RUNNING as soon as none does. No checkpoints are taken before all tasks run.
//
// A task's attempt:
//
//	CREATED --> SCHEDULED --> DEPLOYING --> INITIALIZING --> RUNNING --> FINISHED
//	                              |_______________|_____________|--> CANCELING --> CANCELED
//	                                                            |--> FAILED
//
//	event                                     effects                                                next
//	Start                                     RequestSlots                                           CREATED
//	SlotsShort                                Waiting                                                unchanged
//	SlotsAllocated                            JobStatusChanged, Deploy                               RUNNING
//	last task RUNNING; last end of data       TasksRunning; EndOfDataReached                         RUNNING
//	a task FINISHED                           TaskFinished                                           RUNNING
//	last task FINISHED                        TasksStopped, ReleaseSlots, JobStatusChanged           FINISHED
//	any failure                               TasksStopped, JobStatusChanged, CancelTasks            RESTARTING or FAILING
//	a failure of another region               TasksStopped, RegionsRestart, CancelTasks              RESTARTING or FAILING
//	last attempt of a region ended, and the   Deploy if it has its slots, else RequestSlots;         RESTARTING, or
//	delay passed                              JobStatusChanged if no other region waits              RUNNING
//	CancelRequested                           TasksStopped, JobStatusChanged, CancelTasks            CANCELLING
//	last attempt ended                        ReleaseSlots, JobStatusChanged                         FAILED or CANCELED
package scheduler
