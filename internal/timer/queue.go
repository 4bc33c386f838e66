package timer

import "github.com/weirstream/weir/internal/job"

// Timer is a time at which a key wants to be called; it is the key of a row. The value of the row is the number of the call that set it, so that what the
// queue has of a timer that was deleted, and perhaps set again, can be told from what is there.
type Timer[K comparable] struct {
	Key K
	At  int64
}

// Rows is the table of the timers.
type Rows[K comparable] interface {
	Get(hash uint64, t Timer[K]) (uint64, bool)
	Put(hash uint64, t Timer[K], number uint64)
	Delete(hash uint64, t Timer[K])
	Range(f func(t Timer[K], number uint64) error) error
}

// Queue is the timers of a subtask. The rows are what counts; the heap, which is in memory only, is their order, and may have timers that are not there
// any more.
type Queue[K comparable] struct {
	rows           Rows[K]
	hash           func(K) uint64
	maxParallelism int
	own            func(key, before K) K // nil: keys refer to no memory
	heap           []item[K]
	last           uint64 // number that was given
	stale          int    // items of the heap whose rows are gone
}

type item[K comparable] struct {
	at     int64
	number uint64
	key    K
}

func (a *item[K]) before(b *item[K]) bool {
	return a.at < b.at || a.at == b.at && a.number < b.number
}

// New returns the queue of the timers in a table. Load takes over those that it has already. own, if it is not nil, gives a key memory of its own, as
// codec.Owned does.
func New[K comparable](rows Rows[K], hash func(K) uint64, maxParallelism int, own func(key, before K) K) *Queue[K] {
	return &Queue[K]{rows: rows, hash: hash, maxParallelism: maxParallelism, own: own}
}

// Load makes the queue what the table has, after a restore.
func (q *Queue[K]) Load() error {
	q.heap, q.stale = nil, 0
	err := q.rows.Range(func(t Timer[K], number uint64) error {
		q.heap = append(q.heap, item[K]{t.At, number, t.Key})
		q.last = max(q.last, number)
		return nil
	})
	q.heapify()
	return err
}

// HashOf is the hash of a timer's row: in the key group of the key.
func HashOf(key uint64, at int64, maxParallelism int) uint64 {
	return job.HashInGroupOf(key, job.MixHashes(key, uint64(at)), maxParallelism)
}

func (q *Queue[K]) hashOf(hash uint64, at int64) uint64 { return HashOf(hash, at, q.maxParallelism) }

// Set sets a timer, unless it is set already.
func (q *Queue[K]) Set(hash uint64, key K, at int64) {
	t, h := Timer[K]{key, at}, q.hashOf(hash, at)
	if _, ok := q.rows.Get(h, t); ok {
		return
	}
	if q.own != nil {
		var nothing K
		key = q.own(key, nothing)
		t.Key = key
	}
	q.last++
	q.rows.Put(h, t, q.last)
	q.push(item[K]{at, q.last, key})
}

// Delete takes a timer away, if it is set.
func (q *Queue[K]) Delete(hash uint64, key K, at int64) {
	t, h := Timer[K]{key, at}, q.hashOf(hash, at)
	if _, ok := q.rows.Get(h, t); !ok {
		return
	}
	q.rows.Delete(h, t)
	q.stale++
	if q.stale > minStale && q.stale > len(q.heap)/2 {
		q.forgetStale()
	}
}

// minStale is how many stale items are not worth a look at all of them.
const minStale = 64

// forgetStale drops the items whose rows are gone. It looks at fewer than twice as many as were deleted since the last time.
func (q *Queue[K]) forgetStale() {
	live := q.heap[:0]
	for _, i := range q.heap {
		if q.isSet(&i) {
			live = append(live, i)
		}
	}
	clear(q.heap[len(live):])
	q.heap, q.stale = live, 0
	q.heapify()
}

func (q *Queue[K]) isSet(i *item[K]) bool {
	number, ok := q.rows.Get(q.hashOf(q.hash(i.key), i.at), Timer[K]{i.key, i.at})
	return ok && number == i.number
}

// Next is the time of the first timer; ok is false if there is none.
func (q *Queue[K]) Next() (at int64, ok bool) {
	for len(q.heap) > 0 {
		// Without stale items, which is the usual case, no row is looked at.
		if q.stale == 0 || q.isSet(&q.heap[0]) {
			return q.heap[0].at, true
		}
		q.pop()
		q.stale--
	}
	return 0, false
}

// Take takes the first timer away if its time is not after until.
func (q *Queue[K]) Take(until int64) (t Timer[K], ok bool) {
	at, ok := q.Next()
	if !ok || at > until {
		return t, false
	}
	t = Timer[K]{q.heap[0].key, at}
	q.pop()
	q.rows.Delete(q.hashOf(q.hash(t.Key), at), t)
	return t, true
}

// Len is the number of timers.
func (q *Queue[K]) Len() int { return len(q.heap) - q.stale }
