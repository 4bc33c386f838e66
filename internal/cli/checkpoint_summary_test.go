package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
)

func TestSpreadOf_PercentilesAreValuesThatOccur(t *testing.T) {
	var hundred []int
	for i := range 100 {
		hundred = append(hundred, 100-i)
	}
	for _, c := range []struct {
		values []int
		want   spread[int]
	}{
		{[]int{7}, spread[int]{7, 7, 7, 7, 7}},
		{[]int{2, 1}, spread[int]{1, 1, 2, 2, 2}},
		{hundred, spread[int]{1, 50, 90, 99, 100}},
	} {
		if got := spreadOf(c.values); got != c.want {
			t.Errorf("%d values: %+v, want %+v", len(c.values), got, c.want)
		}
	}
}

func TestCheckpointSummary_CountsCompletedCheckpointsOnly(t *testing.T) {
	of := func(kind checkpoint.Kind, state gateway.CheckpointState, took time.Duration, size int64) gateway.CheckpointStatus {
		return gateway.CheckpointStatus{Kind: kind, State: state, Duration: took, StateBytes: size}
	}
	var out strings.Builder
	writeCheckpointSummary(&out, []gateway.CheckpointStatus{
		of(checkpoint.Checkpoint, gateway.CheckpointCompleted, 30*time.Millisecond, 3072), of(checkpoint.Savepoint, gateway.CheckpointCompleted, time.Hour, 1<<40),
		of(checkpoint.Checkpoint, gateway.CheckpointAborted, time.Hour, 0), of(checkpoint.Checkpoint, gateway.CheckpointCompleted, 10*time.Millisecond, 1024),
	})
	want := `
duration of 2 completed checkpoints: min 10ms, avg 20ms, p50 10ms, p90 30ms, p99 30ms, max 30ms
size: min 1.0 KiB, avg 2.0 KiB, p50 1.0 KiB, p90 3.0 KiB, p99 3.0 KiB, max 3.0 KiB
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	out.Reset()
	if writeCheckpointSummary(&out, nil); out.Len() != 0 {
		t.Errorf("of nothing: %q", out.String())
	}
}
