package sim

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weirstream/weir/internal/job"
)

var (
	seedsFlag = flag.Int("sim.seeds", number("SIM_SEEDS", defaultSeeds), "how many seeds TestSim_Seeds runs; SIM_SEEDS is the same")
	seedFlag  = flag.Uint64("sim.seed", uint64(number("SIM_SEED", 0)), "the first of them; SIM_SEED is the same")
)

func number(name string, def int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return def
}

// shownLines is how much of the log a failing seed shows.
var shownLines = flag.Int("sim.lines", 60, "how many lines of its log a failing seed shows")

// play runs a configuration and reports what it violates, with the arguments of the command that plays it again.
func play(t *testing.T, cfg Config, again string) Result {
	t.Helper()
	cfg.LogLines = *shownLines
	r := Run(cfg)
	if r.Violation != nil {
		t.Errorf("seed %d: %s\nafter %d steps and %s, job %s; replay it with\n\n  go test ./internal/sim %s\n\nfaults: %+v\n%s",
			cfg.Seed, r.Violation, r.Steps, r.Time, r.State, again, cfg.Faults, strings.Join(r.Log[max(0, len(r.Log)-*shownLines):], "\n"))
	}
	return r
}

// TestSim_Seeds plays seeds, each on one goroutine, several at a time.
func TestSim_Seeds(t *testing.T) {
	seeds := *seedsFlag
	var mu sync.Mutex
	sum := Result{Faults: map[string]int{}}
	states := map[job.State]int{}
	t.Run("seeds", func(t *testing.T) {
		for i := range seeds {
			seed := *seedFlag + uint64(i)
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				r := play(t, RandomConfig(seed), fmt.Sprintf("-run TestSim_Seeds -sim.seeds=1 -sim.seed=%d", seed))
				mu.Lock()
				defer mu.Unlock()
				states[r.State]++
				sum.Steps += r.Steps
				sum.Completed += r.Completed
				sum.Restarts += r.Restarts
				for kind, n := range r.Faults {
					sum.Faults[kind] += n
				}
			})
		}
	})
	t.Logf("%d seeds: %d steps, %d checkpoints completed, %d restarts, jobs %v, faults %v", seeds, sum.Steps, sum.Completed, sum.Restarts, states, sum.Faults)
	if seeds < 200 || t.Failed() { // too few to reach everything
		return
	}
	for _, s := range []job.State{job.Finished, job.Failed, job.Canceled, job.Running} {
		if states[s] == 0 && (s != job.Failed || seeds >= 1000) { // few jobs give up
			t.Errorf("no seed ends in %s: the simulation does not reach it", s)
		}
	}
	for _, kind := range []string{
		"request lost", "answer lost", "request repeated", "request overtaken", "storage fails before", "storage fails after", "storage stalls", "storage storm", "metadata stalls", "metadata uncertain", "persist fails", "hook fails",
		"executor crash", "partition", "task error", "task hang", "link break", "machine crash", "user request", "task finishes before others end", "failover of a region",
		"job master crash", "job master's machine crash", "job master dies in a storage operation", "checkpoint completed by recovery", "orphan swept", "resumed", "resumed at another parallelism",
		"rescaled", "rescale went back or was given up", "job stopped, suspend", "job stopped, drain", "job stopped, cancel",
		"shared file used again", "shared files deleted", "shared files left behind are deleted",
	} {
		if sum.Faults[kind] == 0 {
			t.Errorf("no seed has the fault %q: the simulation does not test it", kind)
		}
	}
	if sum.Completed < 5*seeds || sum.Restarts < seeds {
		t.Errorf("%d checkpoints completed and %d restarts in %d seeds: the faults leave nothing to test", sum.Completed, sum.Restarts, seeds)
	}
}

