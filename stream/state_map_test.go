package stream

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weirstream/weir/internal/job"
)

// window is a namespace as windows have it.
type window struct{ Start, End int64 }

// nested are states of which a key has many entries.
type nested struct {
	*driven
	counts *MapState[int, string, int]
	boxes  *MapState[int, int16, []string] // a snapshot is encoded at once
	sums   *Reducing[Namespaced[int, window], int64]
	names  *Value[Namespaced[int, string], string]
	logs   *List[Namespaced[int, string], int]
	ranks  *MapState[Namespaced[int, window], string, int]
}

func newNested(t *testing.T, groups job.KeyGroupRange) *nested {
	t.Helper()
	n := &nested{
		counts: NewMap[int, string, int]("counts"), boxes: NewMap[int, int16, []string]("boxes"),
		sums:  NewReducing[Namespaced[int, window]]("sums", func(a, b int64) int64 { return a + b }),
		names: NewValue[Namespaced[int, string], string]("names"), logs: NewList[Namespaced[int, string], int]("logs"),
		ranks: NewMap[Namespaced[int, window], string, int]("ranks"),
	}
	n.driven = drive(t, groups, n.counts, n.boxes, PerNamespace(n.sums), PerNamespace(n.names), PerNamespace(n.logs), PerNamespace(n.ranks))
	return n
}

// pairs is a map that keeps the order in which entries came.
type pairs []string // "key=value"

func (p pairs) find(key string) int {
	return slices.IndexFunc(p, func(s string) bool { return strings.HasPrefix(s, key+"=") })
}

func (p pairs) with(key string, value any) pairs {
	p = slices.Clone(p)
	entry := fmt.Sprint(key, "=", value)
	if i := p.find(key); i >= 0 {
		p[i] = entry
		return p
	}
	return append(p, entry)
}

func (p pairs) without(key string) pairs {
	return slices.DeleteFunc(slices.Clone(p), func(s string) bool { return strings.HasPrefix(s, key+"=") })
}

// nest is what the twin has for a key: each state by namespace, "" where it has none.
type nest map[string]pairs

func windowOf(n int) window { return window{int64(n) * 10, int64(n)*10 + 10} }

