package rpc

import (
	"errors"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rpc/pb"
)

// Statuses are shown to people, by builds that may be older than the one that made them: their decoders take what they do not know as UNKNOWN.

func encodeSubmission(r gateway.Submission) *pb.SubmitJobRequest {
	return &pb.SubmitJobRequest{
		JobName: r.JobName, Params: r.Params, Options: encodeOptions(r.Options), RestorePath: r.RestorePath,
		AllowNonRestoredState: r.AllowNonRestored, Fallback: r.Fallback, Claim: r.Claim,
	}
}

func decodeSubmission(p *pb.SubmitJobRequest) (gateway.Submission, error) {
	r := gateway.Submission{
		JobName: p.GetJobName(), Params: p.GetParams(), Options: decodeOptions(p.GetOptions()), RestorePath: p.GetRestorePath(),
		AllowNonRestored: p.GetAllowNonRestoredState(), Fallback: p.GetFallback(), Claim: p.GetClaim(),
	}
	if r.JobName == "" {
		return r, errors.New("no job name")
	}
	return r, nil
}

func decodeStopJob(p *pb.StopJobRequest) (gateway.StopJob, error) {
	r := gateway.StopJob{Epoch: job.LeaderEpoch(p.GetLeaderEpoch()), Directory: p.GetDirectory(), Mode: job.StopSuspend}
	var err error
	if r.Format, err = decodeFormat(p.GetFormat()); err != nil {
		return r, err
	}
	if r.Job, err = decodeJobID(p.GetJobId()); err != nil || p.GetMode() == pb.StopMode_STOP_MODE_UNSPECIFIED {
		return r, err
	}
	r.Mode, err = decodeEnum[job.StopMode]("stop mode", p.GetMode(), pb.StopMode_name)
	return r, err
}

func decodeTriggerSavepoint(p *pb.TriggerSavepointRequest) (gateway.TriggerSavepoint, error) {
	r := gateway.TriggerSavepoint{Epoch: job.LeaderEpoch(p.GetLeaderEpoch()), Directory: p.GetDirectory()}
	var err error
	if r.Format, err = decodeFormat(p.GetFormat()); err != nil {
		return r, err
	}
	r.Job, err = decodeJobID(p.GetJobId())
	return r, err
}

// decodeFormat takes the unspecified one for none.
func decodeFormat(p pb.SavepointFormat) (job.SavepointFormat, error) {
	if p == pb.SavepointFormat_SAVEPOINT_FORMAT_UNSPECIFIED {
		return job.FormatNone, nil
	}
	return decodeEnum[job.SavepointFormat]("savepoint format", p, pb.SavepointFormat_name)
}

func encodeJobStatus(s gateway.JobStatus) *pb.JobStatus {
	p := &pb.JobStatus{
		JobId: string(s.ID), JobName: s.Name, State: encodeEnum[pb.JobState](s.State), Detail: encodeText(s.Detail),
		SubmittedMs: encodeTime(s.Submitted), EndedMs: encodeTime(s.Ended), Restarts: encodeInt(s.Restarts),
		Vertices:             each(s.Vertices, encodeVertexStatus),
		CheckpointsCompleted: int64(s.Completed), CheckpointsFailed: int64(s.Failed),
		CheckpointsInProgress: int64(s.InProgress), CheckpointsRestored: int64(s.Restored), LastRestore: encodeRestore(s.LastRestore),
		LeaderEpoch: uint64(s.Epoch), Fingerprint: s.Fingerprint, Degraded: encodeText(s.Degraded), Backlog: encodeText(s.Backlog),
		StoppedWith: s.StoppedWith,
	}
	if s.Last != nil {
		p.LastCheckpoint = encodeCheckpointStatus(*s.Last)
	}
	return p
}

func decodeJobStatus(p *pb.JobStatus) gateway.JobStatus {
	s := gateway.JobStatus{
		ID: job.ID(p.GetJobId()), Name: p.GetJobName(), State: showEnum[job.State](p.GetState(), pb.JobState_name), Detail: p.GetDetail(),
		Submitted: decodeTime(p.GetSubmittedMs()), Ended: decodeTime(p.GetEndedMs()), Restarts: int(p.GetRestarts()),
		Vertices: each(p.GetVertices(), decodeVertexStatus),
		CheckpointCounts: gateway.CheckpointCounts{
			Completed: int(p.GetCheckpointsCompleted()), Failed: int(p.GetCheckpointsFailed()),
			InProgress: int(p.GetCheckpointsInProgress()), Restored: int(p.GetCheckpointsRestored()),
		},
		LastRestore: decodeRestore(p.GetLastRestore()),
		Epoch:       job.LeaderEpoch(p.GetLeaderEpoch()), Fingerprint: p.GetFingerprint(),
		Conditions: gateway.Conditions{Degraded: p.GetDegraded(), Backlog: p.GetBacklog(), StoppedWith: p.GetStoppedWith()},
	}
	if p.GetLastCheckpoint() != nil {
		last := decodeCheckpointStatus(p.LastCheckpoint)
		s.Last = &last
	}
	return s
}

func encodeVertexStatus(s gateway.VertexStatus) *pb.VertexStatus {
	return &pb.VertexStatus{
		VertexId: string(s.ID), Name: s.Name, Parallelism: encodeInt(s.Parallelism), Source: s.Source, Tasks: each(s.Tasks, encodeTaskStatus),
	}
}

