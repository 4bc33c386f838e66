package rpc

import (
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rpc/pb"
)

func encodeRescaleJob(r gateway.RescaleJob) *pb.RescaleJobRequest {
	return &pb.RescaleJobRequest{
		JobId: string(r.Job), LeaderEpoch: uint64(r.Epoch), Parallelism: encodeInt(r.Parallelism), Vertices: encodeEach(r.Vertices),
		DryRun: r.DryRun, WaitMs: encodeDuration(r.Wait, time.Millisecond),
	}
}

// decodeRescaleJob does not validate: which parallelism a job may have is the job master's to say.
func decodeRescaleJob(p *pb.RescaleJobRequest) (gateway.RescaleJob, error) {
	id, err := decodeJobID(p.GetJobId())
	return gateway.RescaleJob{
		Job: id, Epoch: job.LeaderEpoch(p.GetLeaderEpoch()), Parallelism: int(p.GetParallelism()), Vertices: decodeEach[job.VertexID](p.GetVertices()),
		DryRun: p.GetDryRun(), Wait: decodeDuration(p.GetWaitMs(), time.Millisecond),
	}, err
}

func encodeRescaleResult(r gateway.RescaleResult) *pb.RescaleJobResponse {
	e := r.Estimate
	out := &pb.RescaleJobResponse{Estimate: &pb.RescaleEstimate{
		CheckpointId: int64(e.Checkpoint), Vertices: each(e.Vertices, encodeVertexRescale), SlotsNeeded: encodeInt(e.SlotsNeeded),
		SlotsHeld: encodeInt(e.SlotsHeld), SlotsFree: encodeInt(e.SlotsFree), StateBytes: e.StateBytes, MovedBytes: e.MovedBytes,
		Tasks: each(e.Tasks, encodeTaskRead), CheckpointDurationUs: encodeDuration(e.CheckpointDuration, time.Microsecond),
		PauseUs: encodeDuration(e.Pause, time.Microsecond),
	}}
	if x := r.Report; x != nil {
		out.Report = &pb.RescaleReport{
			CheckpointId: int64(x.Checkpoint), CheckpointDurationUs: encodeDuration(x.CheckpointDuration, time.Microsecond),
			PauseUs: encodeDuration(x.Pause, time.Microsecond), MovedBytes: x.Moved, StayedBytes: x.Stayed,
		}
	}
	return out
}

func decodeRescaleResult(p *pb.RescaleJobResponse) gateway.RescaleResult {
	e := p.GetEstimate()
	out := gateway.RescaleResult{Estimate: gateway.RescaleEstimate{
		Checkpoint: checkpoint.ID(e.GetCheckpointId()), Vertices: each(e.GetVertices(), decodeVertexRescale), SlotsNeeded: int(e.GetSlotsNeeded()),
		SlotsHeld: int(e.GetSlotsHeld()), SlotsFree: int(e.GetSlotsFree()), StateBytes: e.GetStateBytes(), MovedBytes: e.GetMovedBytes(),
		Tasks: each(e.GetTasks(), decodeTaskRead), CheckpointDuration: decodeDuration(e.GetCheckpointDurationUs(), time.Microsecond),
		Pause: decodeDuration(e.GetPauseUs(), time.Microsecond),
	}}
	if x := p.GetReport(); x != nil {
		out.Report = &gateway.RescaleReport{
			Checkpoint: checkpoint.ID(x.CheckpointId), CheckpointDuration: decodeDuration(x.CheckpointDurationUs, time.Microsecond),
			Pause: decodeDuration(x.PauseUs, time.Microsecond), Moved: x.MovedBytes, Stayed: x.StayedBytes,
		}
	}
	return out
}

func encodeVertexRescale(v gateway.VertexRescale) *pb.VertexRescale {
	return &pb.VertexRescale{VertexId: string(v.Vertex), From: encodeInt(v.From), To: encodeInt(v.To)}
}

func decodeVertexRescale(p *pb.VertexRescale) gateway.VertexRescale {
	return gateway.VertexRescale{Vertex: job.VertexID(p.GetVertexId()), From: int(p.GetFrom()), To: int(p.GetTo())}
}

func encodeTaskRead(r gateway.TaskRead) *pb.TaskRead {
	return &pb.TaskRead{VertexId: string(r.Task.Vertex), Subtask: encodeInt(r.Task.Subtask), Bytes: r.Bytes, MovedBytes: r.Moved}
}

func decodeTaskRead(p *pb.TaskRead) gateway.TaskRead {
	return gateway.TaskRead{Task: job.TaskID{Vertex: job.VertexID(p.GetVertexId()), Subtask: int(p.GetSubtask())}, Bytes: p.GetBytes(), Moved: p.GetMovedBytes()}
}
