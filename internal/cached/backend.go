package cached

import (
	"sync"
	"sync/atomic"
	"time"
)

// Backend is what the operators of a process share: a budget of memory and a disk. Its methods may be called from any goroutine.
type Backend struct {
	disk   Disk
	budget int64
	share  atomic.Int64 // of one operator
	stats  counters

	mu struct {
		sync.Mutex
		operators int64
	}
}

// New returns a backend whose operators have so many bytes for entries in memory, in equal shares.
func New(disk Disk, budget int64) *Backend {
	b := &Backend{disk: disk, budget: budget}
	b.share.Store(budget)
	return b
}

// minShare is what an operator has at least, in bytes, however many there are.
const minShare = 64 << 10

// join changes the number of operators that run.
func (b *Backend) join(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.operators += n
	b.share.Store(max(minShare, b.budget/max(1, b.mu.operators)))
}

// Stats is what the operators of a process have done.
type Stats struct {
	Operators  int64         // that run
	Budget     int64         // of memory, in bytes
	Reads      int64         // of keys that were not in memory
	Seals      int64         // that have ended well
	SealedRows int64         // entries that they wrote
	Written    int64         // bytes that they wrote
	Evicted    int64         // entries that were dropped from memory
	Waits      int64         // of tasks for a seal, because their share was full
	Waited     time.Duration // in all
}

type counters struct{ reads, seals, rows, written, evicted, waits, waited atomic.Int64 }

// Stats is a sum over all operators since the start of the process.
func (b *Backend) Stats() Stats {
	b.mu.Lock()
	operators := b.mu.operators
	b.mu.Unlock()
	c := &b.stats
	return Stats{
		Operators: operators, Budget: b.budget, Reads: c.reads.Load(), Seals: c.seals.Load(), SealedRows: c.rows.Load(), Written: c.written.Load(),
		Evicted: c.evicted.Load(), Waits: c.waits.Load(), Waited: time.Duration(c.waited.Load()),
	}
}
