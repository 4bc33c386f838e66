package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/cli/view"
	"github.com/weirstream/weir/internal/gateway"
)

const testNow = 1_700_000_010_000

// testHistory is a history with one checkpoint of each kind, newest first, and older ones that must not be taken for them.
func testHistory() gateway.CheckpointHistory {
	at := time.UnixMilli(testNow).Add(-10 * time.Second)
	of := func(id checkpoint.ID, kind checkpoint.Kind, state gateway.CheckpointState, failure string) gateway.CheckpointStatus {
		return gateway.CheckpointStatus{ID: id, Kind: kind, State: state, Triggered: at, Duration: 20 * time.Millisecond, StateBytes: 2048, Failure: failure}
	}
	return gateway.CheckpointHistory{
		CheckpointCounts: gateway.CheckpointCounts{Completed: 4, Failed: 2, InProgress: 1, Restored: 2},
		LastRestore:      &gateway.RestoreStatus{ID: 3, Kind: checkpoint.Savepoint, Path: "/sp", Time: at},
		Summary: checkpoint.CompletedSummary{
			Duration:   checkpoint.Summarize([]time.Duration{30 * time.Millisecond, 10 * time.Millisecond}),
			Alignment:  checkpoint.Summarize([]time.Duration{time.Millisecond, 3 * time.Millisecond}),
			StateBytes: checkpoint.Summarize([]int64{1024, 3072}),
		},
		Checkpoints: []gateway.CheckpointStatus{
			of(9, checkpoint.Checkpoint, gateway.CheckpointPending, ""), of(8, checkpoint.Checkpoint, gateway.CheckpointAborted, "EXPIRED: too slow"),
			of(7, checkpoint.Savepoint, gateway.CheckpointCompleted, ""), of(6, checkpoint.Checkpoint, gateway.CheckpointCompleted, ""),
			of(5, checkpoint.Checkpoint, gateway.CheckpointCompleted, ""), of(4, checkpoint.Savepoint, gateway.CheckpointCompleted, ""),
		},
	}
}

func TestCheckpointStats_SaysWhatMatters(t *testing.T) {
	var out strings.Builder
	writeCheckpointStats(&out, testHistory(), time.UnixMilli(testNow))
	want := `Checkpoints:       4 completed, 2 failed, 1 in progress
Latest completed:  6, triggered 10s ago, took 20ms, 2.0 KiB
Latest failed:     8, triggered 10s ago, took 20ms, 2.0 KiB, EXPIRED: too slow
Latest savepoint:  7, triggered 10s ago, took 20ms, 2.0 KiB
Restored:          2 times, the latest from savepoint 3, 10s ago

Of the latest 2 completed checkpoints:
                   MIN      AVG      P50      P90      P95      P99      P99.9    MAX
duration           10ms     20ms     10ms     30ms     30ms     30ms     30ms     30ms
longest alignment  1ms      2ms      1ms      3ms      3ms      3ms      3ms      3ms
size               1.0 KiB  2.0 KiB  1.0 KiB  3.0 KiB  3.0 KiB  3.0 KiB  3.0 KiB  3.0 KiB
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	out.Reset()
	writeCheckpointStats(&out, gateway.CheckpointHistory{}, time.UnixMilli(testNow))
	if want := "Checkpoints:  0 completed, 0 failed, 0 in progress\n"; out.String() != want {
		t.Errorf("of nothing: %q, want %q", out.String(), want)
	}
}

func TestSummaryLines(t *testing.T) {
	var out strings.Builder
	writeSummaryLines(&out, testHistory().Summary)
	want := `
duration of 2 completed checkpoints: min 10ms, avg 20ms, p50 10ms, p90 30ms, p95 30ms, p99 30ms, p99.9 30ms, max 30ms
longest alignment: min 1ms, avg 2ms, p50 1ms, p90 3ms, p95 3ms, p99 3ms, p99.9 3ms, max 3ms
size: min 1.0 KiB, avg 2.0 KiB, p50 1.0 KiB, p90 3.0 KiB, p95 3.0 KiB, p99 3.0 KiB, p99.9 3.0 KiB, max 3.0 KiB
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	out.Reset()
	if writeSummaryLines(&out, checkpoint.CompletedSummary{}); out.Len() != 0 {
		t.Errorf("of nothing: %q", out.String())
	}
}

func TestCheckpointStats_JSONHasTheLatestOfEachKind(t *testing.T) {
	v := view.OfCheckpointStats(gateway.JobStatus{ID: "j"}, testHistory())
	if v.LatestCompleted.ID != 6 || v.LatestFailed.ID != 8 || v.LatestSavepoint.ID != 7 || v.LastRestore.ID != 3 {
		t.Errorf("latest: completed %d, failed %d, savepoint %d, restored %d", v.LatestCompleted.ID, v.LatestFailed.ID, v.LatestSavepoint.ID, v.LastRestore.ID)
	}
	want := view.Summary[float64]{Count: 2, Sum: 40, Min: 10, Avg: 20, P50: 10, P90: 30, P95: 30, P99: 30, P999: 30, Max: 30}
	if v.Durations != want {
		t.Errorf("durations %+v, want %+v", v.Durations, want)
	}
}
