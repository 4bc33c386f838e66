package state

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/weirstream/weir/internal/job"
)

// Few hashes, so that pages overflow too.
func TestSweep_WhileTheTableChanges_VisitsAllThatStays(t *testing.T) {
	for name, hash := range map[string]func(uint64) uint64{"good hash": hashUint, "bad hash": func(k uint64) uint64 { return k % 13 << 40 }} {
		rng := rand.New(rand.NewPCG(7, 9))
		w := &twin[uint64]{table: NewTable[uint64, int](job.KeyGroupRange{Start: 0, End: 8}, 8), model: map[uint64]int{}, hash: hash, groups: 8}
		var at Cursor
		for pass := range 60 {
			deletes := 20 + pass%3*30
			stays, seen := maps.Clone(w.model), map[uint64]bool{}
			for steps := 0; ; steps++ {
				visited := 0
				at = w.table.Sweep(at, 1+rng.IntN(40), func(k uint64, v int) {
					visited++
					seen[k] = true
					if w.model[k] != v {
						t.Fatalf("%s: key %d is %d, want %d", name, k, v, w.model[k])
					}
				})
				if at.Begins() {
					break
				}
				if name == "good hash" && visited > 40+pageSlots*3 {
					t.Fatalf("%d entries were visited in one step", visited)
				}
				if steps > 10_000 {
					t.Fatalf("%s: a pass has no end", name)
				}
				for range rng.IntN(4) {
					w.step(t, rng, rng.Uint64N(600), deletes)
				}
				maps.DeleteFunc(stays, func(k uint64, _ int) bool { _, ok := w.model[k]; return !ok })
			}
			for k := range stays {
				if !seen[k] {
					t.Fatalf("%s, pass %d: key %d was there all the time and was not visited", name, pass, k)
				}
			}
			for range 200 {
				w.step(t, rng, rng.Uint64N(600), deletes)
			}
		}
		w.finish(t)
	}
}

func TestSweep_OfEmptyGroups_IsBoundedToo(t *testing.T) {
	table := NewTable[uint64, int](allGroups(100), 100)
	var at Cursor
	steps := 1
	for at = table.Sweep(at, 10, func(uint64, int) {}); !at.Begins(); at = table.Sweep(at, 10, func(uint64, int) {}) {
		steps++
	}
	if steps < 10 || steps > 11 {
		t.Errorf("%d steps for 100 pages, 10 at a time", steps)
	}
}

func TestSnapshot_Get_IsWhatRangeShows(t *testing.T) {
	for name, hash := range map[string]func(uint64) uint64{"good hash": hashUint, "bad hash": func(k uint64) uint64 { return k % 13 << 40 }} {
		rng := rand.New(rand.NewPCG(8, 9))
		w := &twin[uint64]{table: NewTable[uint64, int](allGroups(4), 4), model: map[uint64]int{}, hash: hash, groups: 4}
		for round := range 30 {
			for range 300 {
				w.step(t, rng, rng.Uint64N(1000), 30+round%2*30)
			}
			s, model := w.table.Snapshot(), maps.Clone(w.model)
			for range 300 {
				w.step(t, rng, rng.Uint64N(1000), 45)
			}
			for k := range uint64(1000) {
				v, ok := s.Get(hash(k), k)
				if want, there := model[k]; v != want || ok != there {
					t.Fatalf("%s: key %d is %d, %t, want %d, %t", name, k, v, ok, want, there)
				}
			}
			s.Release()
		}
		w.finish(t)
	}
}