func (n *nested) show(c *Context[int]) string {
	var out []string
	add := func(name string, p pairs) {
		if len(p) > 0 {
			out = append(out, fmt.Sprint(name, p))
		}
	}
	var counts, boxes pairs
	for u, v := range n.counts.All(c) {
		counts = append(counts, fmt.Sprint(u, "=", v))
	}
	for u, v := range n.boxes.All(c) {
		boxes = append(boxes, fmt.Sprint(u, "=", v))
	}
	add("counts", counts)
	add("boxes", boxes)
	for i := range 3 {
		w, s := windowOf(i), fmt.Sprint("n", i)
		if v, ok := n.sums.Get(In(c, w)); ok {
			add(fmt.Sprint("sums", i), pairs{fmt.Sprint("=", v)})
		}
		if v, ok := n.names.Get(In(c, s)); ok {
			add(fmt.Sprint("names", i), pairs{"=" + v})
		}
		var logs, ranks pairs
		for v := range n.logs.All(In(c, s)) {
			logs = append(logs, fmt.Sprint(v))
		}
		for u, v := range n.ranks.All(In(c, w)) {
			ranks = append(ranks, fmt.Sprint(u, "=", v))
		}
		add(fmt.Sprint("logs", i), logs)
		add(fmt.Sprint("ranks", i), ranks)
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

func (e nest) String() string {
	var out []string
	for name, p := range e {
		if len(p) > 0 {
			out = append(out, fmt.Sprint(name, p))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// step does something random to a key and to its twin.
func (n *nested) step(t *testing.T, c *Context[int], old nest, rng *rand.Rand) nest {
	t.Helper()
	e := maps.Clone(old)
	if e == nil {
		e = nest{}
	}
	i, v, u := rng.IntN(3), rng.IntN(1000), rng.IntN(8)
	w, ns, user := windowOf(i), fmt.Sprint("n", i), fmt.Sprint("u", u)
	sums, names, logs, ranks := fmt.Sprint("sums", i), fmt.Sprint("names", i), fmt.Sprint("logs", i), fmt.Sprint("ranks", i)
	switch rng.IntN(22) {
	case 0, 1, 2:
		n.counts.Put(c, user, v)
		e["counts"] = e["counts"].with(user, v)
	case 3, 4:
		n.counts.Delete(c, user)
		e["counts"] = e["counts"].without(user)
	case 5:
		n.counts.Clear(c)
		delete(e, "counts")
	case 6:
		got, ok := n.counts.Get(c, user)
		want := e["counts"].find(user)
		if ok != (want >= 0) || n.counts.Contains(c, user) != ok || n.counts.Len(c) != len(e["counts"]) || ok && e["counts"][want] != fmt.Sprint(user, "=", got) {
			t.Fatalf("%s is %d, %t of %d in %v", user, got, ok, n.counts.Len(c), e["counts"])
		}
	case 7, 8:
		n.boxes.Put(c, int16(u), []string{fmt.Sprint(v), "x"})
		e["boxes"] = e["boxes"].with(fmt.Sprint(u), []string{fmt.Sprint(v), "x"})
	case 9:
		n.boxes.Delete(c, int16(u))
		e["boxes"] = e["boxes"].without(fmt.Sprint(u))
	case 10:
		n.sums.Add(In(c, w), int64(v))
		before := 0
		if p := e[sums]; len(p) > 0 {
			before, _ = strconv.Atoi(strings.TrimPrefix(p[0], "="))
		}
		e[sums] = pairs{fmt.Sprint("=", before+v)}
	case 11:
		n.sums.Clear(In(c, w))
		delete(e, sums)
	case 12, 13:
		n.names.Set(In(c, ns), user)
		e[names] = pairs{"=" + user}
	case 14:
		n.names.Clear(In(c, ns))
		delete(e, names)
	case 15, 16:
		n.logs.Append(In(c, ns), v)
		e[logs] = append(slices.Clone(e[logs]), fmt.Sprint(v))
	case 17:
		n.logs.Clear(In(c, ns))
		delete(e, logs)
	case 18, 19:
		n.ranks.Put(In(c, w), user, v)
		e[ranks] = e[ranks].with(user, v)
	case 20:
		n.ranks.Delete(In(c, w), user)
		e[ranks] = e[ranks].without(user)
	default:
		n.ranks.Clear(In(c, w))
		delete(e, ranks)
	}
	return e
}

type nestedMoment struct {
	moment
	nests map[int]nest
}

// Half of the snapshots are encoded beside the operator, for the race detector; the others only at the end, when most has changed.
func TestMapsAndNamespaces_RandomOperations_SnapshotsHoldTheirMomentAtAnyParallelism(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	n, twin := newNested(t, allGroups()), map[int]nest{}
	var moments []*nestedMoment
	var readers sync.WaitGroup
	for round := range 30 {
		m := &nestedMoment{moment{snap: must(n.SnapshotKeyed())(t), data: map[int][]byte{}}, maps.Clone(twin)}
		moments = append(moments, m)
		if round%2 == 0 {
			readers.Go(m.encode)
		}
		for range 600 {
			key := rng.IntN(40)
			n.at(t, key, func(c *Context[int]) { twin[key] = n.step(t, c, twin[key], rng) })
		}
	}
	readers.Wait()
	for key, e := range twin {
		n.at(t, key, func(c *Context[int]) {
			if got := n.show(c); got != e.String() {
				t.Errorf("key %d:\n got %s\nwant %s", key, got, e)
			}
		})
	}
	for i, m := range moments {
		if i%2 != 0 {
			m.encode()
		}
		m.restored(t, n.Schemas(), 1+i%3)
	}
}

func (m *nestedMoment) restored(t *testing.T, written []StateSchema, parallelism int) {
	t.Helper()
	if m.fault != nil {
		t.Fatal(m.fault)
	}
	left := maps.Clone(m.nests)
	for i := range parallelism {
		groups := job.KeyGroups(i, parallelism, testMaxParallelism)
		n := newNested(t, groups)
		for g := groups.Start; g < groups.End; g++ {
			if err := n.RestoreGroup(g, written, m.data[g]); err != nil {
				t.Fatal(err)
			}
		}
		for key, e := range m.nests {
			if !groups.Contains(job.KeyGroupOf(n.ctx.hasher(key), testMaxParallelism)) {
				continue
			}
			delete(left, key)
			n.at(t, key, func(c *Context[int]) {
				if got := n.show(c); got != e.String() {
					t.Errorf("key %d at parallelism %d:\n got %s\nwant %s", key, parallelism, got, e)
				}
			})
		}
	}
	if len(left) != 0 {
		t.Errorf("no subtask of %d has the keys %v", parallelism, slices.Sorted(maps.Keys(left)))
	}
}

func TestIn_ContextsOfSeveralNamespaces_CanBeUsedSideBySide(t *testing.T) {
	s := NewValue[Namespaced[int, string], int]("s")
	d := drive(t, allGroups(), PerNamespace(s))
	d.at(t, 1, func(c *Context[int]) {
		a, b := In(c, "a"), In(c, "b")
		s.Set(a, 1)
		s.Set(b, 2)
		va, _ := s.Get(a)
		vb, _ := s.Get(b)
		if va != 1 || vb != 2 || a.Key() != (Namespaced[int, string]{1, "a"}) || b.Timestamp() != c.Timestamp() {
			t.Errorf("got %d and %d of %v", va, vb, a.Key())
		}
	})
}

func TestMapState_ChangedWhileItIsWalked(t *testing.T) {
	s := NewMap[int, int, string]("s")
	d := drive(t, allGroups(), s)
	d.at(t, 1, func(c *Context[int]) {
		for i := range 6 {
			s.Put(c, i, "old")
		}
		var got []int
		for u := range s.All(c) {
			got = append(got, u)
			s.Delete(c, u)
			s.Delete(c, 3)
			s.Put(c, u+100, "new")
			s.Put(c, 4, "changed")
		}
		if want := []int{0, 1, 2, 4, 5}; !slices.Equal(got, want) {
			t.Errorf("visited %v, want %v", got, want)
		}
		got = nil
		for u := range s.All(c) {
			got = append(got, u)
		}
		if want := []int{100, 101, 102, 104, 4, 105}; !slices.Equal(got, want) {
			t.Errorf("left are %v, want %v", got, want)
		}
	})
}

func TestKinds_NamespacesAndKeysOfMaps_AreInTheSchema(t *testing.T) {
	declare := map[string]func() State[int]{
		"plain":      func() State[int] { return NewValue[int, int64]("s") },
		"namespaced": func() State[int] { return PerNamespace(NewValue[Namespaced[int, string], int64]("s")) },
		"map":        func() State[int] { return NewMap[int, string, int64]("s") },
		"windowed":   func() State[int] { return PerNamespace(NewMap[Namespaced[int, window], int16, int64]("s")) },
	}
	schemas := map[string]StateSchema{
		"plain":      {Name: "s", Kind: "value", KeyType: "int64", ValueType: "int64"},
		"namespaced": {Name: "s", Kind: "value", KeyType: "int64", ValueType: "int64", NamespaceType: "string"},
		"map":        {Name: "s", Kind: "map", KeyType: "int64", ValueType: "int64", MapKeyType: "string"},
		"windowed":   {Name: "s", Kind: "map", KeyType: "int64", ValueType: "int64", NamespaceType: "struct{Start:int64,End:int64}", MapKeyType: "int16"},
	}
	for was, want := range schemas {
		written := drive(t, allGroups(), declare[was]()).Schemas()
		if written[0] != want {
			t.Errorf("%s is %+v, want %+v", was, written[0], want)
		}
		for is := range schemas {
			d := drive(t, allGroups(), declare[is]())
			restore, check := d.RestoreGroup(0, written, []byte{0}), d.CheckStates(written)
			if is == was {
				if restore != nil || check != nil {
					t.Errorf("%s again: %v, %v", is, restore, check)
				}
				continue
			}
			if !IsPermanent(restore) || !strings.Contains(fmt.Sprint(restore), `restore state "s"`) || check == nil {
				t.Errorf("%s as %s: got %v and %v", was, is, restore, check)
			}
		}
	}
	for was, want := range map[string]string{"plain": "written without namespaces", "namespaced": "written with namespaces"} {
		other := map[string]string{"plain": "namespaced", "namespaced": "plain"}[was]
		err := drive(t, allGroups(), declare[other]()).CheckStates([]StateSchema{schemas[was]})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s as %s: got %v, want %s", was, other, err, want)
		}
	}
	narrow := drive(t, allGroups(), NewMap[int, int8, int64]("s"))
	if err := narrow.CheckStates([]StateSchema{{Name: "s", Kind: "map", KeyType: "int64", ValueType: "int64", MapKeyType: "int16"}}); err == nil || !strings.Contains(err.Error(), "key of the maps") {
		t.Errorf("got %v", err)
	}
}

func TestMapsAndNamespaces_DeclarationsThatCannotBe_AreRefused(t *testing.T) {
	for want, states := range map[string][]State[int]{
		`state "m" of operator op: keys of the maps: `:               {NewMap[int, float64, int]("m")},
		`state "n" of operator op: namespace: `:                      {PerNamespace(NewValue[Namespaced[int, float32], int]("n"))},
		`state "v" of operator op: codec of`:                         {NewMap[int, int, func()]("v")},
		`state "d" of operator op: its namespaces are in namespaces`: {PerNamespace(PerNamespace(NewValue[Namespaced[Namespaced[int, int], int], int]("d")))},
	} {
		j := NewJob("test", nil)
		Process(byItself(From(j, "source", nowhere[int]{})), "op", func(*Context[int], int, func(int) error) error { return nil }, states...)
		if err := j.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	j := NewJob("test", nil)
	none := func(*Context[int], func(int) error) error { return nil }
	ProcessToEnd(byItself(From(j, "source", nowhere[int]{})), "op", func(*Context[int], int, func(int) error) error { return nil }, none,
		PerNamespace(NewValue[Namespaced[int, int], int]("n")))
	if err := j.Err(); err == nil || !strings.Contains(err.Error(), "name another state first") {
		t.Errorf("got %v", err)
	}
}

func TestProcessToEnd_GoesThroughTheKeysOfAMap(t *testing.T) {
	s := NewMap[int, int, int]("s")
	b := build(t, func(in Stream[int]) Stream[int] {
		return ProcessToEnd(KeyBy(in, func(n int) int { return n % 3 }), "op",
			func(c *Context[int], n int, _ func(int) error) error { s.Put(c, n, n); return nil },
			func(c *Context[int], emit func(int) error) error { return emit(c.Key()*100 + s.Len(c)) }, s)
	})
	b.put(t, 0, 1, 3, 4, 7)
	if err := b.Operator.(Finisher).Finish(); err != nil {
		t.Fatal(err)
	}
	got := b.out.values()
	if slices.Sort(got); !slices.Equal(got, []int{2, 103}) {
		t.Errorf("got %v", got)
	}
}

func TestMapState_RestoreRefusesWhatIsDamaged(t *testing.T) {
	s := NewMap[int, int, string]("s")
	d := drive(t, allGroups(), s)
	d.at(t, 5, func(c *Context[int]) { s.Put(c, 1, "one"); s.Put(c, 2, "two") })
	snap := must(d.SnapshotKeyed())(t)
	defer snap.Release()
	group := job.KeyGroupOf(d.ctx.hasher(5), testMaxParallelism)
	data := must(snap.AppendGroup(nil, group))(t)
	for i := range data {
		err := drive(t, allGroups(), NewMap[int, int, string]("s")).RestoreGroup(group, d.Schemas(), data[:i])
		if err == nil {
			t.Errorf("the first %d of %d bytes were accepted", i, len(data))
		}
		var op *OperatorError
		if !errors.As(err, &op) || IsPermanent(err) {
			t.Errorf("got %v", err)
		}
	}
	if err := drive(t, allGroups(), NewMap[int, int, string]("s")).RestoreGroup((group+1)%testMaxParallelism, d.Schemas(), data); err == nil || !strings.Contains(err.Error(), "the checkpoint has it in") {
		t.Errorf("got %v", err)
	}
}
