package stream

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream/codec"
)

func byItself[T comparable](s Stream[T]) KeyedStream[T, T] {
	return KeyBy(s, func(v T) T { return v })
}

// firstLetter groups words.
func firstLetter(s Stream[string]) KeyedStream[string, string] {
	return KeyBy(s, func(w string) string { return w[:1] })
}

func TestReduce_EmitsUpdatesOrTheEnd(t *testing.T) {
	longest := func(a, b string) string {
		if len(b) > len(a) {
			return b
		}
		return a
	}
	b := build(t, func(s Stream[string]) Stream[string] { return Reduce(firstLetter(s), "longest", longest, EmitUpdates) })
	b.put(t, "a", "abc", "ab", "b")
	b.expect(t, record[string]{1, "a"}, record[string]{2, "abc"}, record[string]{3, "abc"}, record[string]{4, "b"})
	if err := b.Operator.(Finisher).Finish(); err != nil || len(b.out.got) != 4 {
		t.Errorf("the end emits again: %v, %v", err, b.out.got)
	}

	b = build(t, func(s Stream[string]) Stream[string] { return Reduce(firstLetter(s), "longest", longest, EmitAtEnd) })
	b.put(t, "a", "abc", "ab", "b")
	b.expect(t)
	if err := b.Operator.(Finisher).Finish(); err != nil {
		t.Fatal(err)
	}
	got := b.out.values()
	slices.Sort(got)
	if !slices.Equal(got, []string{"abc", "b"}) || b.out.got[0].ts != NoTimestamp {
		t.Errorf("got %v", b.out.got)
	}
}

// joined collects the records of a key.
type joined struct{}

func (joined) New() string                          { return ">" }
func (joined) Add(acc string, v string) string      { return acc + v }
func (joined) Result(key string, acc string) string { return key + acc }

func TestAggregate_StartsWithNewAndShowsTheKey(t *testing.T) {
	b := build(t, func(s Stream[string]) Stream[string] {
		return Aggregate[string, string, string, string](firstLetter(s), "join", joined{}, EmitUpdates)
	})
	b.put(t, "xa", "y", "xb")
	b.expect(t, record[string]{1, "x>xa"}, record[string]{2, "y>y"}, record[string]{3, "x>xaxb"})
}

// counter counts the records of a key, forgets it at "clear", and tells at the end.
func counter(s Stream[string]) Stream[string] {
	n := NewValue[string, int]("n")
	last := NewValue[string, []string]("words")
	return ProcessToEnd(firstLetter(s), "count", func(c *Context[string], v string, emit func(string) error) error {
		if strings.HasSuffix(v, "clear") {
			n.Clear(c)
			return nil
		}
		count, ok := n.Get(c)
		if ok != (count > 0) {
			return fmt.Errorf("key %s: %d, %v", c.Key(), count, ok)
		}
		n.Set(c, count+1)
		words, _ := last.Get(c)
		last.Set(c, append(slices.Clone(words), v))
		return emit(fmt.Sprint(c.Key(), count+1, "@", c.Timestamp()))
	}, func(c *Context[string], emit func(string) error) error {
		count, _ := n.Get(c)
		words, _ := last.Get(c)
		return emit(fmt.Sprint(c.Key(), "=", count, words))
	}, n, last)
}

func TestProcess_KeepsStateByKey(t *testing.T) {
	b := build(t, counter)
	b.put(t, "a1", "b1", "a2", "bclear", "b2")
	b.expect(t, record[string]{1, "a1@1"}, record[string]{2, "b1@2"}, record[string]{3, "a2@3"}, record[string]{5, "b1@5"})
	if key := b.Operator.(interface{ RunningKey() string }).RunningKey(); key != "b" {
		t.Errorf("the running key is %q", key)
	}
	b.out.got = nil
	if err := b.Operator.(Finisher).Finish(); err != nil {
		t.Fatal(err)
	}
	got := b.out.values()
	slices.Sort(got)
	if want := []string{"a=2 [a1 a2]", "b=1 [b1 b2]"}; !slices.Equal(got, want) {
		t.Errorf("at the end: got %q, want %q", got, want)
	}
}

func TestProcess_StateThatIsNotDeclaredSaysSo(t *testing.T) {
	declared, forgotten := NewValue[int, int]("declared"), NewValue[int, int]("forgotten")
	b := build(t, func(s Stream[int]) Stream[int] {
		return Process(byItself(s), "p", func(c *Context[int], _ int, _ func(int) error) error {
			forgotten.Set(c, 1)
			return nil
		}, declared)
	})
	defer func() {
		if r := fmt.Sprint(recover()); !strings.Contains(r, `state "forgotten"`) || !strings.Contains(r, "name it in Process") {
			t.Errorf("got %v, want the name and the remedy", r)
		}
	}()
	_ = b.in.Collect(1, 1)
}

