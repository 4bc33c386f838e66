package checkpoint

import (
	"slices"
	"time"

	"github.com/weirstream/weir/internal/job"
)

// SubtaskStats describe the part of one task.
type SubtaskStats struct {
	Task     job.TaskID
	Acked    bool
	Finished bool          // the task had finished: there was nothing to wait for
	Late     bool          // its ack came when the checkpoint was aborted already; Latency and Metrics are known all the same
	Latency  time.Duration // from trigger to ack
	Metrics  Metrics
}

// VertexStats describe the parts of the tasks of one vertex.
type VertexStats struct {
	Vertex  job.VertexID
	Tasks   int                         // that have a part in the checkpoint
	Acked   int                         // of Tasks; the others are not in the summaries
	Latency StatsSummary[time.Duration] // from trigger to ack
	Metrics MetricsSummary
}

// PerVertex describes the parts of the vertices; those of a vertex stand together.
func PerVertex(rest []SubtaskStats) []VertexStats {
	var out []VertexStats
	for len(rest) > 0 {
		vertex := rest[0].Task.Vertex
		n := slices.IndexFunc(rest, func(t SubtaskStats) bool { return t.Task.Vertex != vertex })
		if n < 0 {
			n = len(rest)
		}
		out = append(out, vertexStats(vertex, rest[:n]))
		rest = rest[n:]
	}
	return out
}

func vertexStats(vertex job.VertexID, tasks []SubtaskStats) VertexStats {
	out := VertexStats{Vertex: vertex}
	var latencies []time.Duration
	var metrics []Metrics
	for _, t := range tasks {
		if t.Acked || !t.Finished {
			out.Tasks++
		}
		if t.Acked {
			latencies, metrics = append(latencies, t.Latency), append(metrics, t.Metrics)
		}
	}
	out.Acked = len(metrics)
	out.Latency, out.Metrics = Summarize(latencies), SummarizeMetrics(metrics)
	return out
}
