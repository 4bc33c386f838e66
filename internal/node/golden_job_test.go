package node_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirstream/weir/examples"
	"github.com/weirstream/weir/stream"
)

// The job of the golden checkpoints. It must go on to be able to read them: what is there is never changed or taken away, but new kinds of state are
// added to it before the next golden checkpoint is taken.

const (
	goldenEvents = 300 // of each split
	goldenKeys   = 17  // of each split
	goldenMarks  = 3
)

// goldenEvent is a record of the job.
type goldenEvent struct {
	Key   string
	N     int64
	Tags  []string
	Probe bool // it asks for the state of its key and changes none
}

// goldenLine is what the job knows of a record: for a probe the state of its key.
type goldenLine struct {
	N    int64
	Text string
}

// testJobs are the jobs of the programs in these tests.
func testJobs() []stream.Definition {
	return append(examples.Jobs(), stream.Define("golden", "reads golden checkpoints", golden),
		changed[string, bool, int64]("golden-value", stream.NewListState[int64]),
		changed[int64, goldenSummary, int64]("golden-key", stream.NewListState[int64]),
		changed[string, goldenSummary, string]("golden-list", stream.NewListState[string]),
		changed[string, goldenSummary, goldenLine]("golden-mode", nil))
}

// changed is a job that has changed the type of a state in a way that no rule covers; without even it is the mode of odd that has changed.
func changed[K comparable, V, E any](name string, even func(name string) *stream.ListState[E]) stream.Definition {
	return stream.Define(name, "", func(j *stream.Job) error {
		keyed := stream.KeyBy(stream.From(j, "other", goldenMarker{}), func(string) (k K) { return k })
		none := func(*stream.Context[K], string, func(string) error) error { return nil }
		out := stream.Process(keyed, "keyed", none, stream.NewValue[K, V]("value"),
			stream.NewReducing[K]("reducing", func(a, _ int64) int64 { return a }), stream.NewAggregating[K, int64]("aggregating", changedMean[K]{}), stream.NewList[K, string]("list"))
		states := []stream.OperatorState{stream.NewListState[int64]("even"), stream.NewListState[E]("odd")}
		if even != nil {
			states = []stream.OperatorState{even("even"), stream.NewUnionListState[goldenLine]("odd")}
		}
		stream.ProcessStream(out, "plain", stream.ProcessFunction[string, string]{
			Process: func(*stream.OperatorContext, string, func(string) error) error { return nil },
		}, states...)
		return nil
	})
}

type changedMean[K any] struct{}

func (changedMean[K]) New() goldenAcc                       { return goldenAcc{} }
func (changedMean[K]) Add(a goldenAcc, _ int64) goldenAcc   { return a }
func (changedMean[K]) Result(_ K, _ goldenAcc) (out string) { return out }

func golden(j *stream.Job) error {
	hold, out := goldenHold{j.BoolParam("hold", false), j.ParamOr("until", "")}, j.Param("output")
	events := stream.From(j, "events", goldenSource{hold})
	byKey := stream.KeyBy(events, func(e goldenEvent) string { return e.Key })
	stream.To(goldenLists(j, goldenKeyed(byKey), hold), "out", stream.Sink[string](goldenSink{out}))
	return nil
}

// goldenHold says whether the sources wait when they have given what they have: for ever, or until a file is there.
type goldenHold struct {
	ever  bool
	until string
}

func (h goldenHold) held() bool {
	if h.until == "" {
		return h.ever
	}
	_, err := os.Stat(h.until)
	return err != nil
}

// wait is what a source says that is held.
func (h goldenHold) wait() stream.Next {
	if h.until != "" {
		return stream.WaitUntil(time.Now().Add(5 * time.Millisecond))
	}
	return stream.WaitForWake
}

// goldenSummary is a value with fields of many types.
type goldenSummary struct {
	Last  int64
	Small int8
	Ratio float64
	Tags  []string
	ByTag map[string]uint32
	Text  *string
}

type goldenMean struct{}

type goldenAcc struct{ Sum, Count int64 }