func TestKeyedState_SurvivesASnapshotByKeyGroup(t *testing.T) {
	b := build(t, counter)
	rng := "abcdefghijklmnopqrstuvwxyz"
	for _, letter := range rng {
		b.put(t, string(letter)+"1", string(letter)+"2")
	}
	snapshot := b.groups(t)
	b.put(t, "a3", "zclear") // must not be seen by it

	restored := build(t, counter)
	if err := restored.restore(b.Operator.(KeyedStateful).Schemas(), snapshot); err != nil {
		t.Fatal(err)
	}
	for g, data := range restored.groups(t) {
		if len(data) != len(snapshot[g]) {
			t.Errorf("key group %d has %d bytes, had %d", g, len(data), len(snapshot[g]))
		}
	}
	for _, letter := range rng {
		restored.put(t, string(letter)+"3")
	}
	if err := restored.Operator.(Finisher).Finish(); err != nil {
		t.Fatal(err)
	}
	got := restored.out.values()[len(rng):]
	slices.Sort(got)
	for i, letter := range rng {
		if want := fmt.Sprintf("%c=3 [%[1]c1 %[1]c2 %[1]c3]", letter); got[i] != want {
			t.Errorf("got %q, want %q", got[i], want)
		}
	}
}

func TestKeyedState_OpenSnapshotSeesNoLaterChange(t *testing.T) {
	b := build(t, func(s Stream[string]) Stream[string] {
		return Reduce(firstLetter(s), "join", func(a, b string) string { return a + b }, EmitUpdates)
	})
	b.put(t, "x")
	s, err := b.Operator.(KeyedStateful).SnapshotKeyed()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	group := job.KeyGroupOf(must(codec.Hash[string]())(t)("x"), testMaxParallelism)
	before := must(s.AppendGroup(nil, group))(t)
	b.put(t, "xyz")
	if after := must(s.AppendGroup(nil, group))(t); string(after) != string(before) {
		t.Errorf("the snapshot changed from %q to %q", before, after)
	}
}

func TestKeyedState_RestoreRefuses(t *testing.T) {
	sum := func(s Stream[int64]) Stream[int64] {
		return Reduce(byItself(s), "sum", func(a, b int64) int64 { return a + b }, EmitUpdates)
	}
	b := build(t, sum)
	b.put(t, 1, 2, 3)
	schemas, groups := b.Operator.(KeyedStateful).Schemas(), b.groups(t)
	holding := slices.IndexFunc(slices.Collect(maps.Values(groups)), func(d []byte) bool { return len(d) > 1 })
	if holding < 0 {
		t.Fatal("no key group holds anything")
	}
	change := func(f func(*StateSchema)) []StateSchema {
		s := slices.Clone(schemas)
		f(&s[0])
		return s
	}
	shifted := map[int][]byte{}
	for g, data := range groups {
		shifted[(g+1)%testMaxParallelism] = data
	}
	cut := map[int][]byte{}
	for g, data := range groups {
		cut[g] = data[:len(data)-1]
	}
	more := map[int][]byte{}
	for g, data := range groups {
		more[g] = append(slices.Clone(data), 0)
	}
	for what, c := range map[string]struct {
		schemas   []StateSchema
		groups    map[int][]byte
		permanent bool
		want      string
	}{
		"another key type":       {change(func(s *StateSchema) { s.KeyType = "string" }), groups, true, "key: "},
		"another value type":     {change(func(s *StateSchema) { s.ValueType = "[]string" }), groups, true, "value: "},
		"a state that is gone":   {change(func(s *StateSchema) { s.Name = "old" }), groups, true, `a state "old" that the operator no longer declares`},
		"data of another group":  {schemas, shifted, false, "the checkpoint has it in"},
		"cut data":               {schemas, cut, false, `restore state "accumulator"`},
		"data behind the groups": {schemas, more, false, "1 bytes left over"},
	} {
		err := build(t, sum).restore(c.schemas, c.groups)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "operator sum") || IsPermanent(err) != c.permanent {
			t.Errorf("%s: got %v (permanent %v), want %q with the operator's name", what, err, IsPermanent(err), c.want)
		}
	}
}

// The types of a state in two versions of a job.
type (
	statsV1 struct {
		Count int32
		Names []string
		Gone  string
	}
	statsV2 struct {
		Names []string
		Count int64
		Added float64
	}
)

func keep[V any](s Stream[int], id string, set func(old V, n int) V, show func(V) string) Stream[string] {
	st := NewValue[int, V]("stats")
	return Process(byItself(s), id, func(c *Context[int], n int, emit func(string) error) error {
		old, _ := st.Get(c)
		v := set(old, n)
		st.Set(c, v)
		return emit(show(v))
	}, st)
}

