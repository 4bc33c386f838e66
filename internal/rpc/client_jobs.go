package rpc

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rpc/pb"
)

// NewJobs is the job master at the other end of conn, as people see it.
func NewJobs(conn *grpc.ClientConn) gateway.Jobs {
	return &jobsClient{peerOf("the job master", conn), pb.NewJobServiceClient(conn)}
}

type jobsClient struct {
	peer peer
	pb   pb.JobServiceClient
}

func (c *jobsClient) Submit(ctx context.Context, r gateway.Submission) (job.ID, error) {
	answer, err := call(ctx, c.peer, WaitTimeout, c.pb.SubmitJob, encodeSubmission(r))
	return job.ID(answer.GetJobId()), err
}

func (c *jobsClient) List(ctx context.Context) ([]gateway.JobStatus, error) {
	answer, err := call(ctx, c.peer, CallTimeout, c.pb.ListJobs, &pb.ListJobsRequest{})
	return each(answer.GetJobs(), decodeJobStatus), err
}

func (c *jobsClient) Get(ctx context.Context, id job.ID) (gateway.JobStatus, error) {
	answer, err := call(ctx, c.peer, CallTimeout, c.pb.GetJob, &pb.GetJobRequest{JobId: string(id)})
	return decodeJobStatus(answer.GetJob()), err
}

func (c *jobsClient) Watch(ctx context.Context, id job.ID, f func(gateway.JobStatus, []gateway.JobEvent) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream when f does not want more
	stream, err := c.pb.WatchJob(ctx, &pb.WatchJobRequest{JobId: string(id)})
	if err != nil {
		return c.peer.decodeError(err)
	}
	for {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return c.peer.decodeError(err)
		}
		if err := f(decodeJobStatus(answer.GetJob()), each(answer.GetEvents(), decodeJobEvent)); err != nil {
			return err
		}
	}
}

func (c *jobsClient) Cancel(ctx context.Context, id job.ID) (job.State, error) {
	answer, err := call(ctx, c.peer, WaitTimeout, c.pb.CancelJob, &pb.CancelJobRequest{JobId: string(id)})
	return showEnum[job.State](answer.GetState(), pb.JobState_name), err
}

func (c *jobsClient) Stop(ctx context.Context, r gateway.StopJob) (gateway.StopResult, error) {
	request := &pb.StopJobRequest{
		JobId: string(r.Job), LeaderEpoch: uint64(r.Epoch), Directory: r.Directory, Mode: encodeEnum[pb.StopMode](r.Mode),
		Format: encodeEnum[pb.SavepointFormat](r.Format),
	}
	answer, err := call(ctx, c.peer, WaitTimeout, c.pb.StopJob, request)
	return gateway.StopResult{State: showEnum[job.State](answer.GetState(), pb.JobState_name), Savepoint: decodeResult(answer)}, err
}

func (c *jobsClient) Rescale(ctx context.Context, r gateway.RescaleJob) (gateway.RescaleResult, error) {
	answer, err := call(ctx, c.peer, WaitTimeout, c.pb.RescaleJob, encodeRescaleJob(r))
	return decodeRescaleResult(answer), err
}

func (c *jobsClient) TriggerCheckpoint(ctx context.Context, id job.ID, epoch job.LeaderEpoch) (gateway.CheckpointResult, error) {
	request := &pb.TriggerJobCheckpointRequest{JobId: string(id), LeaderEpoch: uint64(epoch)}
	answer, err := call(ctx, c.peer, WaitTimeout, c.pb.TriggerCheckpoint, request)
	return decodeResult(answer), err
}

func (c *jobsClient) TriggerSavepoint(ctx context.Context, r gateway.TriggerSavepoint) (gateway.CheckpointResult, error) {
	request := &pb.TriggerSavepointRequest{
		JobId: string(r.Job), LeaderEpoch: uint64(r.Epoch), Directory: r.Directory, Format: encodeEnum[pb.SavepointFormat](r.Format),
	}
	answer, err := call(ctx, c.peer, WaitTimeout, c.pb.TriggerSavepoint, request)
	return decodeResult(answer), err
}

// decodeResult takes the answer of either trigger.
func decodeResult(p interface {
	GetCheckpointId() int64
	GetPath() string
	GetDurationUs() int64
}) gateway.CheckpointResult {
	return gateway.CheckpointResult{
		ID: checkpoint.ID(p.GetCheckpointId()), Path: p.GetPath(), Duration: decodeDuration(p.GetDurationUs(), time.Microsecond),
	}
}

func (c *jobsClient) DisposeSavepoint(ctx context.Context, path string) error {
	_, err := call(ctx, c.peer, WaitTimeout, c.pb.DisposeSavepoint, &pb.DisposeSavepointRequest{Path: path})
	return err
}

func (c *jobsClient) Checkpoints(ctx context.Context, id job.ID) (gateway.CheckpointHistory, error) {
	answer, err := call(ctx, c.peer, CallTimeout, c.pb.ListCheckpoints, &pb.ListCheckpointsRequest{JobId: string(id)})
	return decodeHistory(answer), err
}

func (c *jobsClient) Checkpoint(ctx context.Context, id job.ID, n checkpoint.ID) (gateway.CheckpointDetail, error) {
	request := &pb.GetCheckpointRequest{JobId: string(id), CheckpointId: int64(n)}
	answer, err := call(ctx, c.peer, CallTimeout, c.pb.GetCheckpoint, request)
	return decodeDetail(answer), err
}

func (c *jobsClient) TaskExecutors(ctx context.Context) ([]gateway.ExecutorStatus, error) {
	answer, err := call(ctx, c.peer, CallTimeout, c.pb.ListTaskExecutors, &pb.ListTaskExecutorsRequest{})
	return each(answer.GetExecutors(), decodeExecutorStatus), err
}
