package view

import (
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
)

// CheckpointStats is what is measured of the checkpoints of a job.
type CheckpointStats struct {
	Job             string           `json:"job_id"`
	Completed       int              `json:"checkpoints_completed"`
	Failed          int              `json:"checkpoints_failed"`
	InProgress      int              `json:"checkpoints_in_progress"`
	Restored        int              `json:"checkpoints_restored"`
	LatestCompleted *Checkpoint      `json:"latest_completed,omitempty"`
	LatestFailed    *Checkpoint      `json:"latest_failed,omitempty"`
	LatestSavepoint *Checkpoint      `json:"latest_savepoint,omitempty"`
	LastRestore     *Restore         `json:"last_restore,omitempty"`
	Durations       Summary[float64] `json:"durations_ms"`
	Alignments      Summary[float64] `json:"alignments_ms"`
	Sizes           Summary[int64]   `json:"sizes_bytes"`
}

// Restore is what tasks were started from.
type Restore struct {
	ID   int64  `json:"checkpoint_id"`
	Kind string `json:"kind"`
	Path string `json:"path"`
	Time string `json:"restored_at"`
}

// Summary describes many measurements.
type Summary[T any] struct {
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

// VertexCheckpoint is the part of a vertex in a checkpoint.
type VertexCheckpoint struct {
	Vertex       string           `json:"vertex_id"`
	Tasks        int              `json:"tasks"`
	Acknowledged int              `json:"tasks_acknowledged"`
	Latencies    Summary[float64] `json:"latencies_ms"`
	StartDelays  Summary[float64] `json:"start_delays_ms"`
	Alignments   Summary[float64] `json:"alignments_ms"`
	Syncs        Summary[float64] `json:"syncs_ms"`
	Asyncs       Summary[float64] `json:"asyncs_ms"`
	Sizes        Summary[int64]   `json:"sizes_bytes"`
}

func ofSummary[T checkpoint.Quantity, V any](s checkpoint.StatsSummary[T], unit func(T) V) Summary[V] {
	return Summary[V]{
		s.Count, unit(s.Sum), unit(s.Min), unit(s.Avg), unit(s.P50), unit(s.P90), unit(s.P95), unit(s.P99), unit(s.P999), unit(s.Max),
	}
}

func ofDurations(s checkpoint.StatsSummary[time.Duration]) Summary[float64] {
	return ofSummary(s, MS)
}

func ofSizes(s checkpoint.StatsSummary[int64]) Summary[int64] {
	return ofSummary(s, func(n int64) int64 { return n })
}

func ofRestore(r gateway.RestoreStatus) Restore {
	return Restore{int64(r.ID), r.Kind.String(), r.Path, Time(r.Time)}
}

// OfVertexCheckpoint is the view of the part of a vertex in a checkpoint.
func OfVertexCheckpoint(v gateway.VertexCheckpoint) VertexCheckpoint {
	m := v.Metrics
	return VertexCheckpoint{
		Vertex: string(v.Vertex), Tasks: v.Tasks, Acknowledged: v.Acknowledged, Latencies: ofDurations(v.Latency), StartDelays: ofDurations(m.StartDelay),
		Alignments: ofDurations(m.Alignment), Syncs: ofDurations(m.Sync), Asyncs: ofDurations(m.Async), Sizes: ofSizes(m.StateBytes),
	}
}

// OfCheckpointStats is the view of what is measured of the checkpoints of a job.
func OfCheckpointStats(s gateway.JobStatus, h gateway.CheckpointHistory) CheckpointStats {
	return CheckpointStats{
		Job: string(s.ID), Completed: h.Completed, Failed: h.Failed, InProgress: h.InProgress, Restored: h.Restored,
		LatestCompleted: optional(h.LatestCompleted(), OfCheckpoint), LatestFailed: optional(h.LatestFailed(), OfCheckpoint),
		LatestSavepoint: optional(h.LatestSavepoint(), OfCheckpoint), LastRestore: optional(h.LastRestore, ofRestore),
		Durations: ofDurations(h.Summary.Duration), Alignments: ofDurations(h.Summary.Alignment), Sizes: ofSizes(h.Summary.StateBytes),
	}
}
