// Package connectortest holds conformance suites that every source and every exactly-once sink must pass.
//
// Owns: what the stream package promises for connectors, as tests: each record once over restores at any parallelism; output that is exactly what the
// last durable checkpoint says, wherever a crash comes.
//
// Goroutines: none.
//
// Not here: what a connector does with bad input; its own tests say that.
//
// Start at: Source, Sink.
package connectortest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirstream/weir/stream"
)

// Collected is a collector that keeps what it gets.
type Collected[T any] struct{ Records []T }

// Collect implements stream.Collector.
func (c *Collected[T]) Collect(_ stream.Timestamp, v T) error {
	c.Records = append(c.Records, v)
	return nil
}

// Source checks that src gives exactly the records want, in any order: read at once, and with restores at changing parallelism at random
// points. src must not be rate-limited.
func Source[T comparable](t *testing.T, seed uint64, src stream.Source[T], want []T) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 1))
	for _, restores := range []int{0, 1, 4} {
		parallelism := 1 + rnd.IntN(5)
		items, err := src.Splits(t.Context(), parallelism)
		if err != nil {
			t.Fatalf("seed %d: splits: %v", seed, err)
		}
		subtasks := deal(rnd, items, parallelism, false)
		var got Collected[T]
		for restore := range restores + 1 {
			// Where to stop: behind any number of records, rarely at once.
			budget := 1 << 62
			if restore < restores {
				budget = rnd.IntN(len(want) + 2)
			}
			items = run(t, rnd, src, subtasks, restore > 0, budget, &got)
			parallelism = 1 + rnd.IntN(5)
			subtasks = deal(rnd, items, parallelism, true)
		}
		if diff := difference(got.Records, want); diff != "" {
			t.Fatalf("seed %d, %d restores: %s", seed, restores, diff)
		}
	}
}

// run reads with all subtasks in random turns until about budget records have come or all have ended, and returns the positions. Records that come
// after the positions were taken are lost with the attempt.
func run[T any](t *testing.T, rnd *rand.Rand, src stream.Source[T], subtasks [][][]byte, restored bool, budget int, out *Collected[T]) (positions [][]byte) {
	t.Helper()
	var readers, running []stream.Reader[T]
	for i, splits := range subtasks {
		r, err := src.Open(stream.SourceEnv{JobID: "j", Operator: "o", Subtask: i, Parallelism: len(subtasks), Splits: splits, Restored: restored})
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		readers = append(readers, r)
	}
	running = slices.Clone(readers)
	stop := len(out.Records) + budget
	for len(running) > 0 && len(out.Records) < stop {
		i := rnd.IntN(len(running))
		if next := read(t, rnd, running[i], out); next.Ended() {
			running = slices.Delete(running, i, i+1)
		}
	}
	for _, r := range readers {
		p, err := r.Positions()
		if err != nil {
			t.Fatalf("positions: %v", err)
		}
		for _, item := range p {
			positions = append(positions, slices.Clone(item))
		}
	}
	var lost Collected[T]
	for _, r := range running {
		read(t, rnd, r, &lost)
	}
	for _, r := range readers {
		if err := r.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
	return positions
}

func read[T any](t *testing.T, rnd *rand.Rand, r stream.Reader[T], out *Collected[T]) stream.Next {
	t.Helper()
	limit := 1 + rnd.IntN(1<<rnd.IntN(10))
	before := len(out.Records)
	next, err := r.Read(out, limit)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	if n := len(out.Records) - before; n > limit {
		t.Fatalf("read emitted %d records, the limit was %d", n, limit)
	}
	return next
}

// deal gives items to subtasks: in turn, or at random as a restore may do.
func deal(rnd *rand.Rand, items [][]byte, parallelism int, random bool) [][][]byte {
	out := make([][][]byte, parallelism)
	for i, item := range items {
		if random {
			i = rnd.IntN(parallelism)
		}
		out[i%parallelism] = append(out[i%parallelism], item)
	}
	return out
}

// difference says how two multisets differ, "" if they do not.
func difference[T comparable](got, want []T) string {
	count := map[T]int{}
	for _, v := range want {
		count[v]++
	}
	for _, v := range got {
		count[v]--
	}
	maps.DeleteFunc(count, func(_ T, n int) bool { return n == 0 })
	if len(count) == 0 {
		return ""
	}
	s := fmt.Sprintf("%d records, want %d", len(got), len(want))
	shown := 0
	for v, n := range count {
		if shown++; shown > 5 {
			return s + "; ..."
		}
		s += fmt.Sprintf("; %d too few of %.80q", n, fmt.Sprint(v))
	}
	return s
}
