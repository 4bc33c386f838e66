package sim

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/storage/storagetest"
)

// What the cluster is set to.
const (
	heartbeatInterval = time.Second
	heartbeatTimeout  = 4 * time.Second
	callTimeout       = 2 * time.Second
	cancelTimeout     = 5 * time.Second
	maxStall          = 6 * time.Second // of a storage operation
	maxDown           = 6 * time.Second // of a crashed executor
	// recovery is how long after the last fault a job may take until it runs undisturbed: executors come back, hung tasks are given up,
	// stalled storage answers, restarts are delayed.
	recovery = 45 * time.Second
	// maxSteps ends a run that makes no progress in virtual time.
	maxSteps = 3_000_000
)

// firstJob is the job that a run begins with.
const firstJob = job.ID("job-1")

// Sim is one run.
type Sim struct {
	cfg     Config
	rng     *rand.Rand
	start   time.Time
	now     time.Time
	steps   agenda
	planned uint64 // how many things were ever planned
	count   int    // of steps
	log     eventLog
	calm    bool // the faults have ended
	failed  *Violation

	job       job.ID // that runs
	jobs      int    // so far
	work      *workload
	plans     plans
	origin    *origin          // that the job was started from; nil: none
	store     *storagetest.Mem // checkpoints
	records   *storagetest.Mem // of the job master
	durable   durability
	master    *master
	executors []*executor
	links     map[linkKey]*link
	outside   *outside
	watch     watcher
	faults    map[string]int // that happened, by kind
}

// Violation is an invariant that did not hold.
type Violation struct {
	Invariant string
	Message   string
}

func (v *Violation) Error() string { return v.Invariant + ": " + v.Message }

// Result is what became of a run.
type Result struct {
	Violation *Violation // nil: none
	Steps     int
	Time      time.Duration // virtual
	State     job.State
	Completed int
	Restarts  int
	Leaders   int
	Faults    map[string]int
	LogHash   uint64
	Log       []string // its end
}

// Run plays one seed to its end.
func Run(cfg Config) Result {
	s := newSim(cfg)
	s.begin()
	for s.failed == nil && !s.watch.over {
		if !s.step() {
			s.violate("I6", "nothing is left to happen")
		}
		if s.count > maxSteps {
			s.violate("I6", "no end after %d steps", maxSteps)
		}
	}
	return Result{
		Violation: s.failed, Steps: s.count, Time: s.now.Sub(s.start), State: s.master.state(), Completed: len(s.watch.completed),
		Restarts: s.watch.leaders.restarts + s.master.sched.Restarts(), Leaders: int(s.watch.leaders.epoch), Faults: s.faults, LogHash: s.log.hash, Log: s.log.tail(),
	}
}

func newSim(cfg Config) *Sim {
	start := time.UnixMilli(1_700_000_000_000).UTC()
	s := &Sim{
		cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0x51)), start: start, now: start, log: newEventLog(cfg.LogLines),
		store: storagetest.NewMem(), records: storagetest.NewMem(), links: map[linkKey]*link{}, faults: map[string]int{},
	}
	s.work = newWorkload(s.rng, cfg)
	s.plans.all = map[string]*workload{s.work.graph.Fingerprint: s.work}
	s.job, s.jobs = firstJob, 1
	s.durable = newDurability()
	s.store.SetFaults(s.storageFault)
	s.records.SetFaults(s.recordFault)
	s.outside = newOutside(s)
	s.master = &master{s: s, life: life{over: true}}
	s.watch = newWatcher()
	for i := range 2 + s.rng.IntN(3) {
		s.executors = append(s.executors, newExecutor(s, i))
	}
	for slots := 0; slots < s.work.graph.MaxVertexParallelism() || (cfg.Resume || cfg.Stop > 0 || cfg.Rescale > 0) && slots < highestParallelism; {
		for _, x := range s.executors {
			x.slots++
			slots++
		}
	}
	return s
}

func (s *Sim) begin() {
	s.note("graph %s", s.work)
	for _, x := range s.executors {
		s.after(s.upTo(200*time.Millisecond), "boot", x.boot)
	}
	s.after(0, "job master starts", s.lead)
	s.plant()
	s.interrupt()
	s.after(s.cfg.FaultsFor, "calm", s.heal)
}

// step makes the next thing happen and checks the invariants; false: nothing is left.
func (s *Sim) step() bool {
	if len(s.steps) == 0 {
		return false
	}
	next := heap.Pop(&s.steps).(*happening)
	s.now = next.at
	s.store.SetTime(s.now)
	s.count++
	s.log.mix(s.now.Sub(s.start), next.what)
	next.do()
	s.check()
	return true
}

// after lets something happen later. Things of one moment happen in the order in which they were planned.
func (s *Sim) after(d time.Duration, what string, do func()) {
	s.planned++
	heap.Push(&s.steps, &happening{at: s.now.Add(d), planned: s.planned, what: what, do: do})
}

func (s *Sim) chance(p float64) bool {
	return p > 0 && !s.calm && s.rng.Float64() < p
}

// fault is a chance that is counted.
func (s *Sim) fault(kind string, p float64) bool {
	if !s.chance(p) {
		return false
	}
	s.faults[kind]++
	return true
}

// upTo is a random duration.
func (s *Sim) upTo(d time.Duration) time.Duration { return time.Duration(s.rng.Int64N(int64(d) + 1)) }

func (s *Sim) note(format string, args ...any) {
	s.log.add(s.now.Sub(s.start), fmt.Sprintf(format, args...))
}

func (s *Sim) violate(invariant, format string, args ...any) {
	if s.failed == nil {
		s.failed = &Violation{invariant, fmt.Sprintf(format, args...)}
		s.note("VIOLATION %s", s.failed)
	}
}

// happening is something that is planned.
type happening struct {
	at      time.Time
	planned uint64
	what    string
	do      func()
}

// agenda is a heap of what is planned, earliest first.
type agenda []*happening

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	if !a[i].at.Equal(a[j].at) {
		return a[i].at.Before(a[j].at)
	}
	return a[i].planned < a[j].planned
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(*happening)) }
func (a *agenda) Pop() any {
	old := *a
	last := old[len(old)-1]
	*a = old[:len(old)-1]
	return last
}
