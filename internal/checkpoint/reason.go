package checkpoint

// Verdict is what became of an ack at the coordinator.
type Verdict int

// The verdicts.
const (
	Kept       Verdict = iota + 1 // the state belongs to the checkpoint; the executor must not delete it
	Duplicate                     // applied before; the executor must not delete anything
	TooLate                       // the checkpoint is over without it; the executor deletes its files
	Unknown                       // neither checkpoint nor attempt is known; the executor deletes its files
	StaleEpoch                    // for another leader; the executor must not delete anything
)

var verdictNames = [...]string{"?", "KEPT", "DUPLICATE", "TOO_LATE", "UNKNOWN", "STALE_EPOCH"}

// String is the upper-case name of the verdict.
func (v Verdict) String() string {
	if v < 0 || int(v) >= len(verdictNames) {
		v = 0
	}
	return verdictNames[v]
}

// Reason is why a checkpoint did not complete: a closed list. The texts are the words on the wire.
type Reason string

// The reasons.
const (
	None               Reason = ""
	NotAllRunning      Reason = "NOT_ALL_RUNNING"
	Suspended          Reason = "SUSPENDED"
	Shutdown           Reason = "SHUTDOWN"
	Expired            Reason = "EXPIRED"
	Declined           Reason = "DECLINED"
	TaskNotReady       Reason = "TASK_NOT_READY"
	TaskFailure        Reason = "TASK_FAILURE"
	AsyncException     Reason = "ASYNC_EXCEPTION"
	IOException        Reason = "IO_EXCEPTION"
	FinalizeFailure    Reason = "FINALIZE_FAILURE"
	TriggerFailure     Reason = "TRIGGER_FAILURE"
	Subsumed           Reason = "SUBSUMED"
	BarrierCanceled    Reason = "BARRIER_CANCELED"
	TooManyRequests    Reason = "TOO_MANY_REQUESTS"
	AckTooLarge        Reason = "ACK_TOO_LARGE"
	FailoverRegion     Reason = "FAILOVER_REGION"
	HookFailure        Reason = "HOOK_FAILURE"
	SavepointDirNeeded Reason = "SAVEPOINT_DIR_NEEDED"
	JobStopping        Reason = "JOB_STOPPING"
)
