package stream

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/job"
)

const testTTL = 100 * time.Millisecond

// expiring are states of every kind whose entries expire, and without options are nested like those that do not.
type expiring struct {
	*driven
	value  *Value[int, string]
	sum    *Reducing[int, int]
	mean   *Aggregating[int, int, meanAcc, string]
	list   *List[int, int]
	counts *MapState[int, string, int]
	names  *Value[Namespaced[int, string], []string] // a snapshot is encoded at once
}

// life is a time to live; 0: for ever.
type life struct {
	d       time.Duration
	options []TTLOption
}

func newExpiring(t *testing.T, groups job.KeyGroupRange, l life) *expiring {
	t.Helper()
	e := &expiring{
		value: NewValue[int, string]("value"), sum: NewReducing[int]("sum", func(a, b int) int { return a + b }),
		mean: NewAggregating[int, int]("mean", mean{}), list: NewList[int, int]("list"),
		counts: NewMap[int, string, int]("counts"), names: NewValue[Namespaced[int, string], []string]("names"),
	}
	if l.d != 0 {
		ExpiringValue(e.value, l.d, l.options...)
		ExpiringReducing(e.sum, l.d, l.options...)
		ExpiringAggregating(e.mean, l.d, l.options...)
		ExpiringList(e.list, l.d, l.options...)
		ExpiringMap(e.counts, l.d, l.options...)
		ExpiringValue(e.names, l.d, l.options...)
	}
	e.driven = drive(t, groups, e.value, e.sum, e.mean, e.list, e.counts, PerNamespace(e.names))
	return e
}

func (e *expiring) now(now Timestamp) { e.env.Clock.Set(time.UnixMilli(int64(now))) }

// dated is what the twin has: text with the time of the last access.
type dated struct {
	text string
	at   Timestamp
	sum  int
	n    int
}

func (d dated) gone(now Timestamp) bool { return d.at+Timestamp(testTTL.Milliseconds()) <= now }

// dates is what the twin has for a key: single entries by name, those of the map with a prefix, and the list.
type dates struct {
	entries map[string]dated
	list    []dated
	order   []string // of the map
}

func (d dates) clone() dates {
	return dates{maps.Clone(d.entries), slices.Clone(d.list), slices.Clone(d.order)}
}

func (d *dates) live(name string, now Timestamp) (dated, bool) {
	e, ok := d.entries[name]
	if ok && e.gone(now) {
		d.drop(name)
		return dated{}, false
	}
	return e, ok
}

func (d *dates) drop(name string) {
	delete(d.entries, name)
	d.order = slices.DeleteFunc(d.order, func(s string) bool { return s == name })
}

func (d *dates) set(name string, e dated) {
	if _, ok := d.entries[name]; !ok && strings.HasPrefix(name, "counts") {
		d.order = append(d.order, name)
	}
	d.entries[name] = e
}

// read is what a read shows, which begins the time anew when the states do so.
func (d *dates) read(name string, now Timestamp, onRead bool) string {
	e, ok := d.live(name, now)
	if !ok {
		return "-"
	}
	if onRead {
		e.at = now
		d.entries[name] = e
	}
	return e.text
}

// show reads everything.
func (d *dates) show(now Timestamp, onRead bool) string {
	out := []string{d.read("value", now, onRead), d.read("sum", now, onRead), d.read("mean", now, onRead)}
	d.list = slices.DeleteFunc(d.list, func(e dated) bool { return e.gone(now) })
	for i, e := range d.list {
		if onRead {
			d.list[i].at = now
		}
		out = append(out, e.text)
	}
	out = append(out, ";")
	for _, name := range slices.Clone(d.order) {
		if text := d.read(name, now, onRead); text != "-" {
			out = append(out, text)
		}
	}
	out = append(out, ";", d.read("names", now, onRead))
	return strings.Join(out, " ")
}

