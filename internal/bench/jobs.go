package main

import (
	"github.com/weirstream/weir/connector/datagen"
	"github.com/weirstream/weir/examples/flights"
	"github.com/weirstream/weir/stream"
)

// event is a record of the benchmark jobs: as many fields as a small event has, all of which every job reads.
type event struct {
	Key   int64
	Price int64
	Name  string
	Open  bool
}

var names = [...]string{"amsterdam", "berlin", "copenhagen", "dublin", "edinburgh", "florence", "geneva", "helsinki"}

func newEvent(i int64) event {
	return event{Key: i * 7919 % 10_000, Price: i & 0xffff, Name: names[i&7], Open: i&1 == 0}
}

func jobs() []stream.Definition {
	return []stream.Definition{
		stream.Define("chain", "source, map, filter, map, sink in one task", chain),
		stream.Define("keyed", "source, sum per key behind an exchange, sink", keyed),
		stream.Define("store", "fills a keyed state, then updates it at a rate", store),
		flights.Definition(),
	}
}

func source(j *stream.Job) stream.Stream[event] {
	n, rate := j.IntParam("records", 0), j.IntParam("rate", 0)
	return stream.From(j, "events", datagen.Func(int64(n), rate, newEvent))
}

func chain(j *stream.Job) error {
	doubled := stream.Map(source(j), "double", func(e event) event { e.Price *= 2; return e })
	some := stream.Filter(doubled, "some", func(e event) bool { return e.Price%3 != 0 || e.Open })
	sums := stream.Map(some, "sum", func(e event) int64 { return e.Key + e.Price + int64(len(e.Name)) })
	stream.To(sums, "out", discard[int64]{})
	return nil
}

func keyed(j *stream.Job) error {
	byKey := stream.KeyBy(source(j), func(e event) int64 { return e.Key })
	sums := stream.Aggregate(byKey, "sums", prices{}, stream.EmitAtEnd)
	stream.To(sums, "out", discard[int64]{})
	return nil
}

type prices struct{}

func (prices) New() int64                      { return 0 }
func (prices) Add(sum int64, e event) int64    { return sum + e.Price + int64(len(e.Name)) }
func (prices) Result(_ int64, sum int64) int64 { return sum }

// discard is a sink that takes records and keeps none.
type discard[T any] struct{}

func (discard[T]) Open(stream.SinkEnv) (stream.Writer[T], error) { return discard[T]{}, nil }
func (discard[T]) Write(stream.Timestamp, T) error               { return nil }
func (discard[T]) Flush() error                                  { return nil }
func (discard[T]) Close() error                                  { return nil }