func decodeVertexStatus(p *pb.VertexStatus) gateway.VertexStatus {
	return gateway.VertexStatus{
		ID: job.VertexID(p.GetVertexId()), Name: p.GetName(), Parallelism: int(p.GetParallelism()), Source: p.GetSource(), Tasks: each(p.GetTasks(), decodeTaskStatus),
	}
}

func encodeTaskStatus(s gateway.TaskStatus) *pb.TaskStatus {
	return &pb.TaskStatus{
		Attempt: encodeAttempt(s.Attempt), State: encodeEnum[pb.TaskState](s.State), ExecutorId: string(s.Executor),
		Failure: encodeText(s.Failure), RecordsIn: s.RecordsIn, RecordsOut: s.RecordsOut,
	}
}

func decodeTaskStatus(p *pb.TaskStatus) gateway.TaskStatus {
	return gateway.TaskStatus{
		Attempt: showAttempt(p.GetAttempt()), State: showEnum[job.TaskState](p.GetState(), pb.TaskState_name),
		Executor: job.ExecutorID(p.GetExecutorId()), Failure: p.GetFailure(), RecordsIn: p.GetRecordsIn(), RecordsOut: p.GetRecordsOut(),
	}
}

func encodeJobEvent(e gateway.JobEvent) *pb.JobEvent {
	return &pb.JobEvent{TimestampMs: encodeTime(e.Time), Text: encodeText(e.Text)}
}

func decodeJobEvent(p *pb.JobEvent) gateway.JobEvent {
	return gateway.JobEvent{Time: decodeTime(p.GetTimestampMs()), Text: p.GetText()}
}

func encodeCheckpointStatus(s gateway.CheckpointStatus) *pb.CheckpointSummary {
	return &pb.CheckpointSummary{
		CheckpointId: int64(s.ID), Kind: encodeEnum[pb.CheckpointKind](s.Kind), State: encodeEnum[pb.CheckpointState](s.State),
		TriggeredMs: encodeTime(s.Triggered), DurationUs: encodeDuration(s.Duration, time.Microsecond), StateBytes: s.StateBytes,
		Path: s.Path, Failure: encodeText(s.Failure), Tasks: encodeInt(s.Tasks), Acknowledged: encodeInt(s.Acknowledged),
		Restored: s.Restored, Discarded: s.Discarded,
		SentUs: encodeDuration(s.Sent, time.Microsecond), NotifiedUs: encodeDuration(s.Notified, time.Microsecond),
	}
}

func decodeCheckpointStatus(p *pb.CheckpointSummary) gateway.CheckpointStatus {
	return gateway.CheckpointStatus{
		ID: checkpoint.ID(p.GetCheckpointId()), Kind: showEnum[checkpoint.Kind](p.GetKind(), pb.CheckpointKind_name),
		State:     showEnum[gateway.CheckpointState](p.GetState(), pb.CheckpointState_name),
		Triggered: decodeTime(p.GetTriggeredMs()), Duration: decodeDuration(p.GetDurationUs(), time.Microsecond), StateBytes: p.GetStateBytes(),
		Path: p.GetPath(), Failure: p.GetFailure(), Tasks: int(p.GetTasks()), Acknowledged: int(p.GetAcknowledged()),
		Restored: p.GetRestored(), Discarded: p.GetDiscarded(),
		Sent: decodeDuration(p.GetSentUs(), time.Microsecond), Notified: decodeDuration(p.GetNotifiedUs(), time.Microsecond),
	}
}

func encodeSubtaskCheckpoint(s gateway.SubtaskCheckpoint) *pb.SubtaskCheckpointStatus {
	return &pb.SubtaskCheckpointStatus{
		VertexId: string(s.Task.Vertex), Subtask: encodeInt(s.Task.Subtask), Acknowledged: s.Acknowledged, Late: s.Late,
		AckUs: encodeDuration(s.Latency, time.Microsecond), Metrics: encodeMetrics(s.Metrics),
	}
}

func decodeSubtaskCheckpoint(p *pb.SubtaskCheckpointStatus) gateway.SubtaskCheckpoint {
	return gateway.SubtaskCheckpoint{
		Task:         job.TaskID{Vertex: job.VertexID(p.GetVertexId()), Subtask: int(p.GetSubtask())},
		Acknowledged: p.GetAcknowledged(), Late: p.GetLate(), Latency: decodeDuration(p.GetAckUs(), time.Microsecond), Metrics: decodeMetrics(p.GetMetrics()),
	}
}

func encodeExecutorStatus(s gateway.ExecutorStatus) *pb.TaskExecutorStatus {
	return &pb.TaskExecutorStatus{
		ExecutorId: string(s.ID), Address: s.Address, Slots: encodeInt(s.Slots), FreeSlots: encodeInt(s.FreeSlots), Jobs: s.Jobs,
		RegisteredMs: encodeTime(s.Registered), LastHeartbeatMs: encodeTime(s.Heartbeat), Version: s.Version,
	}
}

func decodeExecutorStatus(p *pb.TaskExecutorStatus) gateway.ExecutorStatus {
	return gateway.ExecutorStatus{
		ID: job.ExecutorID(p.GetExecutorId()), Address: p.GetAddress(), Slots: int(p.GetSlots()), FreeSlots: int(p.GetFreeSlots()),
		Jobs: p.GetJobs(), Registered: decodeTime(p.GetRegisteredMs()), Heartbeat: decodeTime(p.GetLastHeartbeatMs()), Version: p.GetVersion(),
	}
}
