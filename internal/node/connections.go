package node

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/rpc"
	"github.com/weirstream/weir/internal/storage/schemes"
	"github.com/weirstream/weir/internal/taskexecutor"
)

// connections are the connections of an executor to its peers, one each.
type connections struct {
	mu struct {
		sync.Mutex
		conns map[string]*grpc.ClientConn
	}
}

func newConnections() *connections {
	c := &connections{}
	c.mu.conns = map[string]*grpc.ClientConn{}
	return c
}

// openExchange opens a stream to a peer. A peer that was lost and has come back is reached at once, not after the pause of a connection that failed.
func (c *connections) openExchange(ctx context.Context, address string) (exchange.FrameStream, error) {
	conn, err := c.get(address)
	if err != nil {
		return nil, err
	}
	if conn.GetState() == connectivity.TransientFailure {
		conn.ResetConnectBackoff() // gRPC has a race in it when the connection is being set up
	}
	return rpc.OpenExchange(ctx, conn)
}

func (c *connections) get(address string) (*grpc.ClientConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn := c.mu.conns[address]; conn != nil {
		return conn, nil
	}
	conn, err := rpc.Dial(address)
	if err != nil {
		return nil, err
	}
	c.mu.conns[address] = conn
	return conn, nil
}

func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.mu.conns {
		_ = conn.Close() // the process ends
	}
}

// frames is the buffer pool of package rpc as the exchange needs it.
type frames struct{}

func (frames) Get(size int) *[]byte { return rpc.GetFrame(size) }
func (frames) Put(b *[]byte)        { rpc.PutFrame(b) }

// maxStorages is how many storages an executor keeps open: its checkpoint directory, and those of savepoints, which come and go.
const maxStorages = 16

// storages opens each storage once: opening checks that it can be written to.
type storages struct {
	opener *schemes.Opener
	mu     struct {
		sync.Mutex
		opened map[string]taskexecutor.Storage
	}
}

func newStorages(opener *schemes.Opener) *storages {
	s := &storages{opener: opener}
	s.mu.opened = map[string]taskexecutor.Storage{}
	return s
}

func (s *storages) open(ctx context.Context, location string, readOnly bool) (taskexecutor.Storage, error) {
	if st := s.get(location); st != nil {
		return st, nil
	}
	if readOnly {
		return s.opener.Find(ctx, location)
	}
	st, err := s.opener.Open(ctx, location)
	if err != nil {
		return nil, err
	}
	s.put(location, st)
	return st, nil
}

func (s *storages) get(location string) taskexecutor.Storage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.opened[location]
}

func (s *storages) put(location string, st taskexecutor.Storage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.opened) >= maxStorages {
		clear(s.mu.opened)
	}
	s.mu.opened[location] = st
}
