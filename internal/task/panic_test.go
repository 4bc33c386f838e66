package task

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"testing/synctest"

	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream"
)

// words is a source of one record, which panics in Read when asked to.
type words struct{ panics, ends bool }

func (words) Splits(context.Context, int) ([][]byte, error)          { return nil, nil }
func (w words) Open(stream.SourceEnv) (stream.Reader[string], error) { return w, nil }
func (words) Positions() ([][]byte, error)                           { return nil, nil }
func (words) Close() error                                           { return nil }
func (w words) Read(out stream.Collector[string], _ int) (stream.Next, error) {
	if w.panics {
		var nobody *words
		_ = nobody.panics
	}
	if w.ends {
		return stream.End, nil
	}
	return stream.WaitForWake, out.Collect(stream.NoTimestamp, "word")
}

// panicSink panics at one of its methods.
type panicSink struct{ at string }

func (s panicSink) Open(stream.SinkEnv) (stream.Writer[string], error) {
	s.check("open")
	return s, nil
}
func (s panicSink) Write(stream.Timestamp, string) error { s.check("write"); return nil }
func (s panicSink) Flush() error                         { s.check("flush"); return nil }
func (s panicSink) Close() error                         { s.check("close"); return nil }

func (s panicSink) check(at string) {
	if s.at == at {
		panic("sink at " + at)
	}
}

// define builds src -> ops -> sink as the chain of one task.
func define(t *testing.T, src words, sink panicSink, ops func(stream.Stream[string]) stream.Stream[string]) *Chain {
	t.Helper()
	j := stream.NewJob("test", nil)
	stream.To(ops(stream.From(j, "src", src)), "sink", sink)
	if err := j.Err(); err != nil {
		t.Fatal(err)
	}
	c := &Chain{Running: new(int)}
	nodes := j.Nodes()
	var outs []any
	for i := len(nodes) - 1; i >= 0; i-- {
		link, err := nodes[i].Build(&stream.Env{
			Operator: nodes[i].ID, Index: i, Running: c.Running, Parallelism: 1, MaxParallelism: 8, KeyGroups: job.KeyGroupRange{End: 8},
		}, outs)
		if err != nil {
			t.Fatal(err)
		}
		c.Operators = append([]Operator{{nodes[i].ID, link.Operator}}, c.Operators...)
		c.Source, outs = link.Source, []any{link.In}
	}
	return c
}

func boom(s string) string {
	if s == "word" {
		panic("boom")
	}
	return s
}

func TestPanic_NamesOperatorPlaceAndKey(t *testing.T) {
	same := func(s stream.Stream[string]) stream.Stream[string] { return s }
	byWord := func(s stream.Stream[string]) stream.KeyedStream[string, string] {
		return stream.KeyBy(s, func(s string) string { return s })
	}
	for name, c := range map[string]struct {
		src      words
		sink     panicSink
		ops      func(stream.Stream[string]) stream.Stream[string]
		operator string
		want     string
	}{
		"map": {ops: func(s stream.Stream[string]) stream.Stream[string] { return stream.Map(s, "upper", boom) },
			operator: "upper", want: `^panic: boom at task/panic_test.go:\d+$`},
		"filter": {ops: func(s stream.Stream[string]) stream.Stream[string] {
			return stream.Filter(s, "some", func(s string) bool { return boom(s) != "" })
		}, operator: "some", want: `^panic: boom at task/panic_test.go:\d+$`},
		"flat-map behind its emit": {ops: func(s stream.Stream[string]) stream.Stream[string] {
			return stream.FlatMap(stream.Map(s, "m", func(s string) string { return s }), "flat", func(s string, emit func(string) error) error {
				if err := emit("first"); err != nil {
					return err
				}
				return emit(boom(s))
			})
		}, operator: "flat", want: `^panic: boom at task/panic_test.go:\d+$`},
		"keyed": {ops: func(s stream.Stream[string]) stream.Stream[string] {
			return stream.Process(byWord(s), "count", func(_ *stream.Context[string], v string, emit func(string) error) error {
				return emit(boom(v))
			})
		}, operator: "count", want: `^panic: boom at task/panic_test.go:\d+, key word$`},
		"source": {src: words{panics: true}, ops: same, operator: "src",
			want: `^panic: runtime error: invalid memory address or nil pointer dereference at task/panic_test.go:\d+$`},
		"sink, open":  {sink: panicSink{"open"}, ops: same, operator: "sink", want: `^panic: sink at open at task/panic_test.go:\d+$`},
		"sink, write": {sink: panicSink{"write"}, ops: same, operator: "sink", want: `^panic: sink at write at task/panic_test.go:\d+$`},
		"sink, flush": {sink: panicSink{"flush"}, ops: same, operator: "sink", want: `^panic: sink at flush at task/panic_test.go:\d+$`},
		"sink, close": {src: words{ends: true}, sink: panicSink{"close"}, ops: same, operator: "sink", want: `^panic: sink at close at task/panic_test.go:\d+$`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 1)
				r.cfg.Chain, r.cfg.Input, r.cfg.Outputs = define(t, c.src, c.sink, c.ops), nil, nil
				r.start()
				synctest.Wait()
				if err := r.mail.Post(Trigger{cpOf(1)}); err != nil && !errors.Is(err, ErrMailboxClosed) {
					t.Fatal(err)
				}
				synctest.Wait()
				cause := errors.New("ended by the test")
				if name == "sink, close" {
					if err := r.mail.Post(Trigger{element.Checkpoint{ID: 2, Final: true}}); err != nil {
						t.Fatal(err)
					}
					r.post(Completed{2})
				} else {
					r.cancel(cause)
				}
				err := r.wait()
				var op *stream.OperatorError
				if !errors.As(err, &op) || op.Operator != c.operator || !regexp.MustCompile(c.want).MatchString(op.Err.Error()) {
					t.Errorf("got %v, want operator %s: %s", err, c.operator, c.want)
				}
			})
		})
	}
}
