package rpc

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rpc/pb"
)

var someRegistration = gateway.Registration{Executor: "e", Incarnation: "1", Address: "a:1", Slots: 1}

var someWelcome = gateway.Registered{Epoch: 1, HeartbeatInterval: 1e9}

func TestServer_PanicOfAHandler_IsAnswered(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	f := &fake{
		on:    func(context.Context, any) (any, error) { panic("oh no") },
		watch: func(context.Context, job.ID, func(gateway.JobStatus, []gateway.JobEvent) error) error { panic("oh no") },
	}
	s := NewServer(zap.New(core))
	RegisterJobMaster(s, fakeJobMaster{f}, fakeJobs{f})
	jobs := NewJobs(overBufconn(t, s))
	_, unaryErr := jobs.List(t.Context())
	streamErr := jobs.Watch(t.Context(), "j", nil)
	for _, err := range []error{unaryErr, streamErr} {
		if gateway.CodeOf(err) != gateway.Internal || !strings.Contains(err.Error(), "oh no") {
			t.Errorf("the caller got %v", err)
		}
	}
	if n := logs.FilterMessage("panic in a handler").Len(); n != 2 {
		t.Errorf("%d lines are in the log, want 2", n)
	}
}

func TestServer_MalformedRequest_IsRefusedBeforeTheCall(t *testing.T) {
	f := &fake{on: func(context.Context, any) (any, error) { panic("the request came through") }}
	s := NewServer(zap.NewNop())
	RegisterTaskExecutor(s, fakeExecutor{f})
	RegisterJobMaster(s, fakeJobMaster{f}, fakeJobs{f})
	conn := overBufconn(t, s)
	empty := map[string]proto.Message{}
	for _, sd := range []grpc.ServiceDesc{pb.JobMasterService_ServiceDesc, pb.TaskExecutorService_ServiceDesc, pb.JobService_ServiceDesc} {
		for _, m := range sd.Methods {
			if m.MethodName != "ListJobs" && m.MethodName != "ListTaskExecutors" {
				empty["/"+sd.ServiceName+"/"+m.MethodName] = &pb.ListJobsRequest{}
			}
		}
	}
	delete(empty, pb.TaskExecutorService_CancelTasks_FullMethodName) // to cancel nothing is allowed
	for name, m := range empty {
		err := testPeer.decodeError(conn.Invoke(t.Context(), name, m, &pb.ListJobsResponse{}))
		if gateway.CodeOf(err) != gateway.InvalidArgument || gateway.ReasonOf(err) != reasonBadRequest {
			t.Errorf("%s without fields: %v", name, err)
		}
	}
}

func TestServer_Stop_EndsStreamsAndFinishesCalls(t *testing.T) {
	const n = 3
	entered, release := make(chan struct{}, 3*n), make(chan struct{})
	f := &fake{
		on: func(context.Context, any) (any, error) {
			entered <- struct{}{}
			<-release
			return job.ID("done"), nil
		},
		reg: func(ctx context.Context, _ gateway.Registration, registered func(gateway.Registered)) error {
			registered(someWelcome)
			entered <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		},
	}
	s := NewServer(zap.NewNop())
	RegisterJobMaster(s, fakeJobMaster{f}, fakeJobs{f})
	RegisterExchange(s, func(_ context.Context, s FrameStream) error {
		entered <- struct{}{}
		_, err := s.Recv() // the other side never sends
		return err
	})
	lis := listen(t)
	stop := start(t, s, lis)
	conn := dial(t, lis.Addr().String())
	streams, calls := make(chan error, 2*n), make(chan error, n)
	for range n {
		go func() {
			streams <- NewJobMaster(conn).RegisterTaskExecutor(t.Context(), someRegistration, func(gateway.Registered) {})
		}()
		go func() {
			exchange, err := OpenExchange(t.Context(), conn)
			if err == nil {
				_, err = exchange.Recv()
			}
			streams <- err
		}()
		go func() {
			id, err := NewJobs(conn).Submit(t.Context(), gateway.Submission{JobName: "x"})
			if err == nil && id != "done" {
				err = errors.New("the answer got lost")
			}
			calls <- err
		}()
	}
	for range 3 * n {
		<-entered
	}
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	for range 2 * n {
		if err := <-streams; gateway.ReasonOf(err) != reasonStopping {
			t.Errorf("a stream ended with %v", err)
		}
	}
	close(release) // only now: the streams had to end while calls were running
	for range n {
		if err := <-calls; err != nil {
			t.Errorf("a running call ended with %v", err)
		}
	}
	<-stopped
	if _, err := NewJobs(conn).List(t.Context()); gateway.CodeOf(err) != gateway.Unavailable || !strings.Contains(err.Error(), lis.Addr().String()) {
		t.Errorf("a call after the end: %v", err)
	}
}

