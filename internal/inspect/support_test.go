package inspect

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// sample is a checkpoint with inline state, state in files, two subtasks, and the bytes of its files by name.
func sample() (*checkpoint.Metadata, map[string][]byte) {
	files := map[string][]byte{}
	keyed := func(subtask int, name, data string) *checkpoint.Keyed {
		r := job.KeyGroups(subtask, 2, 4)
		before := len(files[name])
		files[name] = append(files[name], data...)
		return &checkpoint.Keyed{
			Handle: checkpoint.FileHandle(name, int64(before), []byte(data)), Range: r, Offsets: []int64{0, 1, int64(len(data))},
			States: []checkpoint.StateSchema{{Name: "stats", Kind: "value", KeyType: "string", ValueType: "struct{sum:int64}"}},
		}
	}
	items := func(name, data string) *checkpoint.Items {
		before := len(files[name])
		files[name] = append(files[name], data...)
		return &checkpoint.Items{Handle: checkpoint.FileHandle(name, int64(before), []byte(data)), Offsets: []int64{0, 2, int64(len(data))}}
	}
	const one, two = "sums-0-a1-c7.state", "sums-1-a1-c7.state"
	md := &checkpoint.Metadata{
		Job: "2f6c", JobName: "flights", Params: map[string]string{"input": "/data"}, ID: 7, Kind: checkpoint.Checkpoint,
		Timestamp: time.UnixMilli(1_700_000_000_123).UTC(), Fingerprint: "abcdef", Epoch: 3,
		Vertices: []checkpoint.VertexState{
			{
				Vertex: "flights", Parallelism: 1, MaxParallelism: 4,
				Operators: []job.Operator{{ID: "flights", Kind: "source", Signature: "Flight", Stateful: true}, {ID: "parse", Kind: "map"}},
				Subtasks: []checkpoint.SubtaskState{{Ended: true, Operators: []checkpoint.OperatorState{
					{Operator: "flights", Items: &checkpoint.Items{Handle: checkpoint.InlineHandle([]byte("abcde")), Offsets: []int64{0, 2, 5}}},
				}}},
			},
			{
				Vertex: "sums", Parallelism: 2, MaxParallelism: 4,
				Operators: []job.Operator{{ID: "sums", Kind: "aggregate", States: []string{"stats"}, Stateful: true}, {ID: "out", Kind: "sink", Stateful: true}},
				Subtasks: []checkpoint.SubtaskState{
					{Subtask: 0, Operators: []checkpoint.OperatorState{{Operator: "sums", Keyed: keyed(0, one, "keyed 0")}, {Operator: "out", Items: items(one, "items")}}},
					{Subtask: 1, Operators: []checkpoint.OperatorState{{Operator: "sums", Keyed: keyed(1, two, "keyed one")}}},
				},
			},
		},
	}
	return md, files
}

// store writes a checkpoint into dir.
func store(t *testing.T, dir string, md *checkpoint.Metadata, files map[string][]byte) {
	t.Helper()
	data, err := checkpoint.EncodeMetadata(md)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, checkpoint.MetadataFile), data)
	for name, data := range files {
		write(t, filepath.Join(dir, name), data)
	}
}

func write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
