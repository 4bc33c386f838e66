package stream

import (
	"fmt"
	"sync"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream/codec"
)

// EdgeType is what an exchange can do with the records of an edge without knowing their type. It is safe for use by many tasks.
type EdgeType interface {
	// NewRouter makes the sending end in one subtask.
	NewRouter(cfg RouterConfig) Router
	// Deliver gives the records of a batch to a Collector of the edge's type and recycles the batch.
	Deliver(in any, b Batch) error
	// Encode appends the batch to dst and recycles it.
	Encode(dst []byte, b Batch) ([]byte, error)
	// Decode reads a batch that Encode wrote. The batch does not alias src.
	Decode(src []byte) (Batch, error)
	// Schema describes the encoding of a record; both ends must agree on it.
	Schema() string
}

// Batch is a batch of records of some type; Len is their number.
type Batch = interface{ Len() int }

// RouterConfig says where the records of an edge go.
type RouterConfig struct {
	Partitioning   job.Partitioning
	Subtask        int // the sender's
	Receivers      int
	MaxParallelism int // of the receiving vertex
	BatchSize      int
	// Send takes a full batch for a receiver; it blocks while the receiver has no room.
	Send func(receiver int, b Batch) error
}

// Router is the sending end of an edge: its collector puts records into batches.
type Router interface {
	// In is the Collector of the edge's type.
	In() any
	// Flush sends every batch that has records.
	Flush() error
	// Buffered reports whether records wait in batches.
	Buffered() bool
}

// edgeType is EdgeType for records of type T; hash gives the key hash on edges that partition by key.
type edgeType[T any] struct {
	codec codec.Codec[T]
	hash  func(T) uint64
	pool  sync.Pool // *batch[T]
}

func newEdgeType[T any](j *Job, n *Node) *edgeType[T] {
	c, err := codec.For[T]()
	if err != nil {
		j.fail("operator %s takes records that cannot be sent: %w", n.ID, err)
	}
	return &edgeType[T]{codec: c}
}

func (e *edgeType[T]) Schema() string { return e.codec.Schema() }

type batch[T any] struct {
	times  []Timestamp
	values []T
	shared bool // handed to more than one receiver: never recycled
}

func (b *batch[T]) Len() int { return len(b.values) }

func (e *edgeType[T]) get(size int) *batch[T] {
	if b, ok := e.pool.Get().(*batch[T]); ok {
		return b
	}
	return &batch[T]{times: make([]Timestamp, 0, size), values: make([]T, 0, size)}
}

func (e *edgeType[T]) recycle(b *batch[T]) {
	if b.shared {
		return
	}
	clear(b.values) // the records must not live on through the pool
	b.values, b.times = b.values[:0], b.times[:0]
	e.pool.Put(b)
}

func (e *edgeType[T]) Deliver(in any, b Batch) error {
	c, ok := in.(Collector[T])
	if !ok {
		return fmt.Errorf("input takes %T, the edge carries %s", in, typeName[T]())
	}
	t, ok := b.(*batch[T])
	if !ok {
		return fmt.Errorf("edge of %s got a batch of %T", typeName[T](), b)
	}
	for i, v := range t.values {
		if err := c.Collect(t.times[i], v); err != nil {
			return err
		}
	}
	e.recycle(t)
	return nil
}

func (e *edgeType[T]) NewRouter(cfg RouterConfig) Router {
	r := &router[T]{edge: e, cfg: cfg, batches: make([]*batch[T], cfg.Receivers)}
	switch cfg.Partitioning {
	case job.Hash:
		r.owner = make([]int32, cfg.MaxParallelism)
		for g := range r.owner {
			r.owner[g] = int32(job.KeyGroupOwner(g, cfg.Receivers, cfg.MaxParallelism))
		}
		r.in = Collector[T](&hashRouter[T]{r})
	case job.Broadcast:
		r.batches = r.batches[:1]
		r.in = Collector[T](&broadcastRouter[T]{r})
	case job.Rebalance:
		r.next = cfg.Subtask % cfg.Receivers
		r.in = Collector[T](&rebalanceRouter[T]{r})
	default: // forward: the only receiver is subtask i, and the exchange gives it the index 0
		r.in = Collector[T](&forwardRouter[T]{r})
	}
	return r
}

type router[T any] struct {
	edge    *edgeType[T]
	cfg     RouterConfig
	in      any
	batches []*batch[T] // per receiver; one for all when broadcasting
	owner   []int32     // receiver by key group
	next    int         // receiver in turn
	waiting int         // records in batches
}

func (r *router[T]) In() any        { return r.in }
func (r *router[T]) Buffered() bool { return r.waiting > 0 }

func (r *router[T]) add(to int, ts Timestamp, v T) error {
	b := r.batches[to]
	if b == nil {
		b = r.edge.get(r.cfg.BatchSize)
		r.batches[to] = b
	}
	b.times = append(b.times, ts)
	b.values = append(b.values, v)
	r.waiting++
	if len(b.values) < r.cfg.BatchSize {
		return nil
	}
	return r.send(to)
}

func (r *router[T]) send(to int) error {
	b := r.batches[to]
	r.batches[to] = nil
	r.waiting -= len(b.values)
	if r.cfg.Partitioning != job.Broadcast {
		return r.cfg.Send(to, b)
	}
	b.shared = r.cfg.Receivers > 1
	for i := range r.cfg.Receivers {
		if err := r.cfg.Send(i, b); err != nil {
			return err
		}
	}
	return nil
}

func (r *router[T]) Flush() error {
	if r.waiting == 0 {
		return nil
	}
	for i, b := range r.batches {
		if b != nil {
			if err := r.send(i); err != nil {
				return err
			}
		}
	}
	if r.cfg.Partitioning == job.Rebalance { // else a stream with fewer records than batches hold would have one receiver only
		r.next = (r.next + 1) % r.cfg.Receivers
	}
	return nil
}

type hashRouter[T any] struct{ *router[T] }

func (r *hashRouter[T]) Collect(ts Timestamp, v T) error {
	group := job.KeyGroupOf(r.edge.hash(v), len(r.owner))
	return r.add(int(r.owner[group]), ts, v)
}

type broadcastRouter[T any] struct{ *router[T] }

func (r *broadcastRouter[T]) Collect(ts Timestamp, v T) error { return r.add(0, ts, v) }

type forwardRouter[T any] struct{ *router[T] }

func (r *forwardRouter[T]) Collect(ts Timestamp, v T) error { return r.add(0, ts, v) }

type rebalanceRouter[T any] struct{ *router[T] }

// Collect changes the receiver with every batch, not with every record: the same balance with fuller batches.
func (r *rebalanceRouter[T]) Collect(ts Timestamp, v T) error {
	to := r.next
	if err := r.add(to, ts, v); err != nil {
		return err
	}
	if r.batches[to] == nil {
		r.next = (to + 1) % r.cfg.Receivers
	}
	return nil
}
