package job

// FailureClass decides what a failure leads to.
type FailureClass int

// The failure classes.
const (
	// FailureTask: the user's code or its input failed. A restart may help; the number of restarts without progress is limited.
	FailureTask FailureClass = iota + 1
	// FailureInfrastructure: a process, a connection or the storage failed. A restart helps; their number is not limited.
	FailureInfrastructure
	// FailurePermanent: the same will fail again, surely. The job fails without a restart.
	FailurePermanent
)

// String is the lower-case name of the class.
func (c FailureClass) String() string {
	switch c {
	case FailureTask:
		return "task"
	case FailureInfrastructure:
		return "infrastructure"
	case FailurePermanent:
		return "permanent"
	}
	return "unknown"
}

// Failure is why a task or a job failed.
type Failure struct {
	Class    FailureClass
	Message  string
	Operator string // when known
}

// String is the message, with the operator in front when it is known.
func (f Failure) String() string {
	if f.Operator != "" {
		return "operator " + f.Operator + ": " + f.Message
	}
	return f.Message
}
