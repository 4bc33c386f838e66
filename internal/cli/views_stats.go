package cli

import (
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
)

// checkpointStatsView is what is measured of the checkpoints of a job.
type checkpointStatsView struct {
	Job             string               `json:"job_id"`
	Completed       int                  `json:"checkpoints_completed"`
	Failed          int                  `json:"checkpoints_failed"`
	InProgress      int                  `json:"checkpoints_in_progress"`
	Restored        int                  `json:"checkpoints_restored"`
	LatestCompleted *checkpointView      `json:"latest_completed,omitempty"`
	LatestFailed    *checkpointView      `json:"latest_failed,omitempty"`
	LatestSavepoint *checkpointView      `json:"latest_savepoint,omitempty"`
	LastRestore     *restoreView         `json:"last_restore,omitempty"`
	Durations       summaryView[float64] `json:"durations_ms"`
	Alignments      summaryView[float64] `json:"alignments_ms"`
	Sizes           summaryView[int64]   `json:"sizes_bytes"`
}

// restoreView is what tasks were started from.
type restoreView struct {
	ID   int64  `json:"checkpoint_id"`
	Kind string `json:"kind"`
	Path string `json:"path"`
	Time string `json:"restored_at"`
}

// summaryView describes many measurements.
type summaryView[T any] struct {
	Count int `json:"count"`
	Sum   T   `json:"sum"`
	Min   T   `json:"min"`
	Avg   T   `json:"avg"`
	P50   T   `json:"p50"`
	P90   T   `json:"p90"`
	P95   T   `json:"p95"`
	P99   T   `json:"p99"`
	P999  T   `json:"p999"`
	Max   T   `json:"max"`
}

// vertexCheckpointView is the part of a vertex in a checkpoint.
type vertexCheckpointView struct {
	Vertex       string               `json:"vertex_id"`
	Tasks        int                  `json:"tasks"`
	Acknowledged int                  `json:"tasks_acknowledged"`
	Latencies    summaryView[float64] `json:"latencies_ms"`
	StartDelays  summaryView[float64] `json:"start_delays_ms"`
	Alignments   summaryView[float64] `json:"alignments_ms"`
	Syncs        summaryView[float64] `json:"syncs_ms"`
	Asyncs       summaryView[float64] `json:"asyncs_ms"`
	Sizes        summaryView[int64]   `json:"sizes_bytes"`
}

func viewSummary[T checkpoint.Quantity, V any](s checkpoint.StatsSummary[T], unit func(T) V) summaryView[V] {
	return summaryView[V]{
		s.Count, unit(s.Sum), unit(s.Min), unit(s.Avg), unit(s.P50), unit(s.P90), unit(s.P95), unit(s.P99), unit(s.P999), unit(s.Max),
	}
}

func viewDurations(s checkpoint.StatsSummary[time.Duration]) summaryView[float64] {
	return viewSummary(s, viewMS)
}

func viewSizes(s checkpoint.StatsSummary[int64]) summaryView[int64] {
	return viewSummary(s, func(n int64) int64 { return n })
}

func viewRestore(r gateway.RestoreStatus) restoreView {
	return restoreView{int64(r.ID), r.Kind.String(), r.Path, viewTime(r.Time)}
}

func viewVertexCheckpoint(v gateway.VertexCheckpoint) vertexCheckpointView {
	m := v.Metrics
	return vertexCheckpointView{
		Vertex: string(v.Vertex), Tasks: v.Tasks, Acknowledged: v.Acknowledged, Latencies: viewDurations(v.Latency), StartDelays: viewDurations(m.StartDelay),
		Alignments: viewDurations(m.Alignment), Syncs: viewDurations(m.Sync), Asyncs: viewDurations(m.Async), Sizes: viewSizes(m.StateBytes),
	}
}

func viewCheckpointStats(s gateway.JobStatus, h gateway.CheckpointHistory) checkpointStatsView {
	return checkpointStatsView{
		Job: string(s.ID), Completed: h.Completed, Failed: h.Failed, InProgress: h.InProgress, Restored: h.Restored,
		LatestCompleted: viewOptional(newest(h, isCompletedCheckpoint), viewCheckpoint), LatestFailed: viewOptional(newest(h, isFailed), viewCheckpoint),
		LatestSavepoint: viewOptional(newest(h, isSavepoint), viewCheckpoint), LastRestore: viewOptional(h.LastRestore, viewRestore),
		Durations: viewDurations(h.Summary.Duration), Alignments: viewDurations(h.Summary.Alignment), Sizes: viewSizes(h.Summary.StateBytes),
	}
}

// newest is the newest checkpoint of a kind; nil: there is none.
func newest(h gateway.CheckpointHistory, is func(gateway.CheckpointStatus) bool) *gateway.CheckpointStatus {
	for _, c := range h.Checkpoints { // newest first
		if is(c) {
			return &c
		}
	}
	return nil
}

func isCompletedCheckpoint(c gateway.CheckpointStatus) bool {
	return c.State == gateway.CheckpointCompleted && c.Kind == checkpoint.Checkpoint
}

func isSavepoint(c gateway.CheckpointStatus) bool {
	return c.State == gateway.CheckpointCompleted && c.Kind == checkpoint.Savepoint
}

func isFailed(c gateway.CheckpointStatus) bool { return c.State == gateway.CheckpointAborted }
