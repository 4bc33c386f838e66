package rpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/rpc/pb"
)

// RegisterJobMaster serves jm to task executors and jobs to people.
func RegisterJobMaster(s *Server, jm gateway.JobMaster, jobs gateway.Jobs) {
	pb.RegisterJobMasterServiceServer(s.grpc, &jobMasterServer{jm: jm})
	pb.RegisterJobServiceServer(s.grpc, &jobsServer{jobs: jobs})
}

type jobMasterServer struct {
	pb.UnimplementedJobMasterServiceServer
	jm gateway.JobMaster
}

// RegisterTaskExecutor blocks as long as the registration lives. The context of the stream ends when the connection does.
func (s *jobMasterServer) RegisterTaskExecutor(
	p *pb.RegisterTaskExecutorRequest, stream grpc.ServerStreamingServer[pb.RegisterTaskExecutorResponse],
) error {
	r, err := decodeRegistration(p)
	if err != nil {
		return badRequest(err)
	}
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	return s.jm.RegisterTaskExecutor(ctx, r, func(welcome gateway.Registered) {
		if err := stream.Send(encodeRegistered(welcome)); err != nil {
			cancel(err)
		}
	})
}

func (s *jobMasterServer) Heartbeat(ctx context.Context, p *pb.HeartbeatRequest) (*pb.HeartbeatResponse, error) {
	r, err := decodeHeartbeat(p)
	if err != nil {
		return nil, badRequest(err)
	}
	answer, err := s.jm.Heartbeat(ctx, r)
	return encodeHeartbeatAnswer(answer), err
}

func (s *jobMasterServer) UpdateTaskState(ctx context.Context, p *pb.UpdateTaskStateRequest) (*pb.UpdateTaskStateResponse, error) {
	r, err := decodeTaskUpdate(p)
	if err != nil {
		return nil, badRequest(err)
	}
	return &pb.UpdateTaskStateResponse{}, s.jm.UpdateTaskState(ctx, r)
}

func (s *jobMasterServer) AcknowledgeCheckpoint(
	ctx context.Context, p *pb.AcknowledgeCheckpointRequest,
) (*pb.AcknowledgeCheckpointResponse, error) {
	r, err := decodeAck(p)
	if err != nil {
		return nil, badRequest(err)
	}
	verdict, err := s.jm.AcknowledgeCheckpoint(ctx, r)
	return &pb.AcknowledgeCheckpointResponse{Verdict: encodeEnum[pb.AckVerdict](verdict)}, err
}

func (s *jobMasterServer) DeclineCheckpoint(ctx context.Context, p *pb.DeclineCheckpointRequest) (*pb.DeclineCheckpointResponse, error) {
	r, err := decodeDecline(p)
	if err != nil {
		return nil, badRequest(err)
	}
	return &pb.DeclineCheckpointResponse{}, s.jm.DeclineCheckpoint(ctx, r)
}
