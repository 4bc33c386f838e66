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

// counted is the closed list of reasons; true: counted as a failure of the job. The others have causes that end by themselves, that are counted
// elsewhere, or that are nobody's fault.
var counted = map[Reason]bool{
	NotAllRunning: false, Suspended: false, Shutdown: false,
	Expired: true, Declined: true, AsyncException: true, IOException: true, FinalizeFailure: true, AckTooLarge: true,
	HookFailure:  true,
	TaskNotReady: false, TaskFailure: false, TriggerFailure: false, Subsumed: false, BarrierCanceled: false,
	FailoverRegion:  false,
	TooManyRequests: false, SavepointDirNeeded: false, JobStopping: false,
}

// Counted reports whether a checkpoint that was aborted for this reason counts towards the failures that a job tolerates in a row.
func (r Reason) Counted() bool { return counted[r] }

// Known reports whether the reason is in the list.
func (r Reason) Known() bool {
	_, ok := counted[r]
	return ok
}
