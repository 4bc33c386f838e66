package gateway

import (
	"errors"
	"fmt"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// Code classifies an error for the one who called. It maps one to one to gRPC codes, in package rpc.
type Code int

// The codes.
const (
	Internal           Code = iota + 1 // a bug, or an error that nobody has classified
	InvalidArgument                    // the request is wrong whatever the state
	NotFound                           // what it names does not exist
	FailedPrecondition                 // it exists but is not in the right state; trying again does not help by itself
	Aborted                            // it was tried and did not come about; trying again may help
	Unavailable                        // the other side cannot be reached or is not ready; try again
	ResourceExhausted                  // a limit was reached
	DeadlineExceeded
	Canceled
)

// Error crosses the wire whole.
type Error struct {
	Code       Code
	Reason     string // stable upper-case word, e.g. JOB_NOT_FOUND
	Message    string // one line: what is wrong
	Remedy     string // what the caller can do
	Job        job.ID
	Checkpoint checkpoint.ID
}

// Error is the message and, in parentheses, the remedy.
func (e *Error) Error() string {
	if e.Remedy == "" {
		return e.Message
	}
	return fmt.Sprintf("%s (%s)", e.Message, e.Remedy)
}

// CodeOf returns the code of an Error in err's chain, or Internal.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}

// ReasonOf returns the reason of an Error in err's chain, or "".
func ReasonOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// The reasons of errors that callers act on.
const (
	ReasonJobNotFound       = "JOB_NOT_FOUND"
	ReasonUnknownJobName    = "UNKNOWN_JOB_NAME"
	ReasonNoExecutors       = "NO_TASK_EXECUTORS"
	ReasonStaleEpoch        = "STALE_LEADER_EPOCH"
	ReasonUnknownAttempt    = "UNKNOWN_ATTEMPT"
	ReasonFingerprint       = "FINGERPRINT_MISMATCH"
	ReasonBadParameter      = "BAD_PARAMETER"
	ReasonBadCheckpoint     = "BAD_CHECKPOINT"
	ReasonCheckpointFailed  = "CHECKPOINT_FAILED"
	ReasonCheckpointUnknown = "CHECKPOINT_NOT_FOUND"
	ReasonNotRegistered     = "NOT_REGISTERED"
	ReasonReplaced          = "REPLACED"
	ReasonJobTerminal       = "JOB_TERMINAL"
	ReasonShuttingDown      = "SHUTTING_DOWN"
	ReasonRescaling         = "RESCALE_IN_PROGRESS"
	ReasonRescaleFailed     = "RESCALE_FAILED"
	ReasonJobNotRunning     = "JOB_NOT_RUNNING"
	ReasonTooFewSlots       = "TOO_FEW_SLOTS"
)

// ShuttingDown is the answer to what comes too late.
func ShuttingDown() *Error {
	return &Error{
		Code: Unavailable, Reason: ReasonShuttingDown, Message: "the job master is shutting down", Remedy: "try again when one is running",
	}
}

// StaleEpoch is the answer to a request of another leader epoch than the receiver's.
func StaleEpoch(got, have job.LeaderEpoch) *Error {
	return &Error{
		Code: FailedPrecondition, Reason: ReasonStaleEpoch,
		Message: fmt.Sprintf("the request is of leader epoch %d, the current one is %d", got, have),
		Remedy:  "look the epoch up with GetJob, or leave it out",
	}
}

// UnknownAttempt is the answer to a request for attempts that the receiver does not know.
func UnknownAttempt(a job.AttemptID) *Error {
	return &Error{
		Code: NotFound, Reason: ReasonUnknownAttempt, Job: a.Job,
		Message: fmt.Sprintf("attempt %s of job %s is not known here", a, a.Job),
		Remedy:  "GetJob lists the current attempts",
	}
}

// JobNotFound is the answer to a request for a job that the job master does not have.
func JobNotFound(id job.ID) *Error {
	return &Error{
		Code: NotFound, Reason: ReasonJobNotFound, Job: id,
		Message: fmt.Sprintf("there is no job %q", id),
		Remedy:  "weir jobs, or ListJobs, lists the jobs",
	}
}
