package retention

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/checkpoint"
)

// ledgerTwin is the rule as it is written, with nothing remembered but facts: what is there, and who refers to what.
type ledgerTwin struct {
	files   map[string]bool // in the storage
	refs    map[checkpoint.ID][]string
	there   map[checkpoint.ID]bool          // pending, or its metadata may be there
	pending map[checkpoint.ID]checkpoint.ID // with their bases
}

func (w *ledgerTwin) needed() map[string]bool {
	out := map[string]bool{}
	for id := range w.there {
		for _, f := range w.refs[id] {
			out[f] = true
		}
	}
	for _, base := range w.pending {
		for _, f := range w.refs[base] {
			out[f] = true
		}
	}
	return out
}

func (w *ledgerTwin) remove(t *testing.T, seed uint64, freed []string) {
	for _, f := range freed {
		if !w.files[f] {
			t.Fatalf("seed %d: %s is deleted twice", seed, f)
		}
		delete(w.files, f)
	}
}

func ledgerSeeds() uint64 {
	if testing.Short() {
		return 200
	}
	return 2000
}

// TestLedger_AgainstTheRule plays jobs: whatever is needed is there, and after each step nothing is there that is not, so that what is deleted is
// neither too much nor too little.
func TestLedger_AgainstTheRule(t *testing.T) {
	for seed := range ledgerSeeds() {
		rng := rand.New(rand.NewPCG(seed, 11))
		w := ledgerTwin{files: map[string]bool{}, refs: map[checkpoint.ID][]string{}, there: map[checkpoint.ID]bool{}, pending: map[checkpoint.ID]checkpoint.ID{}}
		var l Ledger
		var next, latest checkpoint.ID
		var completed []checkpoint.ID // their metadata is there
		remove := func(freed []string) { w.remove(t, seed, freed) }
		pick := func(ids []checkpoint.ID) checkpoint.ID { return ids[rng.IntN(len(ids))] }
		for step := range 200 {
			pendings := slices.Sorted(maps.Keys(w.pending))
			switch n := rng.IntN(10); {
			case n < 3 && len(pendings) < 4:
				next++
				base := latest
				if rng.IntN(4) == 0 {
					base = 0
				}
				w.pending[next], w.there[next] = base, true
				l.Begin(next, base)
			case n < 6 && len(pendings) > 0: // an ack
				id := pick(pendings)
				var files []string
				for _, f := range w.refs[w.pending[id]] {
					if rng.IntN(3) > 0 {
						files = append(files, f)
					}
				}
				for i := range rng.IntN(3) {
					files = append(files, fmt.Sprintf("%d-%d-%d", id, step, i))
				}
				for _, f := range files {
					w.files[f] = true
				}
				w.refs[id] = append(w.refs[id], files...)
				l.Hold(id, files)
			case n < 7 && len(pendings) > 0: // completed
				id := pick(pendings)
				delete(w.pending, id)
				completed = append(completed, id)
				latest = max(latest, id)
				remove(l.Decided(id))
			case n < 8 && len(pendings) > 0: // aborted, and it has no metadata, or that is gone
				id := pick(pendings)
				delete(w.pending, id)
				delete(w.there, id)
				remove(l.Gone(id))
			case len(completed) > 0: // deleted
				id := pick(completed)
				if rng.IntN(4) == 0 {
					l.NotGone(id)
					break
				}
				completed = slices.DeleteFunc(completed, func(o checkpoint.ID) bool { return o == id })
				if id == latest {
					latest = 0
				}
				delete(w.there, id)
				remove(l.Gone(id))
			}
			needed := w.needed()
			if !maps.Equal(needed, w.files) {
				t.Fatalf("seed %d step %d: needed (-) and there (+):\n%s", seed, step, cmp.Diff(needed, w.files))
			}
		}
	}
}

func TestLedger_ForgetsWhatItDoesNotKnow(t *testing.T) {
	var l Ledger
	l.NotGone(3)
	if got := append(l.Gone(7), l.Decided(8)...); got != nil || l.Held() != 0 {
		t.Errorf("%v, %d held", got, l.Held())
	}
}

func TestLedger_UndeletedAreBounded(t *testing.T) {
	var l Ledger
	for id := checkpoint.ID(1); id <= MaxUndeleted+10; id++ {
		l.Hold(id, []string{fmt.Sprint(id), "common"})
		l.NotGone(id)
		l.NotGone(id)
	}
	if l.Held() != MaxUndeleted {
		t.Errorf("%d are held, at most %d may be", l.Held(), MaxUndeleted)
	}
	if got := l.Gone(MaxUndeleted); len(got) != 1 {
		t.Errorf("freed %v, want only its own file", got)
	}
	if l.Held() != MaxUndeleted-1 {
		t.Errorf("%d are held", l.Held())
	}
	// A base that is forgotten is held until the pending one is decided.
	l = Ledger{}
	l.Hold(1, []string{"a"})
	l.Begin(2, 1)
	l.NotGone(1)
	for id := checkpoint.ID(10); id < 10+MaxUndeleted; id++ {
		l.Hold(id, []string{fmt.Sprint(id)})
		l.NotGone(id)
	}
	if got := l.Decided(2); got != nil || l.Held() != MaxUndeleted+1 {
		t.Errorf("freed %v, and its metadata may be there; %d held", got, l.Held())
	}
}
