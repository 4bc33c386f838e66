package retention

import (
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// sample is checkpoint 7 of job 2f6c, which refers to one file of its own and to the given shared ones.
func sample(shared ...string) *checkpoint.Metadata {
	k := &checkpoint.Keyed{Range: job.KeyGroups(0, 1, 8), Backend: "pebble"}
	for _, name := range shared {
		k.Files = append(k.Files, checkpoint.SharedFile{Name: name, Path: checkpoint.SharedPath(name), Size: 1})
	}
	return &checkpoint.Metadata{
		Job: "2f6c", ID: 7, Kind: checkpoint.Checkpoint,
		Vertices: []checkpoint.VertexState{{
			Vertex: "per-origin", Parallelism: 1, MaxParallelism: 8, Operators: []job.Operator{{ID: "items"}, {ID: "keyed"}},
			Subtasks: []checkpoint.SubtaskState{{Operators: []checkpoint.OperatorState{
				{Operator: "items", Items: &checkpoint.Items{Handle: checkpoint.FileHandle("per-origin-0-a1-c7.state", 0, []byte("x")), Offsets: []int64{0, 1}}},
				{Operator: "keyed", Keyed: k},
			}}},
		}},
	}
}
