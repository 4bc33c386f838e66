package rpc

import (
	"context"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/rpc/pb"
)

// RegisterTaskExecutor serves te.
func RegisterTaskExecutor(s *Server, te gateway.TaskExecutor) {
	pb.RegisterTaskExecutorServiceServer(s.grpc, &taskExecutorServer{te: te})
}

type taskExecutorServer struct {
	pb.UnimplementedTaskExecutorServiceServer
	te gateway.TaskExecutor
}

func (s *taskExecutorServer) PlanJob(ctx context.Context, p *pb.PlanJobRequest) (*pb.PlanJobResponse, error) {
	r, err := decodePlanJob(p)
	if err != nil {
		return nil, badRequest(err)
	}
	g, err := s.te.PlanJob(ctx, r)
	if err != nil {
		return nil, err
	}
	return &pb.PlanJobResponse{Graph: encodeGraph(g)}, nil
}

func (s *taskExecutorServer) DeployTasks(ctx context.Context, p *pb.DeployTasksRequest) (*pb.DeployTasksResponse, error) {
	r, err := decodeDeployTasks(p)
	if err != nil {
		return nil, badRequest(err)
	}
	return &pb.DeployTasksResponse{}, s.te.DeployTasks(ctx, r)
}

func (s *taskExecutorServer) CancelTasks(ctx context.Context, p *pb.CancelTasksRequest) (*pb.CancelTasksResponse, error) {
	r, err := decodeCancelTasks(p)
	if err != nil {
		return nil, badRequest(err)
	}
	unknown, err := s.te.CancelTasks(ctx, r)
	return &pb.CancelTasksResponse{UnknownAttempts: encodeAttempts(unknown)}, err
}

func (s *taskExecutorServer) TriggerCheckpoint(ctx context.Context, p *pb.TriggerCheckpointRequest) (*pb.TriggerCheckpointResponse, error) {
	r, err := decodeTrigger(p)
	if err != nil {
		return nil, badRequest(err)
	}
	unknown, err := s.te.TriggerCheckpoint(ctx, r)
	return &pb.TriggerCheckpointResponse{UnknownAttempts: encodeAttempts(unknown)}, err
}

func (s *taskExecutorServer) NotifyCheckpointComplete(
	ctx context.Context, p *pb.NotifyCheckpointCompleteRequest,
) (*pb.NotifyCheckpointCompleteResponse, error) {
	r, err := decodeComplete(p)
	if err != nil {
		return nil, badRequest(err)
	}
	unknown, err := s.te.NotifyCheckpointComplete(ctx, r)
	return &pb.NotifyCheckpointCompleteResponse{UnknownAttempts: encodeAttempts(unknown)}, err
}

func (s *taskExecutorServer) NotifyCheckpointAborted(
	ctx context.Context, p *pb.NotifyCheckpointAbortedRequest,
) (*pb.NotifyCheckpointAbortedResponse, error) {
	r, err := decodeAborted(p)
	if err != nil {
		return nil, badRequest(err)
	}
	unknown, err := s.te.NotifyCheckpointAborted(ctx, r)
	return &pb.NotifyCheckpointAbortedResponse{UnknownAttempts: encodeAttempts(unknown)}, err
}
