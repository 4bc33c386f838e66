package rpc

import (
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rpc/pb"
)

func encodeCounts(c gateway.CheckpointCounts) *pb.CheckpointCounts {
	return &pb.CheckpointCounts{
		Completed: int64(c.Completed), Failed: int64(c.Failed), InProgress: int64(c.InProgress), Restored: int64(c.Restored),
	}
}

func decodeCounts(p *pb.CheckpointCounts) gateway.CheckpointCounts {
	return gateway.CheckpointCounts{
		Completed: int(p.GetCompleted()), Failed: int(p.GetFailed()), InProgress: int(p.GetInProgress()), Restored: int(p.GetRestored()),
	}
}

// encodeRestore maps none to none.
func encodeRestore(r *gateway.RestoreStatus) *pb.RestoreStatus {
	if r == nil {
		return nil
	}
	return &pb.RestoreStatus{CheckpointId: int64(r.ID), Kind: encodeEnum[pb.CheckpointKind](r.Kind), Path: r.Path, TimestampMs: encodeTime(r.Time)}
}

func decodeRestore(p *pb.RestoreStatus) *gateway.RestoreStatus {
	if p == nil {
		return nil
	}
	return &gateway.RestoreStatus{
		ID: checkpoint.ID(p.GetCheckpointId()), Kind: showEnum[checkpoint.Kind](p.GetKind(), pb.CheckpointKind_name), Path: p.GetPath(),
		Time: decodeTime(p.GetTimestampMs()),
	}
}

func encodeHistory(h gateway.CheckpointHistory) *pb.ListCheckpointsResponse {
	return &pb.ListCheckpointsResponse{
		Checkpoints: each(h.Checkpoints, encodeCheckpointStatus), Counts: encodeCounts(h.CheckpointCounts), LastRestore: encodeRestore(h.LastRestore),
		Summary: &pb.CompletedCheckpointsSummary{
			DurationUs: encodeSummary(h.Summary.Duration, encodeMicros), AlignmentUs: encodeSummary(h.Summary.Alignment, encodeMicros),
			StateBytes: encodeSummary(h.Summary.StateBytes, same),
		},
	}
}

func decodeHistory(p *pb.ListCheckpointsResponse) gateway.CheckpointHistory {
	s := p.GetSummary()
	return gateway.CheckpointHistory{
		Checkpoints: each(p.GetCheckpoints(), decodeCheckpointStatus), CheckpointCounts: decodeCounts(p.GetCounts()), LastRestore: decodeRestore(p.GetLastRestore()),
		Summary: checkpoint.CompletedSummary{
			Duration: decodeSummary(s.GetDurationUs(), decodeMicros), Alignment: decodeSummary(s.GetAlignmentUs(), decodeMicros),
			StateBytes: decodeSummary(s.GetStateBytes(), same),
		},
	}
}

func encodeDetail(d gateway.CheckpointDetail) *pb.GetCheckpointResponse {
	return &pb.GetCheckpointResponse{
		Checkpoint: encodeCheckpointStatus(d.CheckpointStatus), Subtasks: each(d.Subtasks, encodeSubtaskCheckpoint),
		Vertices: each(d.Vertices, encodeVertexCheckpoint),
	}
}

func decodeDetail(p *pb.GetCheckpointResponse) gateway.CheckpointDetail {
	return gateway.CheckpointDetail{
		CheckpointStatus: decodeCheckpointStatus(p.GetCheckpoint()), Subtasks: each(p.GetSubtasks(), decodeSubtaskCheckpoint),
		Vertices: each(p.GetVertices(), decodeVertexCheckpoint),
	}
}

func encodeVertexCheckpoint(v gateway.VertexCheckpoint) *pb.VertexCheckpointStatus {
	m := v.Metrics
	return &pb.VertexCheckpointStatus{
		VertexId: string(v.Vertex), Tasks: encodeInt(v.Tasks), Acknowledged: encodeInt(v.Acknowledged), AckUs: encodeSummary(v.Latency, encodeMicros),
		StartDelayUs: encodeSummary(m.StartDelay, encodeMicros), AlignmentUs: encodeSummary(m.Alignment, encodeMicros),
		SyncUs: encodeSummary(m.Sync, encodeMicros), AsyncUs: encodeSummary(m.Async, encodeMicros), StateBytes: encodeSummary(m.StateBytes, same),
	}
}

func decodeVertexCheckpoint(p *pb.VertexCheckpointStatus) gateway.VertexCheckpoint {
	return gateway.VertexCheckpoint{
		Vertex: job.VertexID(p.GetVertexId()), Tasks: int(p.GetTasks()), Acknowledged: int(p.GetAcknowledged()), Latency: decodeSummary(p.GetAckUs(), decodeMicros),
		Metrics: checkpoint.MetricsSummary{
			StartDelay: decodeSummary(p.GetStartDelayUs(), decodeMicros), Alignment: decodeSummary(p.GetAlignmentUs(), decodeMicros),
			Sync: decodeSummary(p.GetSyncUs(), decodeMicros), Async: decodeSummary(p.GetAsyncUs(), decodeMicros), StateBytes: decodeSummary(p.GetStateBytes(), same),
		},
	}
}

func encodeMicros(d time.Duration) int64 { return encodeDuration(d, time.Microsecond) }
func decodeMicros(n int64) time.Duration { return decodeDuration(n, time.Microsecond) }
func same(n int64) int64                 { return n }

func encodeSummary[T checkpoint.Quantity](s checkpoint.StatsSummary[T], unit func(T) int64) *pb.StatsSummary {
	return &pb.StatsSummary{
		Count: int64(s.Count), Sum: unit(s.Sum), Min: unit(s.Min), Max: unit(s.Max), Avg: unit(s.Avg),
		P50: unit(s.P50), P90: unit(s.P90), P95: unit(s.P95), P99: unit(s.P99), P999: unit(s.P999),
	}
}

func decodeSummary[T checkpoint.Quantity](p *pb.StatsSummary, unit func(int64) T) checkpoint.StatsSummary[T] {
	return checkpoint.StatsSummary[T]{
		Count: int(p.GetCount()), Sum: unit(p.GetSum()), Min: unit(p.GetMin()), Max: unit(p.GetMax()), Avg: unit(p.GetAvg()),
		P50: unit(p.GetP50()), P90: unit(p.GetP90()), P95: unit(p.GetP95()), P99: unit(p.GetP99()), P999: unit(p.GetP999()),
	}
}
