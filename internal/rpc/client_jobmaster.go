package rpc

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/rpc/pb"
)

// NewJobMaster is the job master at the other end of conn, as task executors see it.
func NewJobMaster(conn *grpc.ClientConn) gateway.JobMaster {
	return &jobMasterClient{peerOf("the job master", conn), pb.NewJobMasterServiceClient(conn)}
}

type jobMasterClient struct {
	peer peer
	pb   pb.JobMasterServiceClient
}

func (c *jobMasterClient) RegisterTaskExecutor(ctx context.Context, r gateway.Registration, registered func(gateway.Registered)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the registration at the other side too, however this one ends
	stream, err := c.pb.RegisterTaskExecutor(ctx, encodeRegistration(r))
	if err != nil {
		return c.peer.decodeError(err)
	}
	for first := true; ; first = false {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return c.peer.decodeError(err)
		}
		if !first {
			continue // a keep-alive
		}
		welcome, err := decodeRegistered(answer)
		if err != nil {
			return c.peer.badAnswer(err)
		}
		registered(welcome)
	}
}

func (c *jobMasterClient) Heartbeat(ctx context.Context, r gateway.Heartbeat) (gateway.HeartbeatAnswer, error) {
	p, err := call(ctx, c.peer, CallTimeout, c.pb.Heartbeat, encodeHeartbeat(r))
	if err != nil {
		return gateway.HeartbeatAnswer{}, err
	}
	answer, err := decodeHeartbeatAnswer(p)
	if err != nil {
		return gateway.HeartbeatAnswer{}, c.peer.badAnswer(err)
	}
	return answer, nil
}

func (c *jobMasterClient) UpdateTaskState(ctx context.Context, r gateway.TaskUpdate) error {
	_, err := call(ctx, c.peer, CallTimeout, c.pb.UpdateTaskState, encodeTaskUpdate(r))
	return err
}

func (c *jobMasterClient) AcknowledgeCheckpoint(ctx context.Context, r gateway.Ack) (checkpoint.Verdict, error) {
	answer, err := call(ctx, c.peer, CallTimeout, c.pb.AcknowledgeCheckpoint, encodeAck(r))
	if err != nil {
		return 0, err
	}
	verdict, err := decodeVerdict(answer)
	if err != nil {
		return 0, c.peer.badAnswer(err)
	}
	return verdict, nil
}

func (c *jobMasterClient) DeclineCheckpoint(ctx context.Context, r gateway.Decline) error {
	_, err := call(ctx, c.peer, CallTimeout, c.pb.DeclineCheckpoint, encodeDecline(r))
	return err
}
