package rpc

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/tap"

	"github.com/weirstream/weir/internal/gateway"
)

// unaryErrors makes the errors of handlers gRPC errors, and their panics too.
func unaryErrors(log *zap.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (answer any, err error) {
		defer func() {
			if r := recover(); r != nil {
				err = panicked(log, info.FullMethod, r)
			}
			err = encodeError(err)
		}()
		return handle(ctx, request)
	}
}

// streamErrors is unaryErrors for streams.
func streamErrors(log *zap.Logger) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = panicked(log, info.FullMethod, r)
			}
			if err != nil && errors.Is(context.Cause(stream.Context()), errStopping) {
				err = errStopping // not Canceled: it was not the client that ended the stream
			}
			err = encodeError(err)
		}()
		return handle(srv, stream)
	}
}

func panicked(log *zap.Logger, method string, r any) error {
	log.Error("panic in a handler", zap.String("method", method), zap.Any("panic", r), zap.StackSkip("stack", 1))
	return &gateway.Error{
		Code: gateway.Internal, Reason: reasonPanic, Message: fmt.Sprintf("panic in %s: %v", method, r),
		Remedy: "report it with the server's log, which has the stack",
	}
}

var errStopping = &gateway.Error{
	Code: gateway.Unavailable, Reason: reasonStopping, Message: "the server is stopping", Remedy: "try again when it is back",
}

// streams are the streams that a server serves. They live as long as their clients want, so that a server that stops must end them.
type streams struct {
	methods map[string]bool // which calls are streams; not changed once the server runs
	mu      struct {
		sync.Mutex
		ended bool
		next  int
		live  map[int]context.CancelCauseFunc
	}
}

// find notes which of the calls are streams.
func (s *streams) find(services map[string]grpc.ServiceInfo) {
	s.methods = map[string]bool{}
	for service, info := range services {
		for _, m := range info.Methods {
			if m.IsClientStream || m.IsServerStream {
				s.methods["/"+service+"/"+m.Name] = true
			}
		}
	}
}

// tap gives a stream a context that ends with the server. It is done here and not in an interceptor because the end of a context that an
// interceptor makes does not wake a handler that waits for a message.
func (s *streams) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	if !s.methods[info.FullMethodName] {
		return ctx, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	context.AfterFunc(ctx, s.add(cancel))
	return ctx, nil
}

// add makes the stream end with the server, until the function that it answers is called.
func (s *streams) add(cancel context.CancelCauseFunc) (forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.ended {
		cancel(errStopping)
		return func() {}
	}
	if s.mu.live == nil {
		s.mu.live = map[int]context.CancelCauseFunc{}
	}
	id := s.mu.next
	s.mu.next++
	s.mu.live[id] = cancel
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.mu.live, id)
	}
}

func (s *streams) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.ended = true
	for _, cancel := range s.mu.live {
		cancel(errStopping)
	}
}
