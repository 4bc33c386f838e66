package checkpoint

import (
	"time"

	"github.com/weirstream/weir/internal/job"
)

// sample is metadata in which every field of the format is set.
func sample() *Metadata {
	keyed := func(subtask int) *Keyed {
		r := job.KeyGroups(subtask, 2, 8)
		data := make([]byte, 10)
		return &Keyed{
			Handle:  FileHandle("per-origin-0-a1-c7.state", int64(100*subtask), data),
			Range:   r,
			Offsets: []int64{0, 3, 3, 10, 10},
			States:  []StateSchema{{Name: "stats", Kind: "value", KeyType: "string", ValueType: "main.Stats"}},
		}
	}
	return &Metadata{
		Job: "2f6c", JobName: "flights", Params: map[string]string{"output": "/out", "input": "/data", "empty": ""},
		ID: 7, Kind: Checkpoint, Timestamp: time.UnixMilli(1_700_000_000_123).UTC(), Fingerprint: "abcdef", Epoch: 3,
		Vertices: []VertexState{
			{
				Vertex: "flights", Parallelism: 1, MaxParallelism: 8,
				Operators: []job.Operator{{ID: "flights", Kind: "source", Signature: "main.Flight", Stateful: true}, {ID: "parse", Kind: "map"}},
				Subtasks: []SubtaskState{{Subtask: 0, Ended: true, Operators: []OperatorState{
					{Operator: "flights", Items: &Items{Handle: InlineHandle([]byte("abcde")), Offsets: []int64{0, 2, 5}}},
				}}},
			},
			{
				Vertex: "per-origin", Parallelism: 2, MaxParallelism: 8,
				Operators: []job.Operator{{ID: "per-origin", Kind: "aggregate", Signature: "string -> main.Stats", States: []string{"stats", ""}, Stateful: true}},
				Subtasks: []SubtaskState{
					{Subtask: 0, Operators: []OperatorState{{Operator: "per-origin", Keyed: keyed(0)}}},
					{Subtask: 1, Operators: []OperatorState{{Operator: "per-origin", Keyed: keyed(1)}}},
				},
			},
		},
	}
}

// compressedSample has what version 2 of the format has more.
func compressedSample() *Metadata {
	md := sample()
	k := md.Vertices[1].Subtasks[0].Operators[0].Keyed
	k.Handle.Compression, k.Handle.RawLength = Zstd, 1234
	k.GroupCRC = []uint32{1, 0, 0xffffffff, 4}
	md.Vertices[0].Subtasks[0].Operators[0].Items.Handle.Compression = Zstd
	return md
}
