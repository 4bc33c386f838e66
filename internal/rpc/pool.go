package rpc

import (
	"math/bits"
	"sync"

	"google.golang.org/grpc/mem"
)

// Buffers come in powers of two. The smallest is larger than what gRPC thinks worth giving back; larger ones than the largest are left to
// the garbage collector.
const (
	minFrameBits = 12 // 4 KiB
	maxFrameBits = 22 // 4 MiB
)

// GetFrame answers a buffer of the given length, with anything in it. It may be cut, and grown up to its capacity.
func GetFrame(size int) *[]byte { return framePool.Get(size) }

// PutFrame gives a buffer back; nobody may touch it any more.
func PutFrame(b *[]byte) { framePool.Put(b) }

// framePool is of the process, like the memory that it saves; what it holds has no owner.
var framePool mem.BufferPool = &pool{}

// pool is a mem.BufferPool that does not clear buffers, as every byte of a frame is written anyway.
type pool struct {
	classes [maxFrameBits - minFrameBits + 1]sync.Pool
}

func (p *pool) Get(size int) *[]byte {
	if size > 1<<maxFrameBits {
		b := make([]byte, size)
		return &b
	}
	class := max(0, bits.Len(uint(max(0, size-1)))-minFrameBits)
	if b, ok := p.classes[class].Get().(*[]byte); ok {
		*b = (*b)[:size]
		return b
	}
	b := make([]byte, size, 1<<(class+minFrameBits))
	return &b
}

// Put takes any buffer, as a sender may have grown one.
func (p *pool) Put(b *[]byte) {
	class := bits.Len(uint(cap(*b))) - 1 - minFrameBits
	if class < 0 || class >= len(p.classes) {
		return
	}
	p.classes[class].Put(b)
}
