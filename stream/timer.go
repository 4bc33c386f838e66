package stream

import (
	"errors"
	"fmt"

	"github.com/weirstream/weir/internal/timer"
	"github.com/weirstream/weir/stream/codec"
)

// TimeDomain is which time a timer goes by.
type TimeDomain int

// The domains.
const (
	EventTime      TimeDomain = iota // that of the records, which advances with the watermark
	ProcessingTime                   // that of the machine
)

// Timer is a timer that fires.
type Timer struct {
	At     Timestamp
	Domain TimeDomain
}

// maxTimersAtOnce bounds how many timers an operator fires before the task looks at its mail again, where a checkpoint may wait.
const maxTimersAtOnce = 512

// SetEventTimer sets a timer of the current key, and of the namespace that c is in, for a time of events; if there is one for that time already, nothing
// changes. It fires when the watermark of the operator has come to that time, which is at the end of bounded input at the latest. A timer for a time that
// is over fires with the next watermark.
func (c *Context[K]) SetEventTimer(at Timestamp) { c.timers().set(EventTime, c, at) }

// SetProcessingTimer sets a timer of the current key, and of the namespace that c is in, for a time of the machine; if there is one for that time already,
// nothing changes. It fires at that time or, when the task is behind or was not running, as soon as possible after it. The end of the input does not
// make it fire.
func (c *Context[K]) SetProcessingTimer(at Timestamp) { c.timers().set(ProcessingTime, c, at) }

// DeleteEventTimer takes the timer back that SetEventTimer has set for that time; if there is none, nothing changes.
func (c *Context[K]) DeleteEventTimer(at Timestamp) { c.timers().delete(EventTime, c, at) }

// DeleteProcessingTimer takes the timer back that SetProcessingTimer has set for that time; if there is none, nothing changes.
func (c *Context[K]) DeleteProcessingTimer(at Timestamp) { c.timers().delete(ProcessingTime, c, at) }

func (c *Context[K]) timers() *timers[K] {
	t, ok := c.op.timers.(*timers[K])
	if !ok {
		panic(fmt.Sprintf("a timer for keys of type %s is set in an operator that has none: use ProcessWithTimers, or ProcessWithTimersIn for those with a namespace", typeName[K]()))
	}
	return t
}

// ProcessWithTimers is Process with timers: f sets them, and onTimer is called with the states of the key of each timer that fires. Timers are state: they
// are in checkpoints, and a timer and what onTimer does belong to the same one. Timers of a domain fire in the order of their times. What onTimer emits has
// the time of an event timer, and no time behind a processing timer. id must not be empty.
func ProcessWithTimers[K comparable, T, R any](
	s KeyedStream[K, T], id string,
	f func(c *Context[K], v T, emit func(R) error) error, onTimer func(c *Context[K], t Timer, emit func(R) error) error, states ...State[K],
) Stream[R] {
	if onTimer == nil {
		s.stream.job.fail("operator %s: ProcessWithTimers needs a function for timers", id)
	}
	states = append(states[:len(states):len(states)], &timerState[K]{domain: EventTime}, &timerState[K]{domain: ProcessingTime})
	return processWithTimers(s, id, f, states, func(o *processOperator[K, T, R]) {
		o.ctx.op.timers.(*timers[K]).call = func(key K, t Timer) error {
			o.enterTimer(key, t)
			return onTimer(&o.ctx, t, o.emit)
		}
	})
}

// ProcessWithTimersIn is ProcessWithTimers for timers with a namespace, such as a window, which are set by way of In.
func ProcessWithTimersIn[K, N comparable, T, R any](
	s KeyedStream[K, T], id string,
	f func(c *Context[K], v T, emit func(R) error) error, onTimer func(c *Context[K], ns N, t Timer, emit func(R) error) error, states ...State[K],
) Stream[R] {
	if onTimer == nil {
		s.stream.job.fail("operator %s: ProcessWithTimersIn needs a function for timers", id)
	}
	states = append(states[:len(states):len(states)],
		PerNamespace(State[Namespaced[K, N]](&timerState[Namespaced[K, N]]{domain: EventTime})),
		PerNamespace(State[Namespaced[K, N]](&timerState[Namespaced[K, N]]{domain: ProcessingTime})))
	return processWithTimers(s, id, f, states, func(o *processOperator[K, T, R]) {
		o.ctx.op.timers.(*timers[Namespaced[K, N]]).call = func(key Namespaced[K, N], t Timer) error {
			o.enterTimer(key.Key, t)
			return onTimer(&o.ctx, key.Namespace, t, o.emit)
		}
	})
}

func processWithTimers[K comparable, T, R any](
	s KeyedStream[K, T], id string, f func(*Context[K], T, func(R) error) error, states []State[K], connect func(*processOperator[K, T, R]),
) Stream[R] {
	return keyed(s, &Node{ID: id, Kind: "process"}, states, func(base *keyedOperator[K, T], out Collector[R]) *Link {
		op := newProcessOperator(base, f, nil, out)
		connect(op)
		return &Link{Operator: op, In: Collector[T](op)}
	})
}

func (o *processOperator[K, T, R]) enterTimer(key K, t Timer) {
	o.env.enter()
	ts := NoTimestamp
	if t.Domain == EventTime {
		ts = t.At
	}
	o.ctx.set(key, ts)
}

// timerService is the timers of an operator, whatever their namespaces.
type timerService interface {
	load() error
	fire(domain TimeDomain, until Timestamp) (more bool, err error)
	next(domain TimeDomain) Timestamp
}

