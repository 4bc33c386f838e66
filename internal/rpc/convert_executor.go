package rpc

import (
	"errors"
	"fmt"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rpc/pb"
)

func encodePlanJob(r gateway.PlanJob) *pb.PlanJobRequest {
	return &pb.PlanJobRequest{JobName: r.JobName, Params: r.Params, Options: encodeOptions(r.Options), WithoutSplits: r.WithoutSplits}
}

func decodePlanJob(p *pb.PlanJobRequest) (gateway.PlanJob, error) {
	r := gateway.PlanJob{JobName: p.GetJobName(), Params: p.GetParams(), Options: decodeOptions(p.GetOptions()), WithoutSplits: p.GetWithoutSplits()}
	if r.JobName == "" {
		return r, errors.New("no job name")
	}
	return r, nil
}

func encodeDeployTasks(r gateway.DeployTasks) *pb.DeployTasksRequest {
	return &pb.DeployTasksRequest{
		LeaderEpoch: uint64(r.Epoch), JobId: string(r.Job), Graph: encodeGraph(r.Graph), Options: encodeOptions(r.Options),
		Placements: each(r.Placements, encodePlacement), Tasks: each(r.Tasks, encodeDeployment),
	}
}

func decodeDeployTasks(p *pb.DeployTasksRequest) (gateway.DeployTasks, error) {
	r := gateway.DeployTasks{Epoch: job.LeaderEpoch(p.GetLeaderEpoch()), Options: decodeOptions(p.GetOptions())}
	var err error
	if r.Job, err = decodeJobID(p.GetJobId()); err != nil {
		return r, err
	}
	if r.Graph, err = decodeGraph(p.GetGraph()); err != nil {
		return r, err
	}
	if r.Placements, err = tryEach("placement", p.GetPlacements(), decodePlacement); err != nil {
		return r, err
	}
	if r.Tasks, err = tryEach("task", p.GetTasks(), decodeDeployment); err != nil {
		return r, err
	}
	for _, t := range r.Tasks {
		if err := validateDeployment(r, t); err != nil {
			return r, err
		}
	}
	return r, nil
}

// validateDeployment checks a task against the graph that came with it.
func validateDeployment(r gateway.DeployTasks, t gateway.TaskDeployment) error {
	v := r.Graph.Vertex(t.Attempt.Task.Vertex)
	switch {
	case t.Attempt.Job != r.Job:
		return fmt.Errorf("task %s is of job %q, the deployment of job %q", t.Attempt, t.Attempt.Job, r.Job)
	case v == nil || t.Attempt.Task.Subtask >= v.Parallelism:
		return fmt.Errorf("task %s is not in the graph", t.Attempt)
	}
	for _, i := range t.Splits {
		if i < 0 || i >= len(v.Splits) {
			return fmt.Errorf("task %s has split %d, the vertex has %d splits", t.Attempt, i, len(v.Splits))
		}
	}
	return nil
}

func encodePlacement(l job.Placement) *pb.TaskPlacement {
	return &pb.TaskPlacement{Attempt: encodeAttempt(l.Attempt), ExecutorId: string(l.Executor), Address: l.Address}
}

func decodePlacement(p *pb.TaskPlacement) (job.Placement, error) {
	attempt, err := decodeAttempt(p.GetAttempt())
	return job.Placement{Attempt: attempt, Executor: job.ExecutorID(p.GetExecutorId()), Address: p.GetAddress()}, err
}

func encodeDeployment(t gateway.TaskDeployment) *pb.TaskDeployment {
	p := &pb.TaskDeployment{Attempt: encodeAttempt(t.Attempt), Splits: encodeInts(t.Splits)}
	if r := t.Restore; r != nil {
		p.RestoredCheckpointId, p.RestoreDir, p.Ended = int64(r.Checkpoint), r.Dir, r.State.Ended
		p.Stopped = r.Stopped
		p.Restore = each(r.State.Operators, encodeOperatorRestore)
	}
	return p
}

func decodeDeployment(p *pb.TaskDeployment) (gateway.TaskDeployment, error) {
	t := gateway.TaskDeployment{Splits: each(p.GetSplits(), func(i int32) int { return int(i) })}
	var err error
	if t.Attempt, err = decodeAttempt(p.GetAttempt()); err != nil {
		return t, err
	}
	if t.Restore, err = decodeTaskRestore(p); err != nil {
		return t, fmt.Errorf("restore of %s: %w", t.Attempt, err)
	}
	return t, nil
}

