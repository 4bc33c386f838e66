package rpc

import (
	"context"
	"fmt"
	"net"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/reflection"
)

// Server is a gRPC server with everything that a process of Weir serves beside its own services: health and reflection.
type Server struct {
	grpc    *grpc.Server
	health  *health.Server
	streams *streams
	frames  mem.BufferPool
}

// NewServer makes a server without services; the Register functions add them. Health says NOT_SERVING until SetServing.
func NewServer(log *zap.Logger, opts ...grpc.ServerOption) *Server {
	return newServer(log, codec{framePool}, opts...)
}

func newServer(log *zap.Logger, c codec, opts ...grpc.ServerOption) *Server {
	live := &streams{}
	all := append([]grpc.ServerOption{
		grpc.ForceServerCodecV2(c),
		grpc.ChainUnaryInterceptor(unaryErrors(log)),
		grpc.ChainStreamInterceptor(streamErrors(log)),
		grpc.InTapHandle(live.tap),
		grpc.MaxRecvMsgSize(MaxMessageBytes),
		grpc.MaxSendMsgSize(MaxMessageBytes),
		grpc.MaxConcurrentStreams(MaxStreams),
		grpc.ConnectionTimeout(HandshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: ServerPingAfter, Timeout: PingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPingInterval, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true),
	}, opts...)
	s := &Server{grpc: grpc.NewServer(all...), health: health.NewServer(), streams: live, frames: c.pool}
	s.SetServing(false)
	healthpb.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc) // both v1 and v1alpha
	return s
}

// SetServing sets what the health service answers for the whole process.
func (s *Server) SetServing(serving bool) {
	state := healthpb.HealthCheckResponse_NOT_SERVING
	if serving {
		state = healthpb.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus("", state)
}

// Check says what the health service answers for the whole process: nil, or that it does not serve.
func (s *Server) Check(ctx context.Context) error {
	answer, err := s.health.Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		return err
	}
	if state := answer.GetStatus(); state != healthpb.HealthCheckResponse_SERVING {
		return fmt.Errorf("the process is %s", state)
	}
	return nil
}

// Serve accepts connections until ctx ends; it closes lis. Then streams end, running calls get StopGrace to finish, and Serve returns when
// every handler has. A handler must therefore end when its context does. It must be called once.
func (s *Server) Serve(ctx context.Context, lis net.Listener) error {
	s.streams.find(s.grpc.GetServiceInfo())
	served := make(chan error, 1)
	go func() { served <- s.grpc.Serve(lis) }()
	select {
	case err := <-served:
		s.stop()
		return fmt.Errorf("serve gRPC on %s: %w", lis.Addr(), err)
	case <-ctx.Done():
	}
	s.stop()
	<-served
	return nil
}

func (s *Server) stop() {
	s.health.Shutdown()
	s.streams.end()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.grpc.GracefulStop()
	}()
	grace := time.NewTimer(StopGrace)
	defer grace.Stop()
	select {
	case <-stopped:
	case <-grace.C:
		s.grpc.Stop()
		<-stopped
	}
}
