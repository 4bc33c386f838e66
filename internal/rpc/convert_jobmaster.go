package rpc

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rpc/pb"
)

func encodeRegistration(r gateway.Registration) *pb.RegisterTaskExecutorRequest {
	return &pb.RegisterTaskExecutorRequest{
		ExecutorId: string(r.Executor), Incarnation: r.Incarnation, Address: r.Address,
		Slots: encodeInt(r.Slots), Jobs: r.Jobs, Version: r.Version,
	}
}

func decodeRegistration(p *pb.RegisterTaskExecutorRequest) (gateway.Registration, error) {
	r := gateway.Registration{
		Executor: job.ExecutorID(p.GetExecutorId()), Incarnation: p.GetIncarnation(), Address: p.GetAddress(),
		Slots: int(p.GetSlots()), Jobs: p.GetJobs(), Version: p.GetVersion(),
	}
	switch {
	case r.Executor == "":
		return r, errors.New("no executor id")
	case r.Incarnation == "":
		return r, fmt.Errorf("executor %s has no incarnation", r.Executor)
	case r.Address == "":
		return r, fmt.Errorf("executor %s has no address", r.Executor)
	case r.Slots < 1:
		return r, fmt.Errorf("executor %s has %d slots, it needs at least 1", r.Executor, r.Slots)
	}
	return r, nil
}

func encodeRegistered(r gateway.Registered) *pb.RegisterTaskExecutorResponse {
	return &pb.RegisterTaskExecutorResponse{
		LeaderEpoch: uint64(r.Epoch), HeartbeatIntervalMs: encodeDuration(r.HeartbeatInterval, time.Millisecond), CheckpointDir: r.CheckpointDir,
	}
}

func decodeRegistered(p *pb.RegisterTaskExecutorResponse) (gateway.Registered, error) {
	r := gateway.Registered{
		Epoch: job.LeaderEpoch(p.GetLeaderEpoch()), HeartbeatInterval: decodeDuration(p.GetHeartbeatIntervalMs(), time.Millisecond),
		CheckpointDir: p.GetCheckpointDir(),
	}
	if r.HeartbeatInterval <= 0 {
		return r, fmt.Errorf("heartbeat interval is %s, it must be positive", r.HeartbeatInterval)
	}
	return r, nil
}

func encodeHeartbeat(r gateway.Heartbeat) *pb.HeartbeatRequest {
	return &pb.HeartbeatRequest{
		ExecutorId: string(r.Executor), Incarnation: r.Incarnation, LeaderEpoch: uint64(r.Epoch), Tasks: each(r.Tasks, encodeReport),
	}
}

func decodeHeartbeat(p *pb.HeartbeatRequest) (gateway.Heartbeat, error) {
	r := gateway.Heartbeat{
		Executor: job.ExecutorID(p.GetExecutorId()), Incarnation: p.GetIncarnation(), Epoch: job.LeaderEpoch(p.GetLeaderEpoch()),
	}
	if r.Executor == "" {
		return r, errors.New("no executor id")
	}
	var err error
	r.Tasks, err = tryEach("task", p.GetTasks(), decodeReport)
	return r, err
}

func encodeReport(r gateway.TaskReport) *pb.TaskReport {
	return &pb.TaskReport{
		Attempt: encodeAttempt(r.Attempt), State: encodeEnum[pb.TaskState](r.State), EndOfData: r.EndOfData,
		RecordsIn: r.RecordsIn, RecordsOut: r.RecordsOut, NotifiedCheckpointId: int64(r.NotifiedCheckpoint),
	}
}

func decodeReport(p *pb.TaskReport) (gateway.TaskReport, error) {
	r := gateway.TaskReport{
		EndOfData: p.GetEndOfData(), RecordsIn: p.GetRecordsIn(), RecordsOut: p.GetRecordsOut(),
		NotifiedCheckpoint: checkpoint.ID(p.GetNotifiedCheckpointId()),
	}
	var err error
	if r.Attempt, err = decodeAttempt(p.GetAttempt()); err != nil {
		return r, err
	}
	r.State, err = decodeTaskState(p.GetState())
	return r, err
}

func encodeHeartbeatAnswer(a gateway.HeartbeatAnswer) *pb.HeartbeatResponse {
	p := &pb.HeartbeatResponse{UnknownAttempts: encodeAttempts(a.Unknown)}
	if len(a.Completed) > 0 {
		p.CompletedCheckpoints = make(map[string]int64, len(a.Completed))
	}
	for id, completed := range a.Completed {
		p.CompletedCheckpoints[string(id)] = int64(completed)
	}
	return p
}

