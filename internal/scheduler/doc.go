// Package scheduler is the core that brings a job's tasks to run, and to run again after failures.
//
// Owns: the state of the job, one execution attempt of each task, what it asks of the slots, and the restart strategy.
//
// Promises: the same events at the same times give the same effects. Messages of old attempts change nothing and are counted. An execution is
// deployed only when each attempt of the one before has ended, was lost with its executor, or was given up together with it. A job in a
// terminal state stays in it. Failures that belong to one restart are one restart, whose cause is the first of them.
//
// Goroutines: none.
//
// Not here: which executors have free slots (package slotpool), checkpoints (package coordinator), the wire.
//
// Start at: core.go (Step), then deploy.go, failover.go and cancel.go; the legal transitions are in transitions.go.
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
//	last attempt ended and the delay passed   ReleaseSlots, RequestSlots                             RESTARTING
//	CancelRequested                           TasksStopped, JobStatusChanged, CancelTasks            CANCELLING
//	last attempt ended                        ReleaseSlots, JobStatusChanged                         FAILED or CANCELED
package scheduler
