package jobmaster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/scheduler"
)

// slotTable says which job has how many slots of which executor, and who waits. It is a plain value; the registry's lock guards it.
type slotTable struct {
	executors []*slotOwner // ascending by id
	waiters   []*slotRequest
}

// slotOwner is the slots of one session of an executor.
type slotOwner struct {
	session *session
	total   int
	used    map[job.ID]int
}

// slotRequest asks for all slots of a job at once.
type slotRequest struct {
	job     job.ID
	name    string
	order   int // of submission
	number  int // of the request, chosen by the job's loop
	count   int
	prefer  map[job.ExecutorID]bool
	message string // that it was told last
}

// slotGrant answers a request: the slots, one entry each, or what is short.
type slotGrant struct {
	number int
	slots  []grantedSlot // nil: not yet
	short  scheduler.SlotsShort
}

type grantedSlot struct {
	scheduler.Slot
	session *session
}

func (o *slotOwner) free() int {
	n := o.total
	for _, used := range o.used {
		n -= used
	}
	return n
}

func (o *slotOwner) has(name string) bool { return slices.Contains(o.session.reg.Jobs, name) }

func (t *slotTable) add(s *session) {
	o := &slotOwner{session: s, total: s.reg.Slots, used: map[job.ID]int{}}
	at, _ := slices.BinarySearchFunc(t.executors, s.reg.Executor, func(o *slotOwner, id job.ExecutorID) int {
		return cmp.Compare(o.session.reg.Executor, id)
	})
	t.executors = slices.Insert(t.executors, at, o)
}

func (t *slotTable) remove(s *session) {
	t.executors = slices.DeleteFunc(t.executors, func(o *slotOwner) bool { return o.session == s })
}

// request allocates, or lets the request wait. A job has at most one request.
func (t *slotTable) request(r *slotRequest) slotGrant {
	t.withdraw(r.job)
	if slots := t.allocate(r); slots != nil {
		return slotGrant{number: r.number, slots: slots}
	}
	at, _ := slices.BinarySearchFunc(t.waiters, r.order, func(w *slotRequest, order int) int { return cmp.Compare(w.order, order) })
	t.waiters = slices.Insert(t.waiters, at, r)
	short := t.short(r)
	r.message = short.Message
	return slotGrant{number: r.number, short: short}
}

func (t *slotTable) withdraw(id job.ID) {
	t.waiters = slices.DeleteFunc(t.waiters, func(w *slotRequest) bool { return w.job == id })
}

// release gives back every slot of a job.
func (t *slotTable) release(id job.ID) {
	t.withdraw(id)
	for _, o := range t.executors {
		delete(o.used, id)
	}
}

// serve looks at the waiters in order of submission after something has changed, and calls grant for each that has news. A job that does
// not fit does not hold up a later one that does: they may need different executors.
func (t *slotTable) serve(grant func(job.ID, slotGrant)) {
	for _, w := range slices.Clone(t.waiters) {
		if slots := t.allocate(w); slots != nil {
			t.withdraw(w.job)
			grant(w.job, slotGrant{number: w.number, slots: slots})
			continue
		}
		if short := t.short(w); short.Message != w.message {
			w.message = short.Message
			grant(w.job, slotGrant{number: w.number, short: short})
		}
	}
}

// allocate takes all slots or none: each from the executor with the most free ones, before others from one that the job has used before,
// and among equals from the first by id.
func (t *slotTable) allocate(r *slotRequest) []grantedSlot {
	var from []*slotOwner
	free := 0
	for _, o := range t.executors {
		if n := o.free(); o.has(r.name) && n > 0 {
			from = append(from, o)
			free += n
		}
	}
	if free < r.count || r.count == 0 {
		return nil
	}
	var out []grantedSlot
	for range r.count {
		best := slices.MinFunc(from, func(a, b *slotOwner) int {
			return cmp.Or(cmp.Compare(b.free(), a.free()), preference(r.prefer, a, b))
		})
		best.used[r.job]++
		reg := best.session.reg
		out = append(out, grantedSlot{scheduler.Slot{Executor: reg.Executor, Address: reg.Address}, best.session})
	}
	return out
}

func preference(prefer map[job.ExecutorID]bool, a, b *slotOwner) int {
	x, y := a.session.reg.Executor, b.session.reg.Executor
	switch {
	case prefer[x] && !prefer[y]:
		return -1
	case prefer[y] && !prefer[x]:
		return 1
	}
	return cmp.Compare(x, y)
}

// short says what a request waits for.
func (t *slotTable) short(r *slotRequest) scheduler.SlotsShort {
	registered, total, free := 0, 0, 0
	used := map[job.ID]int{}
	for _, o := range t.executors {
		if !o.has(r.name) {
			continue
		}
		registered++
		total += o.total
		free += o.free()
		for id, n := range o.used {
			used[id] += n
		}
	}
	message := fmt.Sprintf("needs %d slots on executors that have job %q; ", r.count, r.name)
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
	return scheduler.SlotsShort{Required: r.count, Available: free, Message: message}
}