// decodeTaskRestore answers nil for a fresh start. State without a checkpoint is refused, because the task would start empty.
func decodeTaskRestore(p *pb.TaskDeployment) (*gateway.TaskRestore, error) {
	if p.GetRestoredCheckpointId() == 0 && len(p.GetRestore()) == 0 && p.GetRestoreDir() == "" && !p.GetEnded() && !p.GetStopped() {
		return nil, nil
	}
	id, err := decodeCheckpointID(p.GetRestoredCheckpointId())
	if err != nil {
		return nil, err
	}
	r := &gateway.TaskRestore{Checkpoint: id, Dir: p.GetRestoreDir(), State: checkpoint.Restore{Ended: p.GetEnded()}, Stopped: p.GetStopped()}
	if r.State.Operators, err = tryEach("operator", p.GetRestore(), decodeOperatorRestore); err != nil {
		return nil, err
	}
	return r, distinct(r.State.Operators, func(o checkpoint.OperatorRestore) string { return o.Operator })
}

func encodeCancelTasks(r gateway.CancelTasks) *pb.CancelTasksRequest {
	return &pb.CancelTasksRequest{LeaderEpoch: uint64(r.Epoch), Attempts: encodeAttempts(r.Attempts)}
}

func decodeCancelTasks(p *pb.CancelTasksRequest) (gateway.CancelTasks, error) {
	attempts, err := decodeAttempts(p.GetAttempts())
	return gateway.CancelTasks{Epoch: job.LeaderEpoch(p.GetLeaderEpoch()), Attempts: attempts}, err
}

func encodeTrigger(r gateway.TriggerCheckpoint) *pb.TriggerCheckpointRequest {
	return &pb.TriggerCheckpointRequest{
		LeaderEpoch: uint64(r.Epoch), CheckpointId: int64(r.ID), Directory: r.Dir, TimestampMs: encodeTime(r.Timestamp),
		Attempts: encodeAttempts(r.Attempts), Final: r.Final, Stop: encodeEnum[pb.StopMode](r.Stop),
		BaseCheckpointId: int64(r.Base), Format: encodeEnum[pb.SavepointFormat](r.Format),
	}
}

func decodeTrigger(p *pb.TriggerCheckpointRequest) (gateway.TriggerCheckpoint, error) {
	r := gateway.TriggerCheckpoint{
		Epoch: job.LeaderEpoch(p.GetLeaderEpoch()), Dir: p.GetDirectory(), Timestamp: decodeTime(p.GetTimestampMs()), Final: p.GetFinal(),
		Base: checkpoint.ID(p.GetBaseCheckpointId()),
	}
	if r.Base < 0 {
		return r, fmt.Errorf("base checkpoint %d, the first is 1", r.Base)
	}
	var err error
	if r.ID, err = decodeCheckpointID(p.GetCheckpointId()); err != nil {
		return r, err
	}
	if p.GetStop() != pb.StopMode_STOP_MODE_UNSPECIFIED {
		if r.Stop, err = decodeEnum[job.StopMode]("stop mode", p.GetStop(), pb.StopMode_name); err != nil {
			return r, err
		}
	}
	if r.Format, err = decodeFormat(p.GetFormat()); err != nil {
		return r, err
	}
	r.Attempts, err = decodeAttempts(p.GetAttempts())
	return r, err
}

func encodeComplete(r gateway.NotifyCheckpointComplete) *pb.NotifyCheckpointCompleteRequest {
	return &pb.NotifyCheckpointCompleteRequest{
		LeaderEpoch: uint64(r.Epoch), CheckpointId: int64(r.ID), Attempts: encodeAttempts(r.Attempts),
	}
}

func decodeComplete(p *pb.NotifyCheckpointCompleteRequest) (gateway.NotifyCheckpointComplete, error) {
	r := gateway.NotifyCheckpointComplete{Epoch: job.LeaderEpoch(p.GetLeaderEpoch())}
	var err error
	if r.ID, err = decodeCheckpointID(p.GetCheckpointId()); err != nil {
		return r, err
	}
	r.Attempts, err = decodeAttempts(p.GetAttempts())
	return r, err
}

func encodeAborted(r gateway.NotifyCheckpointAborted) *pb.NotifyCheckpointAbortedRequest {
	return &pb.NotifyCheckpointAbortedRequest{
		LeaderEpoch: uint64(r.Epoch), CheckpointId: int64(r.ID), LatestCompletedId: int64(r.LatestCompleted),
		Attempts: encodeAttempts(r.Attempts),
	}
}

func decodeAborted(p *pb.NotifyCheckpointAbortedRequest) (gateway.NotifyCheckpointAborted, error) {
	r := gateway.NotifyCheckpointAborted{
		Epoch: job.LeaderEpoch(p.GetLeaderEpoch()), LatestCompleted: checkpoint.ID(p.GetLatestCompletedId()),
	}
	if r.LatestCompleted < 0 {
		return r, fmt.Errorf("latest completed checkpoint is %d, it is 0 for none", r.LatestCompleted)
	}
	var err error
	if r.ID, err = decodeCheckpointID(p.GetCheckpointId()); err != nil {
		return r, err
	}
	r.Attempts, err = decodeAttempts(p.GetAttempts())
	return r, err
}