// timers is timerService for timers of keys, or of keys with a namespace.
type timers[K comparable] struct {
	tables [2]*timerTable[K] // by domain
	call   func(key K, t Timer) error
}

func (s *timers[K]) set(d TimeDomain, c *Context[K], at Timestamp) {
	s.tables[d].queue.Set(c.hash, c.key, int64(at))
}

func (s *timers[K]) delete(d TimeDomain, c *Context[K], at Timestamp) {
	s.tables[d].queue.Delete(c.hash, c.key, int64(at))
}

// load takes over what was restored.
func (s *timers[K]) load() error {
	return errors.Join(s.tables[EventTime].queue.Load(), s.tables[ProcessingTime].queue.Load())
}

// fire fires timers up to a time, at most maxTimersAtOnce of them. A timer is gone before its function is called, which may set it again.
func (s *timers[K]) fire(d TimeDomain, until Timestamp) (more bool, err error) {
	for range maxTimersAtOnce {
		t, ok := s.tables[d].queue.Take(int64(until))
		if !ok {
			return false, nil
		}
		if err := s.call(t.Key, Timer{Timestamp(t.At), d}); err != nil {
			return false, err
		}
	}
	at, ok := s.tables[d].queue.Next()
	return ok && Timestamp(at) <= until, nil
}

// next is when the first timer of a domain is due, MaxTimestamp if there is none.
func (s *timers[K]) next(d TimeDomain) Timestamp {
	at, ok := s.tables[d].queue.Next()
	if !ok {
		return MaxTimestamp
	}
	return Timestamp(at)
}

// timerState is the timers of one domain as a state of an operator.
type timerState[K comparable] struct {
	domain TimeDomain
}

func (s *timerState[K]) name() string {
	return [...]string{"_timer_state/event", "_timer_state/processing"}[s.domain]
}

func (s *timerState[K]) kind() string {
	return [...]string{kindEventTimers, kindProcessingTimers}[s.domain]
}

func (s *timerState[K]) bind(int, string) error { return nil }

func (s *timerState[K]) newTable(env *Env, op *operatorContext, keys keyForm[K]) table {
	all, ok := op.timers.(*timers[K])
	if !ok {
		all = &timers[K]{}
		op.timers = all
	}
	t := newTimerTable(env, s, keys)
	all.tables[s.domain] = t
	return t
}

// timerTable is the timers of one domain in one subtask.
type timerTable[K comparable] struct {
	of             *timerState[K]
	keys           keyForm[K]
	rows           rows[timer.Timer[K], uint64]
	queue          *timer.Queue[K]
	numbers        codec.Codec[uint64]
	maxParallelism int
	restored       uint64 // timers
}

func newTimerTable[K comparable](env *Env, of *timerState[K], keys keyForm[K]) *timerTable[K] {
	numbers, err := codec.For[uint64]()
	if err != nil {
		panic(err) // integers have an encoding
	}
	t := &timerTable[K]{of: of, keys: keys, numbers: numbers, maxParallelism: env.MaxParallelism}
	t.rows = newRows(env, rowsSpec[timer.Timer[K], uint64]{
		name: of.name(), keys: timer.Codec[K]{Keys: keys.codec}, values: numbers, hash: t.hashOf, plain: codec.Plain[K](),
	})
	t.queue = timer.New[K](t.rows, keys.hash, env.MaxParallelism, codec.Owned(keys.codec))
	return t
}

func (t *timerTable[K]) hashOf(row timer.Timer[K]) uint64 {
	return timer.HashOf(t.keys.hash(row.Key), row.At, t.maxParallelism)
}

func (t *timerTable[K]) schema() StateSchema {
	s := StateSchema{Name: t.of.name(), Kind: t.of.kind(), ValueType: "int64"}
	t.keys.describe(&s)
	return s
}

func (t *timerTable[K]) check(written StateSchema) error {
	_, err := t.resolve(written)
	return err
}

func (t *timerTable[K]) resolve(written StateSchema) (codec.Codec[K], error) {
	if err := sameKind(written, t.of.kind()); err != nil {
		return nil, err
	}
	keys, err := t.keys.read(written)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	return keys, nil
}

// snapshot is of keys and times; which call has set a timer is of no use to anybody else.
func (t *timerTable[K]) snapshot() (tableSnapshot, error) {
	return &valueSnapshot[timer.Timer[K], uint64]{keys: timer.Codec[K]{Keys: t.keys.codec}, values: nothing{}, rows: t.rows.Snapshot()}, nil
}

func (t *timerTable[K]) restore(group int, written StateSchema, data []byte) ([]byte, error) {
	keys, err := t.resolve(written)
	if err != nil {
		return nil, Permanent(err)
	}
	return readEntries(data, timer.Codec[K]{Keys: keys}, nothing{}, func(row timer.Timer[K], _ uint64) error {
		if err := inGroup(group, row.Key, t.keys.hash(row.Key), t.maxParallelism); err != nil {
			return err
		}
		t.restored++
		t.rows.Put(t.hashOf(row), row, t.restored)
		return nil
	})
}

// nothing is the codec of a number that is not written.
type nothing struct{}

func (nothing) Append(dst []byte, _ uint64) ([]byte, error) { return dst, nil }
func (nothing) Decode(src []byte) (uint64, []byte, error)   { return 0, src, nil }
func (nothing) Schema() string                              { return "" }