func (e *expiring) show(c *Context[int]) string {
	var out []string
	add := func(v any, ok bool) {
		if !ok {
			v = "-"
		}
		out = append(out, fmt.Sprint(v))
	}
	v, ok := e.value.Get(c)
	add(v, ok)
	n, ok := e.sum.Get(c)
	add(n, ok)
	m, ok := e.mean.Get(c)
	add(m[max(0, strings.LastIndexByte(m, ' ')+1):], ok)
	length := e.list.Len(c)
	for v := range e.list.All(c) {
		add(v, true)
		length--
	}
	if length != 0 {
		add("the length is wrong by", true)
		add(length, true)
	}
	add(";", true)
	length = e.counts.Len(c)
	for u, v := range e.counts.All(c) {
		add(u+"="+fmt.Sprint(v), true)
		length--
	}
	if length != 0 {
		add("the length of the map is wrong by", true)
		add(length, true)
	}
	add(";", true)
	names, ok := e.names.Get(In(c, "ns"))
	add(names, ok)
	return strings.Join(out, " ")
}

func (e *expiring) step(c *Context[int], d dates, now Timestamp, onRead bool, rng *rand.Rand) dates {
	d = d.clone()
	if d.entries == nil {
		d.entries = map[string]dated{}
	}
	v := rng.IntN(100)
	user := fmt.Sprint("u", rng.IntN(4))
	switch rng.IntN(12) {
	case 0:
		e.value.Set(c, fmt.Sprint(v))
		d.set("value", dated{text: fmt.Sprint(v), at: now})
	case 1:
		e.value.Clear(c)
		d.drop("value")
	case 2:
		e.sum.Add(c, v)
		old, _ := d.live("sum", now)
		d.set("sum", dated{fmt.Sprint(old.sum + v), now, old.sum + v, 0})
	case 3:
		e.mean.Add(c, v)
		old, _ := d.live("mean", now)
		d.set("mean", dated{fmt.Sprintf("%d/%d", old.sum+v, old.n+1), now, old.sum + v, old.n + 1})
	case 4, 5, 6:
		e.list.Append(c, v)
		d.list = append(d.list, dated{text: fmt.Sprint(v), at: now})
	case 7:
		e.list.Set(c, []int{v, v + 1})
		d.list = []dated{{text: fmt.Sprint(v), at: now}, {text: fmt.Sprint(v + 1), at: now}}
	case 8, 9:
		d.live("counts "+user, now) // what has expired is put behind the others
		e.counts.Get(c, user)
		e.counts.Put(c, user, v)
		d.set("counts "+user, dated{text: fmt.Sprint(user, "=", v), at: now})
	case 10:
		e.counts.Delete(c, user)
		d.drop("counts " + user)
	default:
		e.names.Set(In(c, "ns"), []string{user})
		d.set("names", dated{text: fmt.Sprint([]string{user}), at: now})
	}
	return d
}

type datedMoment struct {
	moment
	twin map[int]dates
	now  Timestamp
}

func (m *datedMoment) restored(t *testing.T, written []StateSchema, parallelism int, onRead bool, l life) {
	t.Helper()
	if m.fault != nil {
		t.Fatal(m.fault)
	}
	for i := range parallelism {
		groups := job.KeyGroups(i, parallelism, testMaxParallelism)
		e := newExpiring(t, groups, l)
		e.now(m.now + 30)
		for g := groups.Start; g < groups.End; g++ {
			if err := e.RestoreGroup(g, written, m.data[g]); err != nil {
				t.Fatal(err)
			}
		}
		for key, d := range m.twin {
			if !groups.Contains(job.KeyGroupOf(e.ctx.hasher(key), testMaxParallelism)) {
				continue
			}
			d = d.clone()
			e.at(t, key, func(c *Context[int]) {
				if got, want := e.show(c), d.show(m.now+30, onRead); got != want {
					t.Errorf("key %d at parallelism %d:\n got %s\nwant %s", key, parallelism, got, want)
				}
			})
		}
	}
}

