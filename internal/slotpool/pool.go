package slotpool

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirstream/weir/internal/job"
)

// Pool says which job has how many slots of which executor, and who waits. It is a plain value that one owner touches.
type Pool struct {
	executors []*offer // ascending by id
	waiters   []*waiter
}

// Executor is what an executor offers.
type Executor struct {
	ID      job.ExecutorID
	Address string
	Slots   int
	Jobs    []string // names of the jobs that it has
}

// Has reports whether the executor has a job.
func (x Executor) Has(name string) bool { return slices.Contains(x.Jobs, name) }

// offer is an executor and what is used of it.
type offer struct {
	Executor
	used map[job.ID]int
}

func (o *offer) free() int {
	n := o.Slots
	for _, used := range o.used {
		n -= used
	}
	return n
}

// Request asks for slots of a job, all at once.
type Request struct {
	Job    job.ID
	Name   string // executors must have it
	Order  int    // of the job's submission
	Number int    // chosen by the job, comes back in the Grant
	Count  int
	// Keep is how many slots of which executors the job has and keeps; all others that it has are given back.
	Keep map[job.ExecutorID]int
	// Prefer is how many slots of which executors are wanted first of all.
	Prefer map[job.ExecutorID]int
}

// PerExecutor counts slots that are listed one by one.
func PerExecutor(executors []job.ExecutorID) map[job.ExecutorID]int {
	out := map[job.ExecutorID]int{}
	for _, id := range executors {
		out[id]++
	}
	return out
}

// waiter is a request that could not be served yet.
type waiter struct {
	Request
	message string // that its job was told last
}

// Grant answers a Request: the slots, or what is short.
type Grant struct {
	Number int
	Slots  []job.Slot // nil: not yet
	Short  Short
}

// Short is why a request waits.
type Short struct {
	Required, Available int // slots
	Message             string
}

// Add takes in an executor; there must be none with its id.
func (p *Pool) Add(x Executor) {
	at, found := p.find(x.ID)
	if found {
		panic(fmt.Sprintf("slotpool: executor %s is there already", x.ID))
	}
	p.executors = slices.Insert(p.executors, at, &offer{Executor: x, used: map[job.ID]int{}})
}

// Remove takes an executor out. What jobs had of it is gone.
func (p *Pool) Remove(id job.ExecutorID) {
	if at, found := p.find(id); found {
		p.executors = slices.Delete(p.executors, at, at+1)
	}
}

func (p *Pool) find(id job.ExecutorID) (int, bool) {
	return slices.BinarySearchFunc(p.executors, id, func(o *offer, id job.ExecutorID) int { return cmp.Compare(o.ID, id) })
}

// Each calls f for every executor with the number of its free slots, ascending by id.
func (p *Pool) Each(f func(x Executor, free int)) {
	for _, o := range p.executors {
		f(o.Executor, o.free())
	}
}

// Request allocates slots, or lets the request wait. A job has at most one request: a new one takes the place of the one before, even if that was
// served and its job has not heard of it. What the job does not keep may be allocated to it again at once, before others that wait have a look at it;
// the owner calls Serve for them.
func (p *Pool) Request(r Request) Grant {
	p.withdraw(r.Job)
	for _, o := range p.executors {
		if n := min(o.used[r.Job], r.Keep[o.ID]); n > 0 {
			o.used[r.Job] = n
		} else {
			delete(o.used, r.Job)
		}
	}
	if r.Count == 0 {
		return Grant{Number: r.Number, Slots: []job.Slot{}}
	}
	if slots := p.allocate(r); slots != nil {
		return Grant{Number: r.Number, Slots: slots}
	}
	at, _ := slices.BinarySearchFunc(p.waiters, r.Order, func(w *waiter, order int) int { return cmp.Compare(w.Order, order) })
	short := p.short(r)
	p.waiters = slices.Insert(p.waiters, at, &waiter{r, short.Message})
	return Grant{Number: r.Number, Short: short}
}

func (p *Pool) withdraw(id job.ID) {
	p.waiters = slices.DeleteFunc(p.waiters, func(w *waiter) bool { return w.Job == id })
}

// Release gives back every slot of a job, and withdraws its request.
func (p *Pool) Release(id job.ID) {
	p.withdraw(id)
	for _, o := range p.executors {
		delete(o.used, id)
	}
}

// Serve looks at the waiters in order of submission after something has changed, and calls grant for each that has news. A job that does
// not fit does not hold up a later one that does: they may need different executors.
func (p *Pool) Serve(grant func(job.ID, Grant)) {
	for _, w := range slices.Clone(p.waiters) {
		if slots := p.allocate(w.Request); slots != nil {
			p.withdraw(w.Job)
			grant(w.Job, Grant{Number: w.Number, Slots: slots})
			continue
		}
		if short := p.short(w.Request); short.Message != w.message {
			w.message = short.Message
			grant(w.Job, Grant{Number: w.Number, Short: short})
		}
	}
}

// allocate takes all slots or none: first those that are preferred, the others each from the executor with the most free ones, and among equals
// from the first by id.
func (p *Pool) allocate(r Request) []job.Slot {
	var from []*offer
	free := 0
	for _, o := range p.executors {
		if n := o.free(); o.Has(r.Name) && n > 0 {
			from = append(from, o)
			free += n
		}
	}
	if free < r.Count || r.Count == 0 {
		return nil
	}
	var out []job.Slot
	take := func(o *offer) {
		o.used[r.Job]++
		out = append(out, job.Slot{Executor: o.ID, Address: o.Address})
	}
	for _, o := range from {
		for range min(r.Prefer[o.ID], o.free(), r.Count-len(out)) {
			take(o)
		}
	}
	for len(out) < r.Count {
		take(slices.MinFunc(from, func(a, b *offer) int { return cmp.Or(cmp.Compare(b.free(), a.free()), cmp.Compare(a.ID, b.ID)) }))
	}
	return out
}

// short says what a request waits for.
func (p *Pool) short(r Request) Short {
	registered, total, free := 0, 0, 0
	used := map[job.ID]int{}
	for _, o := range p.executors {
		if !o.Has(r.Name) {
			continue
		}
		registered++
		total += o.Slots
		free += o.free()
		for id, n := range o.used {
			used[id] += n
		}
	}
	message := fmt.Sprintf("needs %d slots on executors that have job %q; ", r.Count, r.Name)
	if registered == 0 {
		message += "none is registered with it"
	} else {
		message += fmt.Sprintf("%d registered with it, %d of %d slots free", registered, free, total)
	}
	var by []string
	for _, id := range slices.Sorted(maps.Keys(used)) {
		by = append(by, fmt.Sprintf("%d used by job %s", used[id], id))
	}
	if len(by) > 0 {
		message += " (" + strings.Join(by, ", ") + ")"
	}
	return Short{Required: r.Count, Available: free, Message: message}
}
