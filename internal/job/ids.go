package job

import (
	"cmp"
	"fmt"
)

// ID names one submission of a job, unique over all job masters.
type ID string

// LeaderEpoch fences job masters: a message of a lower epoch than the receiver's is stale. The first leader has epoch 1.
type LeaderEpoch uint64

// VertexID names a vertex of the job graph: the id of the first operator of its chain.
type VertexID string

// ExecutorID names a task executor; it is stable over restarts of the process when the operator gives it.
type ExecutorID string

// TaskID names one parallel subtask of a vertex.
type TaskID struct {
	Vertex  VertexID
	Subtask int
}

// String is "vertex[subtask]".
func (t TaskID) String() string { return fmt.Sprintf("%s[%d]", t.Vertex, t.Subtask) }

// Compare orders tasks by vertex id, then by subtask.
func (t TaskID) Compare(o TaskID) int {
	return cmp.Or(cmp.Compare(t.Vertex, o.Vertex), cmp.Compare(t.Subtask, o.Subtask))
}

// AttemptID names one execution attempt: one incarnation of one task. Attempts are numbered from 1.
type AttemptID struct {
	Job     ID
	Task    TaskID
	Attempt int
}

// String is "vertex[subtask]#attempt"; the job is left out because each line of a log names it once.
func (a AttemptID) String() string { return fmt.Sprintf("%s#%d", a.Task, a.Attempt) }

// Compare orders attempts by job, task and attempt number.
func (a AttemptID) Compare(o AttemptID) int {
	return cmp.Or(cmp.Compare(a.Job, o.Job), a.Task.Compare(o.Task), cmp.Compare(a.Attempt, o.Attempt))
}
