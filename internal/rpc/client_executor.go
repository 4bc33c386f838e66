package rpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rpc/pb"
)

// NewTaskExecutor is the task executor at the other end of conn.
func NewTaskExecutor(conn *grpc.ClientConn) gateway.TaskExecutor {
	return &taskExecutorClient{peerOf("the task executor", conn), pb.NewTaskExecutorServiceClient(conn)}
}

type taskExecutorClient struct {
	peer peer
	pb   pb.TaskExecutorServiceClient
}

func (c *taskExecutorClient) PlanJob(ctx context.Context, r gateway.PlanJob) (*job.Graph, error) {
	answer, err := call(ctx, c.peer, CallTimeout, c.pb.PlanJob, encodePlanJob(r))
	if err != nil {
		return nil, err
	}
	g, err := decodeGraph(answer.GetGraph())
	if err != nil {
		return nil, c.peer.badAnswer(err)
	}
	return g, nil
}

func (c *taskExecutorClient) DeployTasks(ctx context.Context, r gateway.DeployTasks) error {
	_, err := call(ctx, c.peer, CallTimeout, c.pb.DeployTasks, encodeDeployTasks(r))
	return err
}

func (c *taskExecutorClient) CancelTasks(ctx context.Context, r gateway.CancelTasks) ([]job.AttemptID, error) {
	answer, err := call(ctx, c.peer, CallTimeout, c.pb.CancelTasks, encodeCancelTasks(r))
	return c.unknown(answer, err)
}

func (c *taskExecutorClient) TriggerCheckpoint(ctx context.Context, r gateway.TriggerCheckpoint) ([]job.AttemptID, error) {
	answer, err := call(ctx, c.peer, CallTimeout, c.pb.TriggerCheckpoint, encodeTrigger(r))
	return c.unknown(answer, err)
}

func (c *taskExecutorClient) NotifyCheckpointComplete(ctx context.Context, r gateway.NotifyCheckpointComplete) ([]job.AttemptID, error) {
	answer, err := call(ctx, c.peer, CallTimeout, c.pb.NotifyCheckpointComplete, encodeComplete(r))
	return c.unknown(answer, err)
}

func (c *taskExecutorClient) NotifyCheckpointAborted(ctx context.Context, r gateway.NotifyCheckpointAborted) ([]job.AttemptID, error) {
	answer, err := call(ctx, c.peer, CallTimeout, c.pb.NotifyCheckpointAborted, encodeAborted(r))
	return c.unknown(answer, err)
}

// unknown decodes the attempts that an answer names, unless there is an error.
func (c *taskExecutorClient) unknown(answer interface{ GetUnknownAttempts() []*pb.AttemptId }, err error) ([]job.AttemptID, error) {
	if err != nil {
		return nil, err
	}
	attempts, err := decodeAttempts(answer.GetUnknownAttempts())
	if err != nil {
		return nil, c.peer.badAnswer(err)
	}
	return attempts, nil
}
