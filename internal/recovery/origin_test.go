package recovery

import (
	"testing"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// E7: what the checkpoint says wins over the default, and not over the job's own choice.
func TestRestorePath_GivesItsMaxParallelism(t *testing.T) {
	keyed := &checkpoint.Keyed{Range: job.KeyGroupRange{End: 32}, Offsets: make([]int64, 33)}
	from := &checkpoint.Choice{Metadata: &checkpoint.Metadata{Vertices: []checkpoint.VertexState{{
		Parallelism: 1, MaxParallelism: 32, Subtasks: []checkpoint.SubtaskState{{Operators: []checkpoint.OperatorState{{Operator: "count", Keyed: keyed}}}},
	}}}}
	for _, c := range []struct {
		parallelism, max, want int
		err                    string
	}{
		{2, 0, 32, ""}, {32, 0, 32, ""}, {2, 64, 64, ""},
		{33, 0, 32, "--parallelism is 33, and the keyed state in /sp has 32 key groups (choose --parallelism 32 or less)"},
	} {
		s := gateway.Submission{RestorePath: "/sp", Options: job.Options{Parallelism: c.parallelism, MaxParallelism: c.max}}
		got, err := Adopt(s, from)
		if got.MaxParallelism != c.want || c.err == "" && err != nil || c.err != "" && (err == nil || err.Error() != c.err) {
			t.Errorf("%+v: max parallelism %d, %v", c, got.MaxParallelism, err)
		}
	}
}