func TestServer_BrokenConnection_IsNoticedByBothSides(t *testing.T) {
	for _, dead := range []string{"client", "server"} {
		t.Run(dead+" dies", func(t *testing.T) {
			registered, ended := make(chan struct{}), make(chan error, 1)
			f := &fake{reg: func(ctx context.Context, _ gateway.Registration, welcome func(gateway.Registered)) error {
				welcome(someWelcome)
				<-ctx.Done()
				ended <- ctx.Err()
				return ctx.Err()
			}}
			s := NewServer(zap.NewNop())
			RegisterJobMaster(s, fakeJobMaster{f}, fakeJobs{f})
			lis := &recordingListener{listen(t), make(chan net.Conn, 10)}
			start(t, s, lis)
			dialled := make(chan net.Conn, 10)
			conn := dial(t, lis.Addr().String(), grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
				c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
				if err == nil {
					dialled <- c
				}
				return c, err
			}))
			client := make(chan error, 1)
			go func() {
				client <- NewJobMaster(conn).RegisterTaskExecutor(t.Context(), someRegistration, func(gateway.Registered) { close(registered) })
			}()
			<-registered
			ends := map[string]net.Conn{"client": <-dialled, "server": <-lis.accepted}
			kill(t, ends[dead])
			if err := <-client; gateway.CodeOf(err) != gateway.Unavailable || !strings.Contains(err.Error(), lis.Addr().String()) {
				t.Errorf("the client got %v", err)
			}
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("the job master got %v", err)
			}
		})
	}
}

// kill closes c as the kernel does when a process dies: the other side gets a reset.
func kill(t *testing.T, c net.Conn) {
	if err := c.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// recordingListener hands out the connections that it accepts.
type recordingListener struct {
	net.Listener
	accepted chan net.Conn
}

func (l *recordingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.accepted <- c
	}
	return c, err
}

func TestServer_ListenerThatFails_EndsServe(t *testing.T) {
	lis := listen(t)
	if err := lis.Close(); err != nil {
		t.Fatal(err)
	}
	err := NewServer(zap.NewNop()).Serve(t.Context(), lis)
	if err == nil || !strings.Contains(err.Error(), lis.Addr().String()) {
		t.Errorf("serve on a closed listener: %v", err)
	}
}

func TestServer_Health_IsWhatIsSet(t *testing.T) {
	s := NewServer(zap.NewNop())
	client := healthpb.NewHealthClient(overBufconn(t, s))
	for _, serving := range []bool{false, true, false} {
		s.SetServing(serving)
		answer, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if got := answer.Status == healthpb.HealthCheckResponse_SERVING; got != serving {
			t.Errorf("health is %s, set was %v", answer.Status, serving)
		}
	}
}

func TestServer_Reflection_ShowsAllServices(t *testing.T) {
	s := NewServer(zap.NewNop())
	RegisterTaskExecutor(s, fakeExecutor{})
	RegisterJobMaster(s, fakeJobMaster{}, fakeJobs{})
	RegisterExchange(s, nil)
	conn := overBufconn(t, s)
	v1, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range []string{"ExchangeService", "JobMasterService", "JobService", "TaskExecutorService"} {
		if err := v1.Send(&reflectionv1.ServerReflectionRequest{
			MessageRequest: &reflectionv1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "weir.v1." + service},
		}); err != nil {
			t.Fatal(err)
		}
		answer, err := v1.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(answer.GetFileDescriptorResponse().GetFileDescriptorProto(), func(file []byte) bool {
			var d descriptorpb.FileDescriptorProto
			return proto.Unmarshal(file, &d) == nil && len(d.Service) == 1 && d.Service[0].GetName() == service
		}) {
			t.Errorf("%s is not described: %v", service, answer)
		}
	}
	alpha, err := reflectionv1alpha.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := alpha.Send(&reflectionv1alpha.ServerReflectionRequest{
		MessageRequest: &reflectionv1alpha.ServerReflectionRequest_ListServices{},
	}); err != nil {
		t.Fatal(err)
	}
	answer, err := alpha.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(answer.GetListServicesResponse().GetService()); n != 7 { // four of Weir, health, two of reflection
		t.Errorf("%d services are listed: %v", n, answer)
	}
}