func TestKeyedState_ValueTypeMayEvolve(t *testing.T) {
	v1 := func(s Stream[int]) Stream[string] {
		return keep(s, "op", func(old statsV1, n int) statsV1 {
			return statsV1{old.Count + 1, append(slices.Clone(old.Names), fmt.Sprint("n", n)), "x"}
		}, func(statsV1) string { return "" })
	}
	v2 := func(s Stream[int]) Stream[string] {
		return keep(s, "op", func(old statsV2, n int) statsV2 {
			return statsV2{append(slices.Clone(old.Names), "new"), old.Count + 1, old.Added + 0.5}
		}, func(v statsV2) string { return fmt.Sprint(v) })
	}
	old := build(t, v1)
	old.put(t, 7, 7)
	evolved := build(t, v2)
	if err := evolved.restore(old.Operator.(KeyedStateful).Schemas(), old.groups(t)); err != nil {
		t.Fatal(err)
	}
	evolved.put(t, 7)
	evolved.expect(t, record[string]{1, "{[n7 n7 new] 3 0.5}"})
	// what is written now has the new schema
	again := build(t, v2)
	if err := again.restore(evolved.Operator.(KeyedStateful).Schemas(), evolved.groups(t)); err != nil {
		t.Fatal(err)
	}
	again.put(t, 7)
	again.expect(t, record[string]{1, "{[n7 n7 new new] 4 1}"})
}

// fromWire gives the words of one batch that came over the wire: their strings are parts of one text.
func fromWire(t *testing.T, words ...string) (values []string, inText func(string) bool) {
	t.Helper()
	e := newEdge[string](t)
	data := must(e.Encode(nil, &batch[string]{times: make([]Timestamp, len(words)), values: slices.Clone(words)}))(t)
	values = must(e.Decode(data))(t).(*batch[string]).values
	start, last := uintptr(unsafe.Pointer(unsafe.StringData(values[0]))), values[len(values)-1]
	end := uintptr(unsafe.Pointer(unsafe.StringData(last))) + uintptr(len(last))
	inText = func(s string) bool {
		p := uintptr(unsafe.Pointer(unsafe.StringData(s)))
		return len(s) > 0 && p >= start && p < end
	}
	if !inText(values[1]) || inText(strings.Clone(values[0])) {
		t.Fatal("the strings of a batch are no parts of one text: this test proves nothing")
	}
	return values, inText
}

type named struct {
	N    int
	Name string
	All  [2]string
}

func TestKeyedState_OwnsItsMemory(t *testing.T) {
	values, inText := fromWire(t, "first-word", "second-word", "another-word")
	check := func(what string, strings ...string) {
		t.Helper()
		for _, s := range strings {
			if inText(s) {
				t.Errorf("%s: %q is part of the batch's text", what, s)
			}
		}
	}

	reduce := build(t, func(s Stream[string]) Stream[string] {
		return Reduce(firstLetter(s), "latest", func(_, b string) string { return b }, EmitUpdates)
	})
	reduce.put(t, values...)
	table := reduce.Operator.(*aggregateOperator[string, string, string, string]).table
	if err := table.rows.Range(func(k, v string) error { check("reduce", k, v); return nil }); err != nil {
		t.Fatal(err)
	}

	text := NewValue[string, named]("text")
	list := NewValue[string, map[string][]*string]("list")
	process := build(t, func(s Stream[string]) Stream[string] {
		return Process(byItself(s), "keep", func(c *Context[string], v string, _ func(string) error) error {
			text.Set(c, named{len(v), v, [2]string{v[1:], ""}})
			list.Set(c, map[string][]*string{v: {&v, nil}})
			return nil
		}, text, list)
	})
	process.put(t, values...)
	tables := process.Operator.(*processOperator[string, string, string]).ctx.tables
	n := 0
	err := errors.Join(
		tables[0].(*valueTable[string, named]).rows.Range(func(k string, v named) error {
			n++
			check("struct", k, v.Name, v.All[0])
			if v.Name != k || v.All[0] != k[1:] || v.N != len(k) {
				t.Errorf("key %s has %+v", k, v)
			}
			return nil
		}),
		tables[1].(*valueTable[string, map[string][]*string]).rows.Range(func(k string, v map[string][]*string) error {
			n++
			for inner, list := range v {
				check("map", inner, *list[0])
				if inner != k || *list[0] != k || list[1] != nil {
					t.Errorf("key %s has %v", k, v)
				}
			}
			return nil
		}))
	if err != nil || n != 6 {
		t.Errorf("%d entries seen: %v", n, err)
	}
}
