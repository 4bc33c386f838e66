package rpc

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// addressScheme leaves the lookup of the name to each attempt to connect, so that a process that moved is found at once.
const addressScheme = "passthrough:///"

// Dial prepares a connection to a host:port. It connects at the first call, and again whenever the connection is lost. The options come after
// those that Dial sets.
func Dial(addr string, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	all := append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessageBytes), grpc.MaxCallSendMsgSize(MaxMessageBytes)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: ClientPingAfter, Timeout: PingTimeout, PermitWithoutStream: true}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: connectBaseDelay, MaxDelay: connectMaxDelay, Multiplier: connectMultiplier, Jitter: connectJitter,
			},
			MinConnectTimeout: HandshakeTimeout,
		}),
	}, opts...)
	conn, err := grpc.NewClient(addressScheme+addr, all...)
	if err != nil {
		return nil, fmt.Errorf("connection to %s: %w", addr, err)
	}
	return conn, nil
}

func peerOf(role string, conn *grpc.ClientConn) peer {
	return peer{role: role, address: strings.TrimPrefix(conn.Target(), addressScheme)}
}

// call makes a unary call, with the given timeout if ctx has no deadline.
func call[Q, R any](
	ctx context.Context, p peer, timeout time.Duration, f func(context.Context, *Q, ...grpc.CallOption) (*R, error), request *Q,
) (*R, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	answer, err := f(ctx, request)
	if err != nil {
		return nil, p.decodeError(err)
	}
	return answer, nil
}
