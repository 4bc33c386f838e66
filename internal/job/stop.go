package job

// StopMode says how a job ends with a savepoint. Whatever the mode, a savepoint that does not complete leaves the job as it was, and what a
// completed one promises to commit is committed.
type StopMode int

// The modes.
const (
	// StopNone: the job goes on.
	StopNone StopMode = iota
	// StopSuspend: sources emit nothing behind the barrier of the savepoint. Operators keep what they hold, for the job that starts from it.
	StopSuspend
	// StopDrain: sources end before the barrier, as if their input were over, and operators emit what they hold.
	StopDrain
	// StopCancel: the job goes on until the savepoint has completed and is canceled then; what it did meanwhile is not committed.
	StopCancel
)

// String is the lower-case name of the mode.
func (m StopMode) String() string {
	switch m {
	case StopNone:
		return "none"
	case StopSuspend:
		return "suspend"
	case StopDrain:
		return "drain"
	case StopCancel:
		return "cancel"
	}
	return "unknown"
}

// EndsTasks reports whether the tasks finish by themselves when the savepoint has completed.
func (m StopMode) EndsTasks() bool { return m == StopSuspend || m == StopDrain }
