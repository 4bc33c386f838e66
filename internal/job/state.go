package job

// TaskState is the life of an execution attempt. Legal transitions are in package scheduler.
type TaskState int

// The task states. Finished, Canceled and Failed are terminal.
const (
	TaskCreated TaskState = iota + 1
	TaskScheduled
	TaskDeploying
	TaskInitializing
	TaskRunning
	TaskFinished
	TaskCanceling
	TaskCanceled
	TaskFailed
)

var taskStateNames = [...]string{"UNKNOWN", "CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING", "FINISHED", "CANCELING", "CANCELED", "FAILED"}

// String is the upper-case name of the state.
func (s TaskState) String() string { return name(taskStateNames[:], int(s)) }

// Terminal reports whether an attempt never leaves s.
func (s TaskState) Terminal() bool {
	return s == TaskFinished || s == TaskCanceled || s == TaskFailed
}

// State is the life of a job. Legal transitions are in package scheduler.
type State int

// The job states. Failed, Canceled and Finished are terminal.
const (
	Created State = iota + 1
	Running
	Failing
	Failed
	Cancelling
	Canceled
	Finished
	Restarting
)

var stateNames = [...]string{"UNKNOWN", "CREATED", "RUNNING", "FAILING", "FAILED", "CANCELLING", "CANCELED", "FINISHED", "RESTARTING"}

// String is the upper-case name of the state.
func (s State) String() string { return name(stateNames[:], int(s)) }

// Terminal reports whether a job never leaves s.
func (s State) Terminal() bool { return s == Failed || s == Canceled || s == Finished }

func name(names []string, i int) string {
	if i < 0 || i >= len(names) {
		return names[0]
	}
	return names[i]
}
