package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rpc/pb"
)

// This is the one file that knows both gateway.Error and gRPC statuses. An Error travels as a status with an ErrorDetail. A status without one
// was made by gRPC itself or by another program.

// MaxErrorBytes bounds the texts of an error on the wire, where they travel in headers.
const MaxErrorBytes = 64 << 10

// The reasons of the errors that are made here.
const (
	reasonBadRequest  = "BAD_REQUEST"
	reasonBadAnswer   = "BAD_ANSWER"
	reasonUnreachable = "UNREACHABLE"
	reasonUnknownCall = "UNKNOWN_CALL"
	reasonStopping    = "STOPPING"
	reasonPanic       = "PANIC"
)

var codeToGRPC = map[gateway.Code]codes.Code{
	gateway.Internal:           codes.Internal,
	gateway.InvalidArgument:    codes.InvalidArgument,
	gateway.NotFound:           codes.NotFound,
	gateway.FailedPrecondition: codes.FailedPrecondition,
	gateway.Aborted:            codes.Aborted,
	gateway.Unavailable:        codes.Unavailable,
	gateway.ResourceExhausted:  codes.ResourceExhausted,
	gateway.DeadlineExceeded:   codes.DeadlineExceeded,
	gateway.Canceled:           codes.Canceled,
}

func codeFromGRPC(c codes.Code) gateway.Code {
	for code, grpcCode := range codeToGRPC {
		if grpcCode == c {
			return code
		}
	}
	return gateway.Internal
}

// badRequest is the answer to a request that cannot be decoded.
func badRequest(err error) error {
	return &gateway.Error{
		Code: gateway.InvalidArgument, Reason: reasonBadRequest, Message: "the request is malformed: " + err.Error(),
		Remedy: "compare it with the .proto files of this version",
	}
}

// encodeError makes the error of a handler a gRPC error.
func encodeError(err error) error {
	if err == nil {
		return nil
	}
	var e *gateway.Error
	switch {
	case errors.As(err, &e):
		return encodeGatewayError(err, e)
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, errorText(err.Error()))
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, errorText(err.Error()))
	}
	if st, ok := status.FromError(err); ok {
		return st.Err()
	}
	return encodeGatewayError(err, &gateway.Error{Code: gateway.Internal, Message: err.Error()})
}

// encodeGatewayError encodes e, which is in the chain of err, with the text of the whole chain.
func encodeGatewayError(err error, e *gateway.Error) error {
	message := err.Error()
	if e.Remedy != "" {
		message = strings.TrimSuffix(message, " ("+e.Remedy+")") // it travels in a field of its own
	}
	code, ok := codeToGRPC[e.Code]
	if !ok {
		code = codes.Internal
	}
	st, detailErr := status.New(code, errorText(message)).WithDetails(&pb.ErrorDetail{
		Reason: errorText(e.Reason), JobId: errorText(string(e.Job)), CheckpointId: int64(e.Checkpoint), Remedy: errorText(e.Remedy),
	})
	if detailErr != nil {
		return status.Error(codes.Internal, fmt.Sprintf("encode error %q: %v", errorText(message), detailErr))
	}
	return st.Err()
}

// errorText makes s fit to travel in a header.
func errorText(s string) string {
	if len(s) > MaxErrorBytes {
		s = s[:MaxErrorBytes] + "..."
	}
	return encodeText(s)
}

// peer is the other side of a connection as error messages name it.
type peer struct {
	role    string // "the job master"
	address string
}

func (p peer) String() string { return p.role + " at " + p.address }

// decodeError makes the error of a gRPC call a *gateway.Error.
func (p peer) decodeError(err error) error {
	if err == nil {
		return nil
	}
	st := status.Convert(err)
	for _, d := range st.Details() {
		if d, ok := d.(*pb.ErrorDetail); ok {
			return &gateway.Error{
				Code: codeFromGRPC(st.Code()), Reason: d.Reason, Message: st.Message(), Remedy: d.Remedy,
				Job: job.ID(d.JobId), Checkpoint: checkpoint.ID(d.CheckpointId),
			}
		}
	}
	return p.foreignError(st)
}

// foreignError explains a status that no handler of Weir has made.
func (p peer) foreignError(st *status.Status) error {
	e := &gateway.Error{Code: codeFromGRPC(st.Code()), Message: st.Message()}
	switch st.Code() {
	case codes.Canceled:
		return &contextError{e, context.Canceled}
	case codes.DeadlineExceeded:
		e.Message = fmt.Sprintf("%s did not answer in time: %s", p, st.Message())
		return &contextError{e, context.DeadlineExceeded}
	case codes.Unavailable:
		e.Reason = reasonUnreachable
		e.Message = fmt.Sprintf("no connection to %s: %s", p, st.Message())
		e.Remedy = "check that it runs, that the address is right and that no firewall is between; then try again"
	case codes.Unimplemented:
		e.Code, e.Reason = gateway.FailedPrecondition, reasonUnknownCall
		e.Message = fmt.Sprintf("%s does not serve this call: %s", p, st.Message())
		e.Remedy = "check that the address is that of " + p.role + " and that both sides are of one version"
	default:
		e.Message = fmt.Sprintf("call of %s: %s", p, st.Message())
	}
	return e
}

// decodeExchangeError is decodeError for an exchange stream of which ctx is the context. A server that stops wakes handlers that wait for a
// frame, and gRPC then answers Canceled before the handler can say more.
func (p peer) decodeExchangeError(ctx context.Context, err error) error {
	if status.Code(err) == codes.Canceled && ctx.Err() == nil {
		return &gateway.Error{
			Code: gateway.Unavailable, Reason: reasonStopping, Message: fmt.Sprintf("%s has ended the stream: %v", p, status.Convert(err).Message()),
			Remedy: errStopping.Remedy,
		}
	}
	return p.decodeError(err)
}

// badAnswer is the error of an answer that cannot be decoded.
func (p peer) badAnswer(err error) error {
	return &gateway.Error{
		Code: gateway.Internal, Reason: reasonBadAnswer, Message: fmt.Sprintf("the answer of %s is malformed: %v", p, err),
		Remedy: "run both sides with one version",
	}
}

// contextError is the end of a context on either side: callers may look for the gateway.Error or for the error of package context.
type contextError struct{ err, cause error }

func (e *contextError) Error() string { return e.err.Error() }

func (e *contextError) Unwrap() []error { return []error{e.err, e.cause} }