func TestTTL_RandomOperations_EqualADatedTwin_AtAnyParallelism(t *testing.T) {
	for _, onRead := range []bool{false, true} {
		l := life{d: testTTL}
		if onRead {
			l.options = []TTLOption{OnReadAndWrite}
		}
		rng := rand.New(rand.NewPCG(21, 22))
		e, twin, now := newExpiring(t, allGroups(), l), map[int]dates{}, Timestamp(1_000_000)
		var moments []*datedMoment
		var readers sync.WaitGroup
		for round := range 60 {
			now += Timestamp(rng.IntN(60))
			e.now(now)
			if round%3 == 0 { // else a part of what has expired is still there
				if _, err := e.Tick(); err != nil {
					t.Fatal(err)
				}
			}
			m := &datedMoment{moment{snap: must(e.SnapshotKeyed())(t), data: map[int][]byte{}}, maps.Clone(twin), now}
			moments = append(moments, m)
			if round%2 == 0 {
				readers.Go(m.encode)
			}
			for range 200 {
				key := rng.IntN(40)
				e.at(t, key, func(c *Context[int]) {
					twin[key] = e.step(c, twin[key], now, onRead, rng)
					if rng.IntN(4) > 0 {
						return
					}
					d := twin[key].clone()
					if got, want := e.show(c), d.show(now, onRead); got != want {
						t.Fatalf("on read %t, round %d, key %d:\n got %s\nwant %s", onRead, round, key, got, want)
					}
					twin[key] = d
				})
			}
		}
		readers.Wait()
		for i, m := range moments {
			if i%2 != 0 {
				m.encode()
			}
			m.restored(t, e.Schemas(), 1+i%3, onRead, l)
		}
	}
}

// rowsOf counts the rows of all states.
func (e *expiring) rowsOf(t *testing.T) (n int) {
	t.Helper()
	for _, tb := range e.ctx.tables {
		switch tb := tb.(type) {
		case *valueTable[int, timed[string]]:
			n += entries(t, tb.rows)
		case *valueTable[int, timed[int]]:
			n += entries(t, tb.rows)
		case *valueTable[int, timed[meanAcc]]:
			n += entries(t, tb.rows)
		case *valueTable[int, []timed[int]]:
			n += entries(t, tb.rows)
		case *valueTable[Namespaced[int, string], timed[[]string]]:
			n += entries(t, tb.rows)
		case *mapTable[int, string, timed[int]]:
			n += entries(t, tb.entries) + entries(t, tb.heads)
		default:
			t.Fatalf("a table of type %T", tb)
		}
	}
	return n
}

// fill gives each key an entry in each state.
func (e *expiring) fill(t *testing.T, from, to int) {
	t.Helper()
	for key := from; key < to; key++ {
		e.at(t, key, func(c *Context[int]) {
			e.value.Set(c, "x")
			e.sum.Add(c, 1)
			e.mean.Add(c, 1)
			e.list.Append(c, 1)
			e.counts.Put(c, "u", 1)
			e.names.Set(In(c, "ns"), nil)
		})
	}
}

