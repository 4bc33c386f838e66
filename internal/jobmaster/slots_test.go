package jobmaster

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

func sessionOf(id string, slots int, jobs ...string) *session {
	return &session{reg: gateway.Registration{Executor: job.ExecutorID(id), Slots: slots, Jobs: jobs}}
}

func executorsOf(g slotGrant) (out []string) {
	for _, s := range g.slots {
		out = append(out, string(s.Executor))
	}
	return out
}

func TestSlots_AreSpreadEvenly(t *testing.T) {
	for _, c := range []struct {
		count  int
		prefer map[job.ExecutorID]bool
		want   []string
	}{
		{1, nil, []string{"b"}},
		{4, nil, []string{"b", "a", "b", "c"}},
		{6, nil, []string{"b", "a", "b", "c", "a", "b"}},
		{3, map[job.ExecutorID]bool{"c": true}, []string{"b", "c", "a"}},
		{8, nil, nil},
	} {
		var table slotTable
		for _, s := range []*session{sessionOf("c", 2, "j"), sessionOf("a", 2, "j"), sessionOf("b", 3, "j"), sessionOf("d", 9, "other")} {
			table.add(s)
		}
		got := executorsOf(table.request(&slotRequest{job: "x", name: "j", count: c.count, prefer: c.prefer}))
		if !slices.Equal(got, c.want) {
			t.Errorf("%d slots, preferring %v: %v, want %v", c.count, c.prefer, got, c.want)
		}
	}
}

func TestSlots_ShortMessage(t *testing.T) {
	var table slotTable
	r := &slotRequest{job: "x", name: "flights", count: 4}
	if got, want := table.request(r).short.Message, `needs 4 slots on executors that have job "flights"; none is registered with it`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	table.add(sessionOf("a", 2, "flights"))
	table.add(sessionOf("b", 2, "flights"))
	table.request(&slotRequest{job: "y", name: "flights", count: 1})
	want := `needs 4 slots on executors that have job "flights"; 2 registered with it, 3 of 4 slots free (1 used by job y)`
	if got := table.request(r).short.Message; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSlots_NeverGivenTwice runs random requests, releases and losses, and checks after each that no executor gives more than it has, that
// grants are whole, and that nobody waits who could be served.
func TestSlots_NeverGivenTwice(t *testing.T) {
	for seed := range int64(200) {
		random := rand.New(rand.NewSource(seed))
		var table slotTable
		sessions := map[string]*session{}
		held := map[job.ID]slotGrant{}
		counts := map[job.ID]int{}
		grant := func(id job.ID, g slotGrant) {
			if g.slots != nil {
				held[id] = g
			}
		}
		for step := range 200 {
			id := job.ID(fmt.Sprintf("j%d", random.Intn(6)))
			switch random.Intn(4) {
			case 0:
				if _, has := held[id]; has {
					break
				}
				order := int(id[1])
				counts[id] = 1 + random.Intn(4)
				grant(id, table.request(&slotRequest{job: id, name: "j", order: order, count: counts[id], number: step}))
			case 1:
				table.release(id)
				delete(held, id)
				delete(counts, id)
				table.serve(grant)
			case 2:
				name := fmt.Sprintf("e%d", random.Intn(4))
				if sessions[name] == nil {
					sessions[name] = sessionOf(name, 1+random.Intn(3), "j")
					table.add(sessions[name])
					table.serve(grant)
				}
			case 3:
				name := fmt.Sprintf("e%d", random.Intn(4))
				if s := sessions[name]; s != nil {
					table.remove(s)
					delete(sessions, name)
					table.serve(grant)
				}
			}
			checkSlots(t, seed, step, &table, sessions, held, counts)
		}
	}
}

func checkSlots(
	t *testing.T, seed int64, step int, table *slotTable, sessions map[string]*session, held map[job.ID]slotGrant, counts map[job.ID]int,
) {
	t.Helper()
	used := map[*session]int{}
	for id, g := range held {
		if len(g.slots) != counts[id] {
			t.Fatalf("seed %d step %d: job %s was given %d of %d slots", seed, step, id, len(g.slots), counts[id])
		}
		for _, s := range g.slots {
			used[s.session]++
		}
	}
	free := 0
	for _, s := range sessions {
		if used[s] > s.reg.Slots {
			t.Fatalf("seed %d step %d: %d of %d slots of %s are in use", seed, step, used[s], s.reg.Slots, s.reg.Executor)
		}
		free += s.reg.Slots - used[s]
	}
	for _, w := range table.waiters {
		if w.count <= free {
			t.Fatalf("seed %d step %d: job %s waits for %d slots, %d are free", seed, step, w.job, w.count, free)
		}
	}
	if !slices.IsSortedFunc(table.waiters, func(a, b *slotRequest) int { return a.order - b.order }) {
		t.Fatalf("seed %d step %d: waiters are not in order of submission", seed, step)
	}
}

func TestLocation(t *testing.T) {
	for _, c := range []struct{ in, parent, name string }{
		{"/a/b", "/a", "b"}, {"/a/b/", "/a", "b"}, {"/b", "/", "b"}, {"file:///a/b", "file:///a", "b"},
	} {
		if parent, name := splitLocation(c.in); parent != c.parent || name != c.name {
			t.Errorf("split %s: %s and %s", c.in, parent, name)
		}
	}
	for _, c := range []struct{ root, in, want string }{
		{"file:///chk", "/chk/j/chk-1", "j/chk-1"}, {"/chk/", "file:///chk/j/chk-1/", "j/chk-1"}, {"/chk", "/chkother/j", ""}, {"/chk", "/chk", ""},
		{"/chk", "j/chk-1", ""},
	} {
		if got, ok := relativeTo(c.root, c.in); got != c.want && ok || ok != (c.want != "") {
			t.Errorf("%s relative to %s: %q, %t", c.in, c.root, got, ok)
		}
	}
}
