package rpc

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rpc/pb"
)

func encodeAttempt(a job.AttemptID) *pb.AttemptId {
	return &pb.AttemptId{
		JobId: string(a.Job), VertexId: string(a.Task.Vertex),
		Subtask: encodeInt(a.Task.Subtask), Attempt: encodeInt(a.Attempt),
	}
}

func decodeAttempt(p *pb.AttemptId) (job.AttemptID, error) {
	a := showAttempt(p)
	switch {
	case a.Job == "":
		return a, errors.New("attempt without a job id")
	case a.Task.Vertex == "":
		return a, errors.New("attempt without a vertex id")
	case a.Task.Subtask < 0 || a.Attempt < 1:
		return a, fmt.Errorf("there is no attempt %s: subtasks are numbered from 0, attempts from 1", a)
	}
	return a, nil
}

// showAttempt decodes an attempt that is only shown to people; a task that has none yet has number 0.
func showAttempt(p *pb.AttemptId) job.AttemptID {
	return job.AttemptID{
		Job:     job.ID(p.GetJobId()),
		Task:    job.TaskID{Vertex: job.VertexID(p.GetVertexId()), Subtask: int(p.GetSubtask())},
		Attempt: int(p.GetAttempt()),
	}
}

func encodeAttempts(in []job.AttemptID) []*pb.AttemptId { return each(in, encodeAttempt) }

func decodeAttempts(in []*pb.AttemptId) ([]job.AttemptID, error) {
	return tryEach("attempt", in, decodeAttempt)
}

// decodeJobID refuses the empty id.
func decodeJobID(id string) (job.ID, error) {
	if id == "" {
		return "", errors.New("no job id")
	}
	return job.ID(id), nil
}

// decodeCheckpointID refuses what no checkpoint has.
func decodeCheckpointID(id int64) (checkpoint.ID, error) {
	if id < 1 {
		return 0, fmt.Errorf("checkpoint id is %d, the first is 1", id)
	}
	return checkpoint.ID(id), nil
}

func decodeTaskState(p pb.TaskState) (job.TaskState, error) {
	return decodeEnum[job.TaskState]("task state", p, pb.TaskState_name)
}

// encodeFailure maps no failure to no message.
func encodeFailure(f job.Failure) *pb.Failure {
	if f == (job.Failure{}) {
		return nil
	}
	return &pb.Failure{Class: encodeEnum[pb.FailureClass](f.Class), Message: encodeText(f.Message), OperatorId: f.Operator}
}

func decodeFailure(p *pb.Failure) (job.Failure, error) {
	if p == nil {
		return job.Failure{}, nil
	}
	class, err := decodeEnum[job.FailureClass]("failure class", p.Class, pb.FailureClass_name)
	return job.Failure{Class: class, Message: p.Message, Operator: p.OperatorId}, err
}

func encodeOptions(o job.Options) *pb.JobOptions {
	c, r, x := o.Checkpoint, o.Restart, o.Exchange
	return &pb.JobOptions{
		Parallelism: encodeInt(o.Parallelism), MaxParallelism: encodeInt(o.MaxParallelism),
		OperatorParallelism: encodeEach(o.OperatorParallelism),
		Checkpoint: &pb.CheckpointOptions{
			IntervalMs: encodeDuration(c.Interval, time.Millisecond), MinPauseMs: encodeDuration(c.MinPause, time.Millisecond),
			TimeoutMs: encodeDuration(c.Timeout, time.Millisecond), Retained: encodeInt(c.Retained), MaxConcurrent: encodeInt(c.MaxConcurrent),
			TolerableFailures: encodeInt(c.TolerableFailures), DeleteOnCancel: c.DeleteOnCancel,
			DegradedAfterMs:         encodeDuration(c.DegradedAfter, time.Millisecond),
			IntervalDuringBacklogMs: encodeDuration(c.IntervalDuringBacklog, time.Millisecond),
			InlineLimitBytes:        encodeInt(c.InlineLimit), StateCompression: string(c.Compression),
		},
		Restart: &pb.RestartOptions{
			Strategy:       string(r.Strategy),
			InitialDelayMs: encodeDuration(r.InitialDelay, time.Millisecond), MaxDelayMs: encodeDuration(r.MaxDelay, time.Millisecond),
			Multiplier: r.Multiplier, Jitter: r.Jitter, ResetAfterMs: encodeDuration(r.ResetAfter, time.Millisecond),
			Attempts: encodeInt(r.Attempts), WindowMs: encodeDuration(r.Window, time.Millisecond),
		},
		Exchange: &pb.ExchangeOptions{
			BatchSize: encodeInt(x.BatchSize), LingerUs: encodeDuration(x.Linger, time.Microsecond), Credits: encodeInt(x.Credits),
		},
		State: &pb.StateOptions{Backend: string(o.State.Backend)},
	}
}

// decodeOptions does not validate: which options a job may have is the job master's to say.
func decodeOptions(p *pb.JobOptions) job.Options {
	c, r, x := p.GetCheckpoint(), p.GetRestart(), p.GetExchange()
	return job.Options{
		Parallelism: int(p.GetParallelism()), MaxParallelism: int(p.GetMaxParallelism()),
		OperatorParallelism: decodeEach[string](p.GetOperatorParallelism()),
		Checkpoint: job.CheckpointOptions{
			Interval: decodeDuration(c.GetIntervalMs(), time.Millisecond), MinPause: decodeDuration(c.GetMinPauseMs(), time.Millisecond),
			Timeout: decodeDuration(c.GetTimeoutMs(), time.Millisecond), Retained: int(c.GetRetained()), MaxConcurrent: int(c.GetMaxConcurrent()),
			TolerableFailures: int(c.GetTolerableFailures()), DeleteOnCancel: c.GetDeleteOnCancel(),
			DegradedAfter:         decodeDuration(c.GetDegradedAfterMs(), time.Millisecond),
			IntervalDuringBacklog: decodeDuration(c.GetIntervalDuringBacklogMs(), time.Millisecond),
			InlineLimit:           int(c.GetInlineLimitBytes()), Compression: job.Compression(c.GetStateCompression()),
		},
		Restart: job.RestartOptions{
			Strategy:     job.Strategy(r.GetStrategy()),
			InitialDelay: decodeDuration(r.GetInitialDelayMs(), time.Millisecond), MaxDelay: decodeDuration(r.GetMaxDelayMs(), time.Millisecond),
			Multiplier: r.GetMultiplier(), Jitter: r.GetJitter(), ResetAfter: decodeDuration(r.GetResetAfterMs(), time.Millisecond),
			Attempts: int(r.GetAttempts()), Window: decodeDuration(r.GetWindowMs(), time.Millisecond),
		},
		Exchange: job.ExchangeOptions{
			BatchSize: int(x.GetBatchSize()), Linger: decodeDuration(x.GetLingerUs(), time.Microsecond), Credits: int(x.GetCredits()),
		},
		State: job.StateOptions{Backend: job.Backend(p.GetState().GetBackend())},
	}
}