func TestTTL_WhatNobodyTouches_IsCleanedUpALittleAtATime(t *testing.T) {
	if onDisk.state != nil {
		t.Skip("on disk a sweep begins when what was in memory is sealed, which nothing does here")
	}
	const keys, rows = 3000, 7
	e := newExpiring(t, allGroups(), life{d: testTTL})
	e.now(1000)
	e.fill(t, 0, keys)
	e.now(1060)
	e.fill(t, keys/2, keys)
	e.at(t, keys-1, func(c *Context[int]) { e.list.Append(c, 2) })
	if n := e.rowsOf(t); n != keys*rows {
		t.Fatalf("%d rows", n)
	}
	e.now(1100)
	left, calls := keys*rows, 0
	for {
		next, err := e.Tick()
		if err != nil {
			t.Fatal(err)
		}
		n := e.rowsOf(t)
		if calls++; left-n > rows*(sweepEntries+200) {
			t.Fatalf("%d rows are gone after one step", left-n)
		}
		left = n
		if next > 1100 {
			if want := Timestamp(1100 + minPass.Milliseconds()); next != want {
				t.Errorf("the next pass is at %d, want %d", next, want)
			}
			break
		}
	}
	if left != keys/2*rows || calls < keys/sweepEntries {
		t.Errorf("%d rows are left after %d steps, want %d", left, calls, keys/2*rows)
	}
	e.at(t, keys-1, func(c *Context[int]) {
		if n := e.list.Len(c); n != 2 {
			t.Errorf("%d elements, want those that have not expired", n)
		}
	})
	e.now(1160)
	for next := Timestamp(0); next <= 1160; {
		next, _ = e.Tick()
	}
	e.now(1300)
	for next := Timestamp(0); next <= 1300; {
		next, _ = e.Tick()
	}
	if n := e.rowsOf(t); n != 0 {
		t.Errorf("%d rows are left when all have expired", n)
	}
}

func TestTTL_ExpiredEntriesAreShown_WhereThatIsWanted(t *testing.T) {
	e := newExpiring(t, allGroups(), life{testTTL, []TTLOption{ReturnExpiredIfNotCleanedUp}})
	e.now(1000)
	e.fill(t, 1, 2)
	e.now(1100)
	for g := range testMaxParallelism {
		snap := must(e.SnapshotKeyed())(t)
		if data := must(snap.AppendGroup(nil, g))(t); len(data) != len(e.ctx.tables) {
			t.Errorf("expired entries are in a snapshot: %q", data)
		}
		snap.Release()
	}
	e.at(t, 1, func(c *Context[int]) {
		if got := e.show(c); got != "x 1 1/1 1 ; u=1 ; []" {
			t.Errorf("got %s", got)
		}
		if got := e.show(c); got != "- - - 1 ; ; -" { // the first read has cleaned up, but for the list, which is swept
			t.Errorf("got %s", got)
		}
	})
}

// A state may get a time to live, lose it, or have it changed.
func TestTTL_MayChangeBetweenVersions(t *testing.T) {
	short, long, none := life{d: testTTL}, life{d: 10 * testTTL}, life{}
	const full, empty = "x 1 1/1 1 ; u=1 ; []", "- - - ; ; -"
	for name, c := range map[string]struct {
		was, is life
		after   Timestamp // that the entries were written
		want    string
	}{
		"on":                  {none, short, 999, full},
		"off":                 {short, none, 99, full},
		"off after expiry":    {short, none, 100, empty},
		"longer":              {short, long, 99, full},
		"shorter":             {long, short, 100, empty},
		"shorter, still good": {long, short, 99, full},
	} {
		old := newExpiring(t, allGroups(), c.was)
		old.now(5000)
		old.fill(t, 1, 2)
		old.now(5000 + c.after)
		m := &moment{snap: must(old.SnapshotKeyed())(t), data: map[int][]byte{}}
		if m.encode(); m.fault != nil {
			t.Fatal(m.fault)
		}
		e := newExpiring(t, allGroups(), c.is)
		e.now(5000 + c.after)
		if err := e.CheckStates(old.Schemas()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for g, data := range m.data {
			if err := e.RestoreGroup(g, old.Schemas(), data); err != nil {
				t.Fatal(err)
			}
		}
		e.at(t, 1, func(c2 *Context[int]) {
			if got := e.show(c2); got != c.want {
				t.Errorf("%s: got %s, want %s", name, got, c.want)
			}
		})
		if name == "on" { // the time began at the restore
			e.now(5000 + c.after + 100)
			e.at(t, 1, func(c *Context[int]) {
				if got := e.show(c); got != empty {
					t.Errorf("got %s", got)
				}
			})
		}
	}
}
