package rpc

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/weirstream/weir/internal/gateway"
)

// cable is the client's end of a connection; cut, it swallows what is written and carries nothing back, as when a host dies.
type cable struct {
	net.Conn
	isCut  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (c *cable) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	select {
	case <-c.isCut:
		<-c.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (c *cable) Write(b []byte) (int, error) {
	select {
	case <-c.isCut:
		return len(b), nil
	default:
		return c.Conn.Write(b)
	}
}

// Close of a cut cable does not reach the other side.
func (c *cable) Close() error {
	c.once.Do(func() { close(c.closed) })
	select {
	case <-c.isCut:
		return nil
	default:
		return c.Conn.Close()
	}
}

func TestKeepalive_DeadHost_IsNoticedByBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan time.Time, 1)
		f := &fake{reg: func(ctx context.Context, _ gateway.Registration, registered func(gateway.Registered)) error {
			registered(someWelcome)
			<-ctx.Done()
			ended <- time.Now()
			return ctx.Err()
		}}
		s := NewServer(zap.NewNop())
		RegisterJobMaster(s, fakeJobMaster{f}, fakeJobs{f})
		lis := bufconn.Listen(1 << 20)
		stop := start(t, s, lis)
		isCut := make(chan struct{})
		var raw net.Conn
		conn := dial(t, "bufconn", grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			c, err := lis.DialContext(ctx)
			if err != nil || raw != nil {
				return nil, context.Canceled // it connects once
			}
			raw = c
			return &cable{Conn: c, isCut: isCut, closed: make(chan struct{})}, nil
		}))
		var cutAt time.Time
		err := NewJobMaster(conn).RegisterTaskExecutor(t.Context(), someRegistration, func(gateway.Registered) {
			cutAt = time.Now()
			close(isCut)
		})
		const slack = time.Second
		if took := time.Since(cutAt); gateway.CodeOf(err) != gateway.Unavailable || took > ClientPingAfter+PingTimeout+slack {
			t.Errorf("the client noticed after %s: %v", took, err)
		}
		if took := (<-ended).Sub(cutAt); took > ServerPingAfter+PingTimeout+slack {
			t.Errorf("the server noticed after %s", took)
		}
		stop()
		_ = raw.Close()
	})
}

func TestServer_Stop_CutsCallsAfterTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered := make(chan struct{})
		f := &fake{on: func(ctx context.Context, _ any) (any, error) {
			close(entered)
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		s := NewServer(zap.NewNop())
		RegisterJobMaster(s, fakeJobMaster{f}, fakeJobs{f})
		lis := bufconn.Listen(1 << 20)
		stop := start(t, s, lis)
		conn := dial(t, "bufconn", grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
		failed := make(chan error, 1)
		go func() {
			_, err := NewJobs(conn).Submit(t.Context(), gateway.Submission{JobName: "x"})
			failed <- err
		}()
		<-entered
		began := time.Now()
		stop()
		if took := time.Since(began); took != StopGrace {
			t.Errorf("the server stopped after %s, the grace is %s", took, StopGrace)
		}
		if err := <-failed; gateway.CodeOf(err) != gateway.Unavailable {
			t.Errorf("the call ended with %v", err)
		}
	})
}
