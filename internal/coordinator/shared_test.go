package coordinator_test

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/datadriven"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// list reads "name=(a,b)".
func list(d *datadriven.TestData, name string) []string {
	a, _ := d.Arg(name)
	return a.Vals
}

// sharedState is state in shared files; nil for none. A short name is completed with the task that uploads it.
func sharedState(a job.AttemptID, files []string) *checkpoint.Keyed {
	if len(files) == 0 {
		return nil
	}
	k := &checkpoint.Keyed{Backend: "b"}
	for _, name := range files {
		if !strings.HasSuffix(name, ".shared") {
			name = fmt.Sprintf("%s-%d-a%d-%s.shared", a.Task.Vertex, a.Task.Subtask, a.Attempt, name)
		}
		k.Files = append(k.Files, checkpoint.SharedFile{Name: name, Path: checkpoint.SharedPath(name)})
	}
	return k
}

// sharedFiles is metadata of a checkpoint in which one task has state in shared files.
func sharedFiles(a job.AttemptID, files []string) []checkpoint.VertexState {
	return []checkpoint.VertexState{{Vertex: a.Task.Vertex, Subtasks: []checkpoint.SubtaskState{
		{Operators: []checkpoint.OperatorState{{Operator: "o", Keyed: sharedState(a, files)}}},
	}}}
}
