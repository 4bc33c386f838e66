package localstate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirstream/weir/internal/checkpoint"
)

// world is what a dumb observer remembers: everything.
type world struct {
	have      map[checkpoint.ID]bool
	completed checkpoint.ID
	aborted   map[checkpoint.ID]bool
}

func TestProperty_CopiesAreThoseOfTheLatestCompletedAndOfAFewPending(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 4))
		c := &copies{}
		w := world{have: map[checkpoint.ID]bool{}, aborted: map[checkpoint.ID]bool{}}
		var log []string
		next := checkpoint.ID(1)
		for range 150 {
			id := max(1, next-checkpoint.ID(r.IntN(12)))
			var gone []checkpoint.ID
			switch op := r.IntN(8); {
			case op < 4:
				next += checkpoint.ID(r.IntN(3))
				wanted := id >= w.completed && !w.aborted[id]
				if c.wants(id) != wanted {
					t.Fatalf("seed %d: %d is wanted: %t\n%v", seed, id, !wanted, log)
				}
				if wanted {
					gone = c.add(id)
					w.have[id] = true
				}
				log = append(log, fmt.Sprintf("store %d", id))
			case op < 6:
				gone = c.complete(id)
				w.completed = max(w.completed, id)
				maps.DeleteFunc(w.have, func(h checkpoint.ID, _ bool) bool { return h < w.completed })
				log = append(log, fmt.Sprintf("complete %d", id))
			case op == 6:
				gone = c.abort(id)
				if id > w.completed {
					w.aborted[id] = true
					delete(w.have, id)
				}
				log = append(log, fmt.Sprintf("abort %d", id))
			default:
				if w.aborted[id] || r.IntN(4) > 0 {
					continue
				}
				gone = c.restored(id)
				w.completed = id
				maps.DeleteFunc(w.have, func(h checkpoint.ID, _ bool) bool { return h != id })
				log = append(log, fmt.Sprintf("restored %d", id))
			}
			limit(&w)
			if want := slices.Sorted(maps.Keys(w.have)); !slices.Equal(c.ids, want) {
				t.Fatalf("seed %d: copies of %v, want %v\n%v", seed, c.ids, want, log)
			}
			for _, id := range gone {
				if w.have[id] {
					t.Fatalf("seed %d: %d is deleted and kept\n%v", seed, id, log)
				}
			}
		}
	}
}

// limit forgets the oldest pending ones while there are too many.
func limit(w *world) {
	for {
		pending := slices.DeleteFunc(slices.Sorted(maps.Keys(w.have)), func(id checkpoint.ID) bool { return id == w.completed })
		if len(pending) <= MaxPending {
			return
		}
		delete(w.have, pending[0])
	}
}

func TestAborted_AreRememberedUpToALimit(t *testing.T) {
	c := &copies{}
	for id := range checkpoint.ID(10 * maxAborted) {
		c.abort(id + 1)
	}
	if len(c.aborted) != maxAborted || c.wants(10*maxAborted) {
		t.Errorf("%d are remembered, the last one is wanted: %t", len(c.aborted), c.wants(10*maxAborted))
	}
}
