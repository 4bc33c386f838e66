package stream

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream/codec"
)

// received is what a router has sent, by receiver.
type received struct {
	batches map[int][]*batch[string]
	fail    error
}

func (r *received) send(receiver int, b Batch) error {
	r.batches[receiver] = append(r.batches[receiver], b.(*batch[string]))
	return r.fail
}

func (r *received) count(receiver int) (n int) {
	for _, b := range r.batches[receiver] {
		n += b.Len()
	}
	return n
}

func newTestRouter(t *testing.T, p job.Partitioning, subtask, receivers, size int) (*received, Router, Collector[string]) {
	t.Helper()
	e := newEdge[string](t)
	e.hash = must(codec.Hash[string]())(t)
	got := &received{batches: map[int][]*batch[string]{}}
	r := e.NewRouter(RouterConfig{Partitioning: p, Subtask: subtask, Receivers: receivers, MaxParallelism: testMaxParallelism, BatchSize: size, Send: got.send})
	return got, r, r.In().(Collector[string])
}

func collectAll(t *testing.T, c Collector[string], n int) {
	t.Helper()
	for i := range n {
		if err := c.Collect(Timestamp(i), fmt.Sprint("r", i)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRouter_Forward_FillsBatchesInOrder(t *testing.T) {
	got, r, in := newTestRouter(t, job.Forward, 2, 1, 3)
	collectAll(t, in, 7)
	if len(got.batches[0]) != 2 || !r.Buffered() {
		t.Fatalf("%d batches, buffered %v; want 2 and a rest", len(got.batches[0]), r.Buffered())
	}
	if err := r.Flush(); err != nil || r.Buffered() {
		t.Fatalf("Flush: %v, buffered %v", err, r.Buffered())
	}
	var all []string
	for _, b := range got.batches[0] {
		all = append(all, b.values...)
	}
	if want := []string{"r0", "r1", "r2", "r3", "r4", "r5", "r6"}; !slices.Equal(all, want) {
		t.Errorf("got %v, want %v", all, want)
	}
	if err := r.Flush(); err != nil || len(got.batches[0]) != 3 {
		t.Errorf("an empty Flush sends: %v, %d batches", err, len(got.batches[0]))
	}
}

func TestRouter_Hash_AgreesWithTheOwnersOfKeyGroups(t *testing.T) {
	hash := must(codec.Hash[string]())(t)
	for receivers := 1; receivers <= 5; receivers++ {
		got, r, in := newTestRouter(t, job.Hash, 0, receivers, 4)
		collectAll(t, in, 500)
		if err := r.Flush(); err != nil {
			t.Fatal(err)
		}
		total := 0
		for receiver := range receivers {
			total += got.count(receiver)
			for _, b := range got.batches[receiver] {
				for _, v := range b.values {
					group := job.KeyGroupOf(hash(v), testMaxParallelism)
					if owner := job.KeyGroupOwner(group, receivers, testMaxParallelism); owner != receiver {
						t.Fatalf("%q of key group %d went to %d of %d, its owner is %d", v, group, receiver, receivers, owner)
					}
				}
			}
		}
		if total != 500 {
			t.Errorf("%d of 500 records arrived at %d receivers", total, receivers)
		}
	}
}

func TestRouter_Rebalance_IsBalanced(t *testing.T) {
	for _, flushEach := range []bool{false, true} {
		got, r, in := newTestRouter(t, job.Rebalance, 4, 3, 8)
		for range 24 {
			collectAll(t, in, 8)
			if flushEach {
				collectAll(t, in, 1) // a batch that lingered
				if err := r.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got.batches[1] == nil || len(got.batches[1]) < len(got.batches[0]) {
			t.Error("the first receiver is not that of the sender's number")
		}
		for i := range 3 {
			if n, want := len(got.batches[i]), len(got.batches[1]); n != want {
				t.Errorf("with flushes %v: receiver %d has %d batches, receiver 1 %d", flushEach, i, n, want)
			}
		}
	}
}

func TestRouter_Rebalance_SlowStreamReachesAllReceivers(t *testing.T) {
	got, r, in := newTestRouter(t, job.Rebalance, 0, 3, 512)
	for range 9 {
		collectAll(t, in, 1)
		if err := r.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		if got.count(i) != 3 {
			t.Errorf("receiver %d has %d of 9 records", i, got.count(i))
		}
	}
}

func TestRouter_Broadcast_SharesBatchesThatAreNotRecycled(t *testing.T) {
	got, r, in := newTestRouter(t, job.Broadcast, 0, 3, 2)
	collectAll(t, in, 5)
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	edge := r.(*router[string]).edge
	for i := range 3 {
		if got.count(i) != 5 || got.batches[i][0] != got.batches[0][0] {
			t.Fatalf("receiver %d got %d records of 5", i, got.count(i))
		}
	}
	shared := got.batches[0][0]
	for range 3 {
		out := &collecting[string]{}
		if err := edge.Deliver(Collector[string](out), shared); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(out.values(), []string{"r0", "r1"}) {
			t.Errorf("a receiver got %q: the batch was recycled under it", out.values())
		}
	}
	if _, err := edge.Encode(nil, shared); err != nil || shared.Len() != 2 {
		t.Errorf("Encode recycles a shared batch: %v, %d", err, shared.Len())
	}
	_, alone, one := newTestRouter(t, job.Broadcast, 0, 1, 1)
	collectAll(t, one, 1)
	if alone.Buffered() {
		t.Error("a full batch was not sent")
	}
}

func TestRouter_SendErrorsComeBackUnchanged(t *testing.T) {
	for _, p := range []job.Partitioning{job.Forward, job.Hash, job.Rebalance, job.Broadcast} {
		got, r, in := newTestRouter(t, p, 0, 1, 2)
		got.fail = errors.New("canceled")
		if err := in.Collect(1, "x"); err != nil {
			t.Fatal(err)
		}
		if err := in.Collect(1, "y"); err != got.fail {
			t.Errorf("%s: Collect: got %v", p, err)
		}
		if err := in.Collect(1, "z"); err != nil {
			t.Fatal(err)
		}
		if err := r.Flush(); err != got.fail {
			t.Errorf("%s: Flush: got %v", p, err)
		}
	}
}

func TestEdge_RefusesWhatIsNotItsType(t *testing.T) {
	e := newEdge[string](t)
	b := &batch[string]{times: []Timestamp{1}, values: []string{"x"}}
	if err := e.Deliver(Collector[int](&collecting[int]{}), b); err == nil || !strings.Contains(err.Error(), "the edge carries string") {
		t.Errorf("another input: %v", err)
	}
	other := &batch[int]{}
	if err := e.Deliver(Collector[string](&collecting[string]{}), other); err == nil || !strings.Contains(err.Error(), "edge of string got a batch of") {
		t.Errorf("another batch: %v", err)
	}
	if _, err := e.Encode(nil, other); err == nil {
		t.Error("a batch of another type was encoded")
	}
	in := &collecting[string]{fail: errors.New("full")}
	if err := e.Deliver(Collector[string](in), b); err != in.fail || b.Len() != 1 {
		t.Errorf("an error of the input: %v, %d records", err, b.Len())
	}
}

// trade is a record with everything that a codec treats in its own way.
type trade struct {
	Symbol string
	Price  float64
	Tags   []string
	Raw    []byte
}

func TestEdge_BatchesSurviveTheWire(t *testing.T) {
	e := newEdge[trade](t)
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		b := &batch[trade]{}
		for range rng.IntN(20) {
			ts := []Timestamp{NoTimestamp, 0, -1, 1 << 62, Timestamp(rng.Int64()), Timestamp(1_700_000_000_000 + rng.Int64N(1000))}[rng.IntN(6)]
			if round%3 == 0 {
				ts = NoTimestamp
			}
			b.times = append(b.times, ts)
			b.values = append(b.values, trade{fmt.Sprint("s", rng.IntN(5)), rng.NormFloat64(), []string{"a", ""}, []byte{byte(round)}})
		}
		want := &batch[trade]{times: slices.Clone(b.times), values: slices.Clone(b.values)}
		data, err := e.Encode([]byte("before"), b)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := e.Decode(data[len("before"):])
		if err != nil {
			t.Fatal(err)
		}
		got := decoded.(*batch[trade])
		if got.Len() != want.Len() || len(want.values) > 0 && (!reflect.DeepEqual(got.values, want.values) || !slices.Equal(got.times, want.times)) {
			t.Fatalf("round %d: got %v, want %v", round, got, want)
		}
		e.recycle(got)
	}
}

func TestEdge_Decode_RefusesDamage(t *testing.T) {
	e := newEdge[string](t)
	good := must(e.Encode(nil, &batch[string]{times: []Timestamp{5, NoTimestamp}, values: []string{"ab", "c"}}))(t)
	for n := range good {
		if _, err := e.Decode(good[:n]); err == nil {
			t.Errorf("a batch cut after %d of %d bytes was taken", n, len(good))
		}
	}
	for what, data := range map[string][]byte{
		"left over":        append(slices.Clone(good), 0),
		"too many records": {0x81, 0x80, 0x40, 0},
		"more than it has": {0xff, 0xff, 0x3f, 0},
		"unknown marker":   {0, 2},
	} {
		if _, err := e.Decode(data); err == nil {
			t.Errorf("%s: was taken", what)
		}
	}
	if _, err := e.Encode(nil, &batch[string]{}); err != nil {
		t.Errorf("an empty batch: %v", err)
	}
}

func FuzzEdge_Decode(f *testing.F) {
	e := newEdge[trade](f)
	for _, times := range [][]Timestamp{{1, 2}, {NoTimestamp, NoTimestamp}, {NoTimestamp, 7}} {
		data, err := e.Encode(nil, &batch[trade]{times: times, values: []trade{{Symbol: "x"}, {Tags: []string{"y"}, Raw: []byte{1}}}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte{0xff, 0xff, 0x3f, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := e.Decode(data)
		if err != nil {
			return
		}
		first := b.(*batch[trade])
		if len(first.times) != len(first.values) {
			t.Fatalf("%d timestamps of %d records", len(first.times), len(first.values))
		}
		times := slices.Clone(first.times)
		again, err := e.Encode(nil, first)
		if err != nil {
			t.Fatal(err)
		}
		second, err := e.Decode(again)
		if err != nil || !slices.Equal(second.(*batch[trade]).times, times) {
			t.Fatalf("what was decoded does not survive: %v", err)
		}
	})
}