func (goldenMean) New() goldenAcc { return goldenAcc{} }
func (goldenMean) Add(a goldenAcc, v int64) goldenAcc {
	return goldenAcc{a.Sum + v, a.Count + 1}
}
func (goldenMean) Result(_ string, a goldenAcc) string { return fmt.Sprint(a.Sum, "/", a.Count) }

// goldenKeyed has every kind of keyed state.
func goldenKeyed(s stream.KeyedStream[string, goldenEvent]) stream.Stream[goldenLine] {
	value := stream.NewValue[string, goldenSummary]("value")
	reducing := stream.NewReducing[string]("reducing", func(a, b int64) int64 { return max(a, b) })
	aggregating := stream.NewAggregating[string, int64]("aggregating", goldenMean{})
	list := stream.NewList[string, string]("list")
	byDigit := stream.NewMap[string, int8, int64]("by-digit")
	recent := stream.ExpiringValue(stream.NewValue[string, int64]("recent"), math.MaxInt64) // it does not
	return stream.Process(s, "keyed", func(c *stream.Context[string], e goldenEvent, emit func(goldenLine) error) error {
		if e.Probe {
			v, _ := value.Get(c)
			most, _ := reducing.Get(c)
			mean, _ := aggregating.Get(c)
			text := fmt.Sprint(c.Key(), " last=", v.Last, " small=", v.Small, " ratio=", v.Ratio, " tags=", v.Tags, " by-tag=", v.ByTag, " text=", *v.Text,
				" most=", most, " mean=", mean, " list=", slices.Collect(list.All(c)))
			for digit, n := range byDigit.All(c) { // added after 002
				text += fmt.Sprint(" ", digit, ":", n)
			}
			if n, ok := recent.Get(c); ok {
				text += fmt.Sprint(" recent=", n)
			}
			return emit(goldenLine{-1, text})
		}
		text := "at " + fmt.Sprint(e.N)
		old, _ := value.Get(c)
		byTag := map[string]uint32{}
		for k, n := range old.ByTag {
			byTag[k] = n
		}
		for _, tag := range e.Tags {
			byTag[tag]++
		}
		value.Set(c, goldenSummary{e.N, int8(e.N), float64(e.N) / 4, e.Tags, byTag, &text})
		reducing.Add(c, e.N%50)
		aggregating.Add(c, e.N)
		list.Append(c, fmt.Sprint(e.N))
		n, _ := byDigit.Get(c, int8(e.N%10))
		byDigit.Put(c, int8(e.N%10), n+e.N)
		recent.Set(c, e.N)
		return emit(goldenLine{N: e.N})
	}, value, reducing, aggregating, list, byDigit, recent)
}

// goldenModel is what the job must give out of the keyed state when it is restored, as lines.
func goldenModel() (lines []string) {
	for split := range 2 {
		for k := range goldenKeys {
			var list []string
			var last, sum, count, most int64
			byTag := map[string]uint32{}
			var digits []int8 // in the order in which they came
			byDigit := map[int8]int64{}
			for n := int64(k); n < goldenEvents; n += goldenKeys {
				list = append(list, fmt.Sprint(n))
				digit := int8(n % 10)
				if !slices.Contains(digits, digit) {
					digits = append(digits, digit)
				}
				byDigit[digit] += n
				last, sum, count, most = n, sum+n, count+1, max(most, n%50)
				for _, tag := range goldenTags(n) {
					byTag[tag]++
				}
			}
			var more string
			for _, digit := range digits {
				more += fmt.Sprint(" ", digit, ":", byDigit[digit])
			}
			lines = append(lines, fmt.Sprint("k", split, "-", k, " last=", last, " small=", int8(last), " ratio=", float64(last)/4, " tags=", goldenTags(last), " by-tag=", byTag, " text=at ", last,
				" most=", most, " mean=", fmt.Sprint(sum, "/", count), " list=", list, more, " recent=", last))
		}
		for n := 0; n < goldenEvents; n += 100 {
			lines = append(lines, fmt.Sprint("seen ", n))
		}
	}
	return lines
}

