package job

// ListMode says how a restore gives the items of an operator's list state to the subtasks.
type ListMode int

// The modes.
const (
	// Split deals the items of all old subtasks out evenly when the parallelism has changed; else each subtask gets its own.
	Split ListMode = iota + 1
	// Union gives every subtask the items of all old subtasks, at the same parallelism too.
	Union
	// BroadcastState is for state that is equal in all subtasks: each new subtask gets the copy of one old subtask.
	BroadcastState
)

// String is the lower-case name of the mode.
func (m ListMode) String() string {
	switch m {
	case Split:
		return "split"
	case Union:
		return "union"
	case BroadcastState:
		return "broadcast"
	}
	return "unknown"
}

// DeclaredState is a state that an operator of a vertex declares, keyed or not, with the schemas of its codecs: so that a job master, which has not
// the job's code, can tell whether stored state can be read.
type DeclaredState struct {
	Operator string
	Name     string
	Kind     string
	Mode     ListMode // 0: keyed state
	// KeyType is empty for state that has no keys.
	KeyType   string
	ValueType string

	NamespaceType string // of a state with an entry for each key and namespace; empty: it has none
	MapKeyType    string // of a map state
	TTL           int64  // milliseconds that an entry lives; 0: for ever

	// Converts are the value types that the operator's own migrations take, beside what today's type reads.
	Converts []string
}
