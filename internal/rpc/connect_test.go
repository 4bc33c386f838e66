package rpc

import (
	"context"
	"net"
	"testing"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/weirstream/weir/internal/gateway"
)

// start serves s until the test ends, and answers a function that ends it before.
func start(t testing.TB, s *Server, lis net.Listener) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, lis) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func listen(t testing.TB) net.Listener {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return lis
}

func dial(t testing.TB, addr string, opts ...grpc.DialOption) *grpc.ClientConn {
	conn, err := Dial(addr, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Errorf("close the connection: %v", err)
		}
	})
	return conn
}

func overBufconn(t testing.TB, s *Server) *grpc.ClientConn {
	lis := bufconn.Listen(1 << 20)
	start(t, s, lis)
	return dial(t, "bufconn", grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
}

func overTCP(t testing.TB, s *Server) *grpc.ClientConn {
	lis := listen(t)
	start(t, s, lis)
	return dial(t, lis.Addr().String())
}

// sides are the two ends of the contract: what a caller holds, and the fakes that it reaches.
type sides struct {
	executor  gateway.TaskExecutor
	jobMaster gateway.JobMaster
	jobs      gateway.Jobs
	fake      *fake
}

// transports are the ways from a caller to a fake.
var transports = map[string]func(t *testing.T) sides{
	"in process": func(*testing.T) sides {
		f := &fake{}
		return sides{fakeExecutor{f}, fakeJobMaster{f}, fakeJobs{f}, f}
	},
	"bufconn": func(t *testing.T) sides { return remote(t, overBufconn) },
	"TCP":     func(t *testing.T) sides { return remote(t, overTCP) },
}

func remote(t *testing.T, connect func(testing.TB, *Server) *grpc.ClientConn) sides {
	f := &fake{}
	s := NewServer(zap.NewNop())
	RegisterTaskExecutor(s, fakeExecutor{f})
	RegisterJobMaster(s, fakeJobMaster{f}, fakeJobs{f})
	conn := connect(t, s)
	return sides{NewTaskExecutor(conn), NewJobMaster(conn), NewJobs(conn), f}
}