func goldenTags(n int64) []string {
	if n%3 == 0 {
		return nil
	}
	return []string{"odd", "even"}[:1+n%2]
}

// goldenSource has two splits. Each gives its events, and then waits, or asks for the state of its keys and ends.
type goldenSource struct{ hold goldenHold }

func (goldenSource) Splits(context.Context, int) ([][]byte, error) {
	return [][]byte{{0, 0}, {1, 0}}, nil
}

func (s goldenSource) Open(env stream.SourceEnv) (stream.Reader[goldenEvent], error) {
	r := &goldenReader{hold: s.hold}
	for _, split := range env.Splits {
		next, n := binary.Uvarint(split[1:])
		if n <= 0 {
			return nil, errors.New("damaged position")
		}
		r.splits = append(r.splits, goldenSplit{split[0], int64(next)})
	}
	return r, nil
}

type goldenSplit struct {
	id   byte
	next int64 // event, and behind the events the probe
}

type goldenReader struct {
	hold   goldenHold
	splits []goldenSplit
}

func (r *goldenReader) Read(out stream.Collector[goldenEvent], limit int) (stream.Next, error) {
	held := r.hold.held()
	for i := range r.splits {
		s := &r.splits[i]
		for ; s.next < goldenEvents+goldenKeys; s.next++ {
			if s.next >= goldenEvents && held {
				break
			}
			if limit--; limit < 0 {
				return stream.More, nil
			}
			e := goldenEvent{Key: fmt.Sprint("k", s.id, "-", s.next%goldenKeys), N: s.next, Tags: goldenTags(s.next)}
			if s.next >= goldenEvents {
				e = goldenEvent{Key: fmt.Sprint("k", s.id, "-", s.next-goldenEvents), Probe: true}
			}
			if err := out.Collect(stream.Timestamp(s.next), e); err != nil {
				return stream.End, err
			}
		}
	}
	if held {
		return r.hold.wait(), nil
	}
	return stream.End, nil
}

func (r *goldenReader) Positions() (out [][]byte, err error) {
	for _, s := range r.splits {
		out = append(out, binary.AppendUvarint([]byte{s.id}, uint64(s.next)))
	}
	return out, nil
}

func (*goldenReader) Close() error { return nil }

// goldenSink commits transactions that hold their lines themselves, each to a file whose name is made of them.
type goldenSink struct{ dir string }

func (s goldenSink) Open(env stream.SinkEnv) (stream.Writer[string], error) {
	return &goldenWriter{dir: s.dir, env: env}, os.MkdirAll(s.dir, 0o755)
}

type goldenWriter struct {
	dir   string
	env   stream.SinkEnv
	lines []string
}

func (w *goldenWriter) Write(_ stream.Timestamp, v string) error {
	w.lines = append(w.lines, v)
	return nil
}

func (w *goldenWriter) Prepare(checkpoint int64) (stream.Prepared, error) {
	if len(w.lines) == 0 {
		return stream.Prepared{}, nil
	}
	head := fmt.Sprintf("job %s attempt %d subtask %d checkpoint %d\n", w.env.JobID, w.env.Attempt, w.env.Subtask, checkpoint)
	text := head + strings.Join(w.lines, "\n")
	w.lines = nil
	return stream.Prepared{Transaction: []byte(text), Persist: func() error { return nil }}, nil
}

func (w *goldenWriter) Commit(transaction []byte) error {
	return os.WriteFile(filepath.Join(w.dir, fmt.Sprintf("%x", sha256.Sum256(transaction))), transaction, 0o600)
}

func (*goldenWriter) Flush() error   { return nil }
func (*goldenWriter) Close() error   { return nil }
func (*goldenWriter) Recover() error { return nil }

// goldenOutput is what was committed, sorted.
func goldenOutput(dir string) ([]string, error) {
	var out []string
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		_, text, _ := bytes.Cut(data, []byte("\n"))
		out = append(out, strings.Split(string(text), "\n")...)
	}
	slices.Sort(out)
	return out, err
}
