package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/weirstream/weir/stream/codec"
)

// TTLOption is an option of a time to live; see ExpiringValue.
type TTLOption uint8

// The options of a time to live.
const (
	// OnReadAndWrite makes reading an entry begin its time anew, not only creating and writing it. Each such read is a write.
	OnReadAndWrite TTLOption = 1 << iota
	// ReturnExpiredIfNotCleanedUp lets expired entries be read as long as they are there, which is not for long and not for certain. Without it they are never
	// given.
	ReturnExpiredIfNotCleanedUp
)

// ExpiringValue makes the values of a state expire when they have not been written for a time d, in processing time and whole milliseconds. It returns s.
// There is such a function for each kind of state. What expires by itself is the value of a key (and namespace), an element of a list, an entry of a map.
// In a list of which All is called with OnReadAndWrite the time of all elements begins anew.
//
// Expired entries are not in checkpoints, and are cleaned up beside the records, some at a time: after its time to live, about as much again passes at most
// until one that nobody touches is gone, unless the task is too busy.
//
// The duration may change between versions, and counts for what is stored too. A state that was written without a time to live may get one: what it has
// begins its time at the restore; and the other way round: then what had not expired at the checkpoint stays for ever.
func ExpiringValue[K comparable, V any](s *Value[K, V], d time.Duration, options ...TTLOption) *Value[K, V] {
	expireCell(&s.cell, d, options)
	return s
}

// ExpiringReducing is ExpiringValue for what values were combined to. What has expired is not combined with what comes.
func ExpiringReducing[K comparable, V any](s *Reducing[K, V], d time.Duration, options ...TTLOption) *Reducing[K, V] {
	expireCell(&s.cell, d, options)
	return s
}

// ExpiringAggregating is ExpiringValue for accumulators. What has expired takes nothing more.
func ExpiringAggregating[K comparable, In, Acc, Out any](s *Aggregating[K, In, Acc, Out], d time.Duration, options ...TTLOption) *Aggregating[K, In, Acc, Out] {
	expireCell(&s.cell, d, options)
	return s
}

func newTTL(d time.Duration, options []TTLOption, err *error) *ttl {
	l := &ttl{millis: d.Milliseconds()}
	if l.millis < 1 && *err == nil {
		*err = fmt.Errorf("a time to live of %v: it must be a millisecond or more", d)
	}
	for _, option := range options {
		l.onRead = l.onRead || option&OnReadAndWrite != 0
		l.showExpired = l.showExpired || option&ReturnExpiredIfNotCleanedUp != 0
	}
	return l
}

// ttl is how long entries live.
type ttl struct {
	millis      int64
	onRead      bool
	showExpired bool
}

// expired tells whether what was accessed last at a time is over. Processing time is not before 1970.
func (l *ttl) expired(at, now Timestamp) bool { return at <= now-Timestamp(l.millis) }

// timed is a stored value with the time of its last access.
type timed[V any] struct {
	value V
	at    Timestamp
}

// liveness says how much of what is stored for an entry has not expired.
type liveness uint8

const (
	allLive liveness = iota
	someLive
	noneLive
)

func liveValue[V any](l *ttl) func(timed[V], Timestamp) (timed[V], liveness) {
	return func(v timed[V], now Timestamp) (timed[V], liveness) {
		if l.expired(v.at, now) {
			return v, noneLive
		}
		return v, allLive
	}
}

// timedCodec writes a value and then the time. Its schema is that of the value: the state's says that there are times.
type timedCodec[V any] struct{ values codec.Codec[V] }

// Append implements codec.Codec.
func (c timedCodec[V]) Append(dst []byte, v timed[V]) ([]byte, error) {
	dst, err := c.values.Append(dst, v.value)
	return binary.AppendVarint(dst, int64(v.at)), err
}

// Decode implements codec.Codec.
func (c timedCodec[V]) Decode(src []byte) (v timed[V], rest []byte, err error) {
	if v.value, rest, err = c.values.Decode(src); err != nil {
		return v, src, err
	}
	at, n := binary.Varint(rest)
	if n <= 0 {
		return v, src, errors.New("truncated time of the last access")
	}
	v.at = Timestamp(at)
	return v, rest[n:], nil
}

// Schema implements codec.Codec.
func (c timedCodec[V]) Schema() string { return c.values.Schema() }

// ResolveSchema implements codec.Resolver.
func (c timedCodec[V]) ResolveSchema(written string) (codec.Codec[timed[V]], error) {
	values, err := codec.Resolve(c.values, written)
	return timedCodec[V]{values}, err
}

// Converts is what codec.Converts gives.
func (c timedCodec[V]) Converts() []string { return codec.Converts(c.values) }

// ownTimed gives the value in it memory of its own.
func ownTimed[V any](own func(v, before V) V) func(v, before timed[V]) timed[V] {
	if own == nil {
		return nil
	}
	return func(v, before timed[V]) timed[V] {
		v.value = own(v.value, before.value)
		return v
	}
}

// Owned implements codec.Owner.
func (c timedCodec[V]) Owned() func(v, before timed[V]) timed[V] {
	return ownTimed(codec.Owned(c.values))
}

// converted reads values by a codec and makes others of them.
type converted[A, B any] struct {
	from codec.Codec[A]
	make func(A) B
}

// Append implements codec.Codec.
func (converted[A, B]) Append(dst []byte, _ B) ([]byte, error) {
	return dst, errors.New("a codec of older values only reads")
}

// Decode implements codec.Codec.
func (c converted[A, B]) Decode(src []byte) (v B, rest []byte, err error) {
	a, rest, err := c.from.Decode(src)
	if err != nil {
		return v, src, err
	}
	return c.make(a), rest, nil
}

// Schema implements codec.Codec.
func (c converted[A, B]) Schema() string { return c.from.Schema() }

// timeless reads values that were written with times.
type timeless[V any] struct{ codec.Codec[V] }

// Decode implements codec.Codec.
func (c timeless[V]) Decode(src []byte) (v V, rest []byte, err error) {
	if v, rest, err = c.Codec.Decode(src); err != nil {
		return v, src, err
	}
	_, n := binary.Varint(rest)
	if n <= 0 {
		return v, src, errors.New("truncated time of the last access")
	}
	return v, rest[n:], nil
}

// sweepEntries is how many entries of a state are looked at between two batches, for those that have expired. It is about as many as a batch can add, so
// that what has expired is not more than what has not.
const sweepEntries = 512

// sweeper is a table whose entries expire.
type sweeper interface {
	// sweep cleans up a bounded part, if it is time for that, and says when to call it again; a time that is not after now says that there is more.
	sweep(now Timestamp) (next Timestamp)
}

// passes is when a table is gone through for what has expired: all the time while there is much, else a few times in the life of an entry.
type passes struct {
	every Timestamp
	due   Timestamp
}

// minPass is the least time between the beginnings of two passes.
const minPass = 100 * time.Millisecond

func newPasses(l *ttl) passes {
	return passes{every: max(Timestamp(l.millis/4), Timestamp(minPass.Milliseconds()))}
}

// next says when the next part is due, when one is done and was the last of its pass or not.
func (p *passes) next(now Timestamp, ended bool) Timestamp {
	if ended {
		p.due = now + p.every
	}
	return p.due
}