// TestSim_SameSeed_SameLog: a run depends on its configuration only, to the last step.
func TestSim_SameSeed_SameLog(t *testing.T) {
	hashes := map[uint64]uint64{}
	for seed := range uint64(6) {
		a, b := Run(RandomConfig(seed)), Run(RandomConfig(seed))
		if a.LogHash != b.LogHash || a.Steps != b.Steps || strings.Join(a.Log, "\n") != strings.Join(b.Log, "\n") {
			t.Errorf("seed %d: two runs have logs %x and %x after %d and %d steps", seed, a.LogHash, b.LogHash, a.Steps, b.Steps)
		}
		if other, ok := hashes[a.LogHash]; ok {
			t.Errorf("seeds %d and %d have the same log", other, seed)
		}
		hashes[a.LogHash] = seed
	}
}

// TestSim_EventLog_KeepsTheEnd: what a failing seed shows is the end, in order.
func TestSim_EventLog_KeepsTheEnd(t *testing.T) {
	l := newEventLog(0)
	for i := range 3*keptLines + 7 {
		l.add(0, fmt.Sprint(i))
	}
	lines := l.tail()
	if len(lines) != keptLines {
		t.Fatalf("%d lines are kept, want %d", len(lines), keptLines)
	}
	for i, line := range lines {
		if want := fmt.Sprint(2*keptLines + 7 + i); !strings.HasSuffix(line, "  "+want) {
			t.Fatalf("line %d is %q, want %s", i, line, want)
		}
	}
}

// TestSim_Model_FindsWhatIsMissingAndWhatIsTooMuch: the judge itself, on a job of one source, one keyed vertex and one sink.
func TestSim_Model_FindsWhatIsMissingAndWhatIsTooMuch(t *testing.T) {
	w := &workload{
		graph: &job.Graph{Vertices: []job.Vertex{
			{ID: "v0", Parallelism: 1, MaxParallelism: maxParallelism, Splits: make([][]byte, 1)},
			{ID: "v1", Parallelism: 1, MaxParallelism: maxParallelism}, {ID: "v2", Parallelism: 1, MaxParallelism: maxParallelism},
		}, Edges: []job.Edge{{From: "v0", To: "v1"}, {From: "v1", To: "v2"}}},
		kinds: []kind{source, keyed, sink}, splits: [][]int{{3}, nil, nil}, keys: 1,
	}
	w.findPaths()
	p := &prefix{work: w, offsets: [][]int{{2}, {}, {}}, ended: map[job.TaskID]bool{}, counts: [][]int{{0}, {2}, {0}}}
	rec := func(index int, count int32) record {
		return record{source: 0, index: index, path: 0b111, counts: [maxVertices]int32{1: count}}
	}
	total := record{source: 1, index: 2, path: 0b110, total: true}
	for _, c := range []struct {
		name          string
		records       []record
		ended         bool
		tooMuch, gone bool
	}{
		{name: "exact", records: []record{rec(0, 1), rec(1, 2)}},
		{name: "another order", records: []record{rec(1, 1), rec(0, 2)}},
		{name: "missing", records: []record{rec(0, 1)}, gone: true},
		{name: "twice", records: []record{rec(0, 1), rec(0, 2)}, tooMuch: true},
		{name: "behind", records: []record{rec(0, 1), rec(2, 2)}, tooMuch: true},
		{name: "counted twice", records: []record{rec(0, 1), rec(1, 1)}, tooMuch: true},
		{name: "count skipped", records: []record{rec(0, 1), rec(1, 3)}, gone: true},
		{name: "total too early", records: []record{rec(0, 1), rec(1, 2), total}, tooMuch: true},
		{name: "total missing", records: []record{rec(0, 1), rec(1, 2)}, ended: true, gone: true},
		{name: "with total", records: []record{rec(0, 1), rec(1, 2), total}, ended: true},
		{name: "total twice", records: []record{rec(0, 1), rec(1, 2), total, total}, ended: true, tooMuch: true},
	} {
		p.ended[job.TaskID{Vertex: "v1"}] = c.ended
		o := newVisible()
		var err error
		for _, r := range c.records {
			if err == nil {
				err = o.add(w, r, p)
			}
		}
		if (err != nil) != c.tooMuch {
			t.Errorf("%s: add says %v, want an error: %t", c.name, err, c.tooMuch)
		}
		if err == nil {
			if err := o.complete(w, 2, p); (err != nil) != c.gone {
				t.Errorf("%s: complete says %v, want an error: %t", c.name, err, c.gone)
			}
		}
	}
}
