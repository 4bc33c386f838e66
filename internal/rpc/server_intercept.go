package rpc

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/zap"
	"google.golang.org/grpc"

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
	mu struct {
		sync.Mutex
		ended bool
		next  int
		live  map[int]context.CancelCauseFunc
	}
}

// intercept gives a stream a context that ends with the server.
func (s *streams) intercept(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	forget := s.add(cancel)
	defer forget()
	err := handle(srv, &serverStream{stream, ctx})
	if err != nil && errors.Is(context.Cause(ctx), errStopping) {
		return errStopping // not Canceled: it was not the client that ended the stream
	}
	return err
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

// serverStream is a stream with another context.
type serverStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *serverStream) Context() context.Context { return s.ctx }
