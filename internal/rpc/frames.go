package rpc

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/weirstream/weir/internal/rpc/pb"
)

// FrameStream moves frames of the exchange: buffers whose content is the exchange's own. One goroutine may send while another receives.
type FrameStream interface {
	// Send takes b: it goes back to the pool once it is written, or at once on an error. It blocks while the other side does not read.
	// io.EOF says that the stream is over; Recv has the reason.
	Send(b *[]byte) error
	// Recv gives a frame away; PutFrame takes it back. io.EOF says that the other side has ended the stream properly.
	Recv() (*[]byte, error)
	// CloseSend ends the stream in this direction. On the serving side the return of the handler does that, and CloseSend does nothing.
	CloseSend() error
}

// OpenExchange opens a stream to the task executor at the other end of conn. It lives until ctx ends, or both sides have ended it. It answers
// when the other side serves the stream; from there on gRPC keeps no frame back for sending it once more on another connection.
func OpenExchange(ctx context.Context, conn *grpc.ClientConn) (FrameStream, error) {
	return openExchange(ctx, conn, codec{framePool})
}

func openExchange(ctx context.Context, conn *grpc.ClientConn, c codec) (FrameStream, error) {
	p := peerOf("the task executor", conn)
	stream, err := conn.NewStream(ctx, &exchangeService.Streams[0], pb.ExchangeService_Exchange_FullMethodName, grpc.ForceCodecV2(c))
	if err != nil {
		return nil, p.decodeError(err)
	}
	explain := func(err error) error { return p.decodeExchangeError(ctx, err) }
	if _, err := stream.Header(); err != nil {
		return nil, explain(err)
	}
	return &frameStream{stream: stream, pool: c.pool, explain: explain, closeSend: stream.CloseSend}, nil
}

// RegisterExchange serves the exchange. A stream ends when handle returns, and its error is what the other side's Recv answers. The
// context of the stream ends when the connection or the server does.
func RegisterExchange(s *Server, handle func(ctx context.Context, s FrameStream) error) {
	s.grpc.RegisterService(&exchangeService, &exchangeServer{handle, s.frames})
}

type exchangeServer struct {
	handle func(context.Context, FrameStream) error
	pool   mem.BufferPool
}

// exchangeService takes the place of the generated description, whose messages are protobuf. The name of the file is for reflection.
var exchangeService = grpc.ServiceDesc{
	ServiceName: pb.ExchangeService_ServiceDesc.ServiceName,
	HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{{
		StreamName: pb.ExchangeService_ServiceDesc.Streams[0].StreamName, ClientStreams: true, ServerStreams: true,
		Handler: func(srv any, stream grpc.ServerStream) error {
			s := srv.(*exchangeServer)
			if err := stream.SendHeader(nil); err != nil {
				return err
			}
			return s.handle(stream.Context(), &frameStream{
				stream: stream, pool: s.pool, explain: func(err error) error { return err }, closeSend: func() error { return nil },
			})
		},
	}},
	Metadata: pb.ExchangeService_ServiceDesc.Metadata,
}

// frameStream is either side of a stream.
type frameStream struct {
	stream interface {
		SendMsg(any) error
		RecvMsg(any) error
	}
	pool      mem.BufferPool
	explain   func(error) error
	closeSend func() error
}

func (s *frameStream) Send(b *[]byte) error {
	f := frame{buffer: b}
	err := s.stream.SendMsg(&f)
	if f.buffer != nil {
		s.pool.Put(f.buffer) // gRPC never asked for it
	}
	return s.result(err)
}

func (s *frameStream) Recv() (*[]byte, error) {
	var f frame
	if err := s.stream.RecvMsg(&f); err != nil {
		if f.buffer != nil {
			s.pool.Put(f.buffer)
		}
		return nil, s.result(err)
	}
	return f.buffer, nil
}

func (s *frameStream) CloseSend() error { return s.result(s.closeSend()) }

func (s *frameStream) result(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return s.explain(err)
}

// frame is the message of the exchange. Its buffer belongs to it until the codec takes it.
type frame struct{ buffer *[]byte }

// codec passes frames through and leaves every other message to protobuf. It has protobuf's name, so that one server serves both.
type codec struct{ pool mem.BufferPool }

var protobuf = encoding.GetCodecV2(proto.Name)

func (c codec) Name() string { return proto.Name }

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return protobuf.Marshal(v)
	}
	b := f.buffer
	f.buffer = nil // gRPC frees what it was given, errors included
	return mem.BufferSlice{mem.NewBuffer(b, c.pool)}, nil
}

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return protobuf.Unmarshal(data, v)
	}
	f.buffer = c.pool.Get(data.Len())
	data.CopyTo(*f.buffer) // it comes in pieces of an HTTP/2 frame each, and frames are read in one piece
	return nil
}