func decodeHeartbeatAnswer(p *pb.HeartbeatResponse) (gateway.HeartbeatAnswer, error) {
	unknown, err := decodeAttempts(p.GetUnknownAttempts())
	a := gateway.HeartbeatAnswer{Unknown: unknown}
	if len(p.GetCompletedCheckpoints()) > 0 {
		a.Completed = make(map[job.ID]checkpoint.ID, len(p.CompletedCheckpoints))
	}
	for id, completed := range p.GetCompletedCheckpoints() {
		a.Completed[job.ID(id)] = checkpoint.ID(completed)
	}
	return a, err
}

func encodeTaskUpdate(r gateway.TaskUpdate) *pb.UpdateTaskStateRequest {
	return &pb.UpdateTaskStateRequest{
		LeaderEpoch: uint64(r.Epoch), Attempt: encodeAttempt(r.Attempt), State: encodeEnum[pb.TaskState](r.State),
		Failure: encodeFailure(r.Failure), EndOfData: r.EndOfData, ProcessingBacklog: r.Backlog,
	}
}

func decodeTaskUpdate(p *pb.UpdateTaskStateRequest) (gateway.TaskUpdate, error) {
	r := gateway.TaskUpdate{Epoch: job.LeaderEpoch(p.GetLeaderEpoch()), EndOfData: p.GetEndOfData(), Backlog: p.GetProcessingBacklog()}
	var err error
	if r.Attempt, err = decodeAttempt(p.GetAttempt()); err != nil {
		return r, err
	}
	if r.State, err = decodeTaskState(p.GetState()); err != nil {
		return r, err
	}
	r.Failure, err = decodeFailure(p.GetFailure())
	return r, err
}

func encodeAck(r gateway.Ack) *pb.AcknowledgeCheckpointRequest {
	return &pb.AcknowledgeCheckpointRequest{
		LeaderEpoch: uint64(r.Epoch), Attempt: encodeAttempt(r.Attempt), CheckpointId: int64(r.ID),
		State: encodeSubtaskState(r.State), Metrics: encodeMetrics(r.Metrics),
	}
}

func decodeAck(p *pb.AcknowledgeCheckpointRequest) (gateway.Ack, error) {
	r := gateway.Ack{Epoch: job.LeaderEpoch(p.GetLeaderEpoch()), Metrics: decodeMetrics(p.GetMetrics())}
	var err error
	if r.Attempt, err = decodeAttempt(p.GetAttempt()); err != nil {
		return r, err
	}
	if r.ID, err = decodeCheckpointID(p.GetCheckpointId()); err != nil {
		return r, err
	}
	if p.GetState() == nil {
		return r, fmt.Errorf("ack of %s has no state", r.Attempt)
	}
	if r.State, err = decodeSubtaskState(p.State); err != nil {
		return r, fmt.Errorf("ack of %s: %w", r.Attempt, err)
	}
	return r, nil
}

func decodeVerdict(p *pb.AcknowledgeCheckpointResponse) (checkpoint.Verdict, error) {
	return decodeEnum[checkpoint.Verdict]("verdict", p.GetVerdict(), pb.AckVerdict_name)
}

func encodeDecline(r gateway.Decline) *pb.DeclineCheckpointRequest {
	return &pb.DeclineCheckpointRequest{
		LeaderEpoch: uint64(r.Epoch), Attempt: encodeAttempt(r.Attempt), CheckpointId: int64(r.ID),
		Reason: string(r.Reason), Message: encodeText(r.Message),
	}
}

// decodeDecline takes every reason: a decline of a newer build must count too.
func decodeDecline(p *pb.DeclineCheckpointRequest) (gateway.Decline, error) {
	r := gateway.Decline{
		Epoch: job.LeaderEpoch(p.GetLeaderEpoch()), Reason: checkpoint.Reason(p.GetReason()), Message: p.GetMessage(),
	}
	if r.Reason == checkpoint.None {
		return r, errors.New("decline without a reason")
	}
	var err error
	if r.Attempt, err = decodeAttempt(p.GetAttempt()); err != nil {
		return r, err
	}
	r.ID, err = decodeCheckpointID(p.GetCheckpointId())
	return r, err
}
