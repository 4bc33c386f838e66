// Package coordinator is the checkpoint coordinator of one job: a pure core that decides when checkpoints are triggered, books the
// acknowledgements of tasks, and says which checkpoint a restore uses.
//
// Owns: checkpoint ids of one leader epoch, pending checkpoints, the request queue, the retained completed checkpoints, the history.
//
// Promises: a checkpoint is completed or aborted, never both; nothing is notified before its metadata is durable; ids only grow; every
// request is answered exactly once; after every Step the queue has been looked at, so no path can leave the core unable to trigger.
//
//	LOCATING ──ready──► CALLING ──hooks answer──► TRIGGERED ──last ack──► FINALIZING ──metadata written──► COMPLETED
//	    │                  │                         │                       │
//	    └─ expire, stop, failure ────────────────────┴── decline, subsume ───┴── metadata failed ──► ABORTED
//
// A job without master hooks passes CALLING at once.
//
// FINALIZING cannot be stopped: its metadata may be durable already, so only MetadataWritten ends it. Therefore one rule for the loop:
//
//	Between TasksStopped and the next Deploy the loop waits until Settled() is true, and only then asks Latest() what to restore. A
//	deployment from an older checkpoint would abort what a newer durable one has promised to commit.
//
// A core that is told of a new execution all the same aborts such a checkpoint when its write has answered. The loop answers every
// InitLocation, CallHooks, WriteMetadata and Discard exactly once; with an Err when the storage did not answer in time.
//
//	event                   effects
//	TasksRunning            none; the periodic timer is armed
//	Tick                    Aborted of expired ones; InitLocation; SendNotifyComplete again; Degraded
//	TriggerRequested        InitLocation, or Reply when it is refused, or none while it waits (savepoints only for a trigger phase or deletions)
//	EndOfDataReached        InitLocation of the final checkpoint, or none while it waits
//	TaskFinished            SendTrigger to the tasks behind it; WriteMetadata if it was the last one that was waited for
//	BacklogChanged          none; the periodic timer may move to an earlier time
//	LocationReady           CallHooks, or SendTrigger to the sources; Discard if the checkpoint is over; Aborted if it failed
//	HooksCalled             SendTrigger to the sources; Aborted if a hook failed
//	Ack                     AckReply; after the last one WriteMetadata
//	Decline, TriggerFailed  Aborted, SendNotifyAborted, Discard, Reply, FailJob when too many failed in a row
//	MetadataWritten         Completed, Reply, SendNotifyComplete or CancelJob, Discard of subsumed ones; or as Decline, without Discard when uncertain
//	TasksStopped            Aborted, Discard, Reply for all but FINALIZING ones; Discard of uncertain ones; of some: SendNotifyAborted to the others
//	NotifyConfirmed, AbortConfirmed  none; that task is not told again
//	Discarded               InitLocation when it was deletions that were waited for
//	Restored                none; for statistics
//	Replanned               none; metadata to come is of the new graph
//	Closed                  as TasksStopped; Discard of retained ones if asked
//	anything else           none; counted by Stale
//
// Goroutines: none.
//
// Not here: time, random numbers, files, messages (package jobmaster does what the effects say), metadata format (package checkpoint).
//
// Start at: event.go and effect.go, then core.go; testdata/ tells the protocol in transcripts.
package coordinator
