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
	Prefer map[job.ExecutorID]bool
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

// Request allocates slots, or lets the request wait. A job has at most one request: a new one takes the place of the one before.
func (p *Pool) Request(r Request) Grant {
	p.withdraw(r.Job)
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

// allocate takes all slots or none: each from the executor with the most free ones, before others from one that the job has used before,
// and among equals from the first by id.
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
	for range r.Count {
		best := slices.MinFunc(from, func(a, b *offer) int {
			return cmp.Or(cmp.Compare(b.free(), a.free()), preference(r.Prefer, a.ID, b.ID))
		})
		best.used[r.Job]++
		out = append(out, job.Slot{Executor: best.ID, Address: best.Address})
	}
	return out
}

func preference(prefer map[job.ExecutorID]bool, x, y job.ExecutorID) int {
	switch {
	case prefer[x] && !prefer[y]:
		return -1
	case prefer[y] && !prefer[x]:
		return 1
	}
	return cmp.Compare(x, y)
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
