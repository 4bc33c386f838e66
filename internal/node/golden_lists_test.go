package node_test

import (
	"context"
	"fmt"

	"github.com/weirstream/weir/stream"
)

// goldenLists has every kind of operator state.
func goldenLists(j *stream.Job, in stream.Stream[goldenLine], hold goldenHold) stream.Stream[string] {
	even, odd := stream.NewListState[int64]("even"), stream.NewUnionListState[goldenLine]("odd")
	plain := stream.ProcessStream(in.Rebalance(), "plain", stream.ProcessFunction[goldenLine, string]{
		Open: func(c *stream.OperatorContext) error {
			var own []goldenLine
			i := 0
			for e := range odd.All(c) {
				if i%c.Parallelism() == c.Subtask() {
					own = append(own, e)
				}
				i++
			}
			odd.Set(c, own)
			return nil
		},
		Process: func(c *stream.OperatorContext, v goldenLine, emit func(string) error) error {
			switch {
			case v.N < 0:
				return emit(v.Text)
			case v.N%2 == 0:
				even.Append(c, v.N)
			default:
				odd.Append(c, v)
			}
			if v.N%100 == 0 {
				return emit(fmt.Sprint("seen ", v.N))
			}
			return nil
		},
		Finish: func(c *stream.OperatorContext, emit func(string) error) error {
			for n := range even.All(c) {
				if err := emit(fmt.Sprint("even ", n)); err != nil {
					return err
				}
			}
			for e := range odd.All(c) {
				if err := emit(fmt.Sprint("odd ", e.N)); err != nil {
					return err
				}
			}
			even.Clear(c)
			odd.Clear(c)
			return nil
		},
	}, even, odd)
	rules := stream.NewBroadcastState[string, uint16]("rules")
	return stream.ProcessBroadcast(plain, stream.From(j, "marks", goldenMarker{hold}), "rules", stream.BroadcastFunction[string, string, string]{
		Process: func(_ *stream.OperatorContext, b *stream.ReadOnlyContext, v string, emit func(string) error) error {
			if v[0] != 'k' {
				return emit(v)
			}
			for k, n := range rules.All(b) {
				v += fmt.Sprint(" ", k, "=", n)
			}
			return emit(v)
		},
		Broadcast: func(c *stream.BroadcastContext, v string, _ func(string) error) error {
			n, _ := rules.Get(c, v)
			rules.Put(c, v, n+1)
			return nil
		},
	}, rules)
}

// goldenListModel adds to the model what operator state makes of it.
func goldenListModel(lines []string) []string {
	for i, l := range lines {
		if l[0] == 'k' {
			lines[i] += " mark0=1 mark1=1 mark2=1"
		}
	}
	for range 2 {
		for n := range goldenEvents {
			lines = append(lines, fmt.Sprint([]string{"even ", "odd "}[n%2], n))
		}
	}
	return lines
}

// goldenMarker gives its marks when the job is held, and none else.
type goldenMarker struct{ hold goldenHold }

func (goldenMarker) Splits(context.Context, int) ([][]byte, error) { return [][]byte{{0}}, nil }

func (s goldenMarker) Open(env stream.SourceEnv) (stream.Reader[string], error) {
	r := &goldenMarkReader{hold: s.hold, next: goldenMarks}
	if len(env.Splits) > 0 {
		r.next = int(env.Splits[0][0])
	}
	return r, nil
}

type goldenMarkReader struct {
	hold goldenHold
	next int
}

func (r *goldenMarkReader) Read(out stream.Collector[string], _ int) (stream.Next, error) {
	if r.hold == (goldenHold{}) {
		return stream.End, nil
	}
	for ; r.next < goldenMarks; r.next++ {
		if err := out.Collect(stream.NoTimestamp, fmt.Sprint("mark", r.next)); err != nil {
			return stream.End, err
		}
	}
	if r.hold.held() {
		return r.hold.wait(), nil
	}
	return stream.End, nil
}

func (r *goldenMarkReader) Positions() ([][]byte, error) { return [][]byte{{byte(r.next)}}, nil }
func (*goldenMarkReader) Close() error                   { return nil }
