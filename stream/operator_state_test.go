package stream

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/job"
)

// lists snapshots operator states, by name: the encoded items.
func lists(t *testing.T, op Operator) (schemas []ListSnapshot, items map[string][][]byte) {
	t.Helper()
	all := must(op.(ListsStateful).SnapshotLists())(t)
	items = map[string][][]byte{}
	for _, s := range all {
		for i := range s.Len {
			items[s.Schema.Name] = append(items[s.Schema.Name], must(s.Append(nil, i))(t))
		}
	}
	return all, items
}

// handLists restores the operator states of one operator into another.
func handLists(t *testing.T, from, to Operator) error {
	t.Helper()
	schemas, items := lists(t, from)
	for _, s := range schemas {
		if err := to.(ListsStateful).RestoreList(s.Schema, s.Mode, items[s.Schema.Name]); err != nil {
			return err
		}
	}
	return nil
}

// lastTwo emits each record behind the two before it, which it remembers in list state.
func lastTwo(s Stream[int]) Stream[string] {
	recent := NewListState[int]("recent")
	return ProcessStream(s, "op", ProcessFunction[int, string]{
		Open: func(c *OperatorContext) error {
			if recent.Len(c) > 2 {
				return errors.New("too many")
			}
			return nil
		},
		Process: func(c *OperatorContext, v int, emit func(string) error) error {
			before := slices.Collect(recent.All(c))
			recent.Append(c, v)
			if recent.Len(c) > 2 {
				recent.Set(c, slices.Collect(recent.All(c))[1:])
			}
			return emit(fmt.Sprint(before, v))
		},
		Finish: func(c *OperatorContext, emit func(string) error) error {
			defer recent.Clear(c)
			return emit(fmt.Sprint("end ", slices.Collect(recent.All(c))))
		},
	}, recent)
}

func TestProcessStream_ListStateSurvivesARestore(t *testing.T) {
	b := build(t, lastTwo)
	b.put(t, 1, 2, 3)
	b.expect(t, record[string]{1, "[] 1"}, record[string]{2, "[1] 2"}, record[string]{3, "[1 2] 3"})
	n := build(t, lastTwo)
	if err := handLists(t, b.Operator, n.Operator); err != nil {
		t.Fatal(err)
	}
	n.put(t, 4)
	if err := n.Operator.(Finisher).Finish(); err != nil {
		t.Fatal(err)
	}
	n.expect(t, record[string]{1, "[2 3] 4"}, record[string]{NoTimestamp, "end [3 4]"})
	if _, items := lists(t, n.Operator); len(items) != 0 {
		t.Errorf("after Clear it has %q", items)
	}
}

func TestProcessStream_ErrorsNameTheOperator(t *testing.T) {
	def := func(f ProcessFunction[int, int]) *built[int, int] {
		return build(t, func(s Stream[int]) Stream[int] { return ProcessStream(s, "op", f) })
	}
	no := errors.New("no")
	b := def(ProcessFunction[int, int]{
		Process: func(*OperatorContext, int, func(int) error) error { return no },
		Finish:  func(*OperatorContext, func(int) error) error { return no },
	})
	for _, err := range []error{b.in.Collect(1, 1), b.Operator.(Finisher).Finish()} {
		var named *OperatorError
		if !errors.As(err, &named) || named.Operator != "op" || !errors.Is(err, no) {
			t.Error(err)
		}
	}
}

// TestListState_OpenSnapshotSeesNoLaterChange encodes a snapshot when everything has changed since.
func TestListState_OpenSnapshotSeesNoLaterChange(t *testing.T) {
	s := NewListState[int]("s")
	b := build(t, func(in Stream[int]) Stream[int] {
		return ProcessStream(in, "op", ProcessFunction[int, int]{Process: func(c *OperatorContext, v int, _ func(int) error) error {
			switch {
			case v < 0:
				s.Clear(c)
			case v == 0:
				s.Set(c, []int{100, 200})
			default:
				s.Append(c, v)
			}
			return nil
		}}, s)
	})
	for _, c := range []struct {
		before, after []int
		want          string
	}{
		{[]int{1, 2, 3}, []int{4, 5, 6, 7}, "[1 2 3]"},
		{[]int{8}, []int{0, 9}, "[1 2 3 4 5 6 7 8]"},
		{nil, []int{-1, 10, 11, 12}, "[100 200 9]"},
	} {
		b.put(t, c.before...)
		snap := must(b.Operator.(ListsStateful).SnapshotLists())(t)[0]
		b.put(t, c.after...)
		var got []int
		for i := range snap.Len {
			v, rest, err := s.codec.Decode(must(snap.Append(nil, i))(t))
			if err != nil || len(rest) > 0 {
				t.Fatal(err, rest)
			}
			got = append(got, v)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("got %v, want %s", got, c.want)
		}
	}
}

// ruled multiplies by a factor that the broadcast stream sets for each word.
func ruled(rules *BroadcastState[string, int]) func(Stream[string], Stream[string]) Stream[string] {
	return func(main, side Stream[string]) Stream[string] {
		return ProcessBroadcast(main, side, "op", BroadcastFunction[string, string, string]{
			Process: func(_ *OperatorContext, b *ReadOnlyContext, v string, emit func(string) error) error {
				n, ok := rules.Get(b, v)
				return emit(fmt.Sprint(v, n, ok, rules.Len(b)))
			},
			Broadcast: func(c *BroadcastContext, v string, emit func(string) error) error {
				switch word, factor, set := strings.Cut(v, "="); {
				case v == "clear":
					rules.Clear(c)
				case set:
					n, err := strconv.Atoi(factor)
					if err != nil {
						return err
					}
					rules.Put(c, word, n)
				default:
					rules.Remove(c, word)
				}
				var all []string
				for k, n := range rules.All(c) {
					all = append(all, fmt.Sprint(k, n))
				}
				return emit(strings.Join(all, " "))
			},
		}, rules)
	}
}

// twoInputs is an operator with a main and a broadcast side that a test drives.
type twoInputs[T, B, R any] struct {
	Operator
	main Collector[T]
	side Collector[B]
	out  *collecting[R]
	node *Node
}

func buildTwo[T, B, R any](t *testing.T, def func(Stream[T], Stream[B]) Stream[R]) *twoInputs[T, B, R] {
	t.Helper()
	j := NewJob("test", nil)
	s := def(From(j, "main", nowhere[T]{}), From(j, "side", nowhere[B]{}))
	if err := j.Err(); err != nil {
		t.Fatal(err)
	}
	o := &twoInputs[T, B, R]{out: &collecting[R]{}, node: s.node}
	link := must(s.node.Build(testEnv("op"), []any{Collector[R](o.out)}))(t)
	o.Operator, o.main, o.side = link.Operator, link.Input(0).(Collector[T]), link.Input(1).(Collector[B])
	return o
}

func TestProcessBroadcast_MainSideSeesWhatTheBroadcastSideWrote(t *testing.T) {
	o := buildTwo(t, ruled(NewBroadcastState[string, int]("rules")))
	if in := o.node.Inputs; len(in) != 2 || in[1].Partitioning != job.Broadcast || in[0].From.ID != "main" {
		t.Errorf("inputs are %+v", in)
	}
	for _, step := range []struct{ side, main string }{
		{"", "b"}, {"b=2", "b"}, {"a=1", "b"}, {"c=3", "c"}, {"b=5", "b"}, {"a", "a"}, {"missing", "c"}, {"clear", "c"}, {"z=9", "z"},
	} {
		if step.side != "" {
			must(0, o.side.Collect(7, step.side))(t)
		}
		must(0, o.main.Collect(8, step.main))(t)
	}
	want := "[b0 false 0 b2 b2 true 1 a1 b2 b2 true 2 a1 b2 c3 c3 true 3 a1 b5 c3 b5 true 3 b5 c3 a0 false 2 b5 c3 c3 true 2  c0 false 0 z9 z9 true 1]"
	if got := fmt.Sprint(o.out.values()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestBroadcastState_SurvivesARestore_AndSnapshotsSeeNoLaterChange(t *testing.T) {
	o := buildTwo(t, ruled(NewBroadcastState[string, int]("rules")))
	for _, v := range []string{"b=2", "a=1", "longer=3"} {
		must(0, o.side.Collect(1, v))(t)
	}
	snap := must(o.Operator.(ListsStateful).SnapshotLists())(t)[0]
	for _, v := range []string{"b=20", "a", "new=4"} {
		must(0, o.side.Collect(1, v))(t)
	}
	n := buildTwo(t, ruled(NewBroadcastState[string, int]("rules")))
	var items [][]byte
	for i := range snap.Len {
		items = append(items, must(snap.Append(nil, i))(t))
	}
	if err := n.Operator.(ListsStateful).RestoreList(snap.Schema, snap.Mode, items); err != nil {
		t.Fatal(err)
	}
	must(0, n.side.Collect(1, "x=0"))(t)
	if got := n.out.values()[0]; got != "a1 b2 x0 longer3" {
		t.Errorf("got %q", got)
	}
	if err := n.Operator.(ListsStateful).RestoreList(snap.Schema, snap.Mode, items); err == nil || !strings.Contains(err.Error(), `operator op: restore state "rules": key a occurs twice`) {
		t.Errorf("entries that are there twice: %v", err)
	}
}

func TestProcessKeyedBroadcast_HasKeyedAndBroadcastState(t *testing.T) {
	def := func(main Stream[string], side Stream[int]) Stream[string] {
		count, add := NewValue[string, int]("count"), NewBroadcastState[string, int]("add")
		return ProcessKeyedBroadcast(byItself(main), side, "op", KeyedBroadcastFunction[string, string, int, string]{
			Process: func(c *Context[string], b *ReadOnlyContext, v string, emit func(string) error) error {
				n, _ := count.Get(c)
				more, _ := add.Get(b, "all")
				count.Set(c, n+1+more)
				return emit(fmt.Sprint(c.Key(), n+1+more))
			},
			Broadcast: func(c *BroadcastContext, v int, _ func(string) error) error { add.Put(c, "all", v); return nil },
		}, []State[string]{count}, add)
	}
	o := buildTwo(t, def)
	must(0, errors.Join(o.main.Collect(1, "a"), o.side.Collect(1, 10), o.main.Collect(1, "a"), o.main.Collect(1, "b")))(t)
	n := buildTwo(t, def)
	if err := handLists(t, o.Operator, n.Operator); err != nil {
		t.Fatal(err)
	}
	snap := must(o.Operator.(KeyedStateful).SnapshotKeyed())(t)
	for g := range testMaxParallelism {
		must(0, n.Operator.(KeyedStateful).RestoreGroup(g, o.Operator.(KeyedStateful).Schemas(), must(snap.AppendGroup(nil, g))(t)))(t)
	}
	must(0, n.main.Collect(1, "a"))(t)
	if got := fmt.Sprint(o.out.values(), n.out.values()); got != "[a1 a12 b11] [a23]" {
		t.Error(got)
	}
	var names []string
	for _, d := range n.Operator.(StateDescriber).DescribeStates() {
		names = append(names, fmt.Sprint(d.Name, " ", d.Kind, " ", d.Mode, " ", d.KeyType, " ", d.ValueType))
	}
	if fmt.Sprint(names) != "[count value unknown string int64 add broadcast broadcast string int64]" || !slices.Equal(n.node.States, []string{"count", "add"}) {
		t.Errorf("declares %q, %q", names, n.node.States)
	}
}

func listOp[E any](t *testing.T, s *ListState[E], put ...E) *built[int, int] {
	t.Helper()
	b := build(t, func(in Stream[int]) Stream[int] {
		return ProcessStream(in, "op", ProcessFunction[int, int]{Process: func(c *OperatorContext, v int, _ func(int) error) error {
			s.Append(c, put[v])
			return nil
		}}, s)
	})
	for i := range put {
		must(0, b.in.Collect(1, i))(t)
	}
	return b
}

func TestOperatorState_ElementsMayEvolveAndMigrate(t *testing.T) {
	old := listOp(t, NewListState[int8]("s"), 1, -2)
	wide := listOp(t, NewListState[int64]("s"))
	text := listOp(t, NewListState[string]("s").Migrate(Migrate(func(v int8) string { return fmt.Sprint("was ", v) })))
	if err := errors.Join(handLists(t, old.Operator, wide.Operator), handLists(t, old.Operator, text.Operator)); err != nil {
		t.Fatal(err)
	}
	_, a := lists(t, wide.Operator)
	_, b := lists(t, text.Operator)
	if got := fmt.Sprintf("%x %q", a["s"], b["s"]); got != `[02 03] ["\x05was 1" "\x06was -2"]` {
		t.Error(got)
	}
}

func TestOperatorState_WhatCannotBeRestoredIsRefusedAndChecked(t *testing.T) {
	old := listOp(t, NewListState[string]("s"), "x")
	for want, op := range map[string]*built[int, int]{
		`read "string" as "int64"`: listOp(t, NewListState[int]("s")),
		`it was written as a split state of kind "operator-list" and is declared as a union one`: listOp(t, NewUnionListState[string]("s")),
		`the checkpoint has a state "s" that the operator no longer declares`:                    listOp(t, NewListState[string]("other")),
	} {
		err := handLists(t, old.Operator, op.Operator)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `operator op: restore state "s": `) || !IsPermanent(err) {
			t.Errorf("restore: %v, want %s", err, want)
		}
		schemas, _ := lists(t, old.Operator)
		if err := op.Operator.(ListChecker).CheckList(schemas[0].Schema, schemas[0].Mode); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("check: %v, want %s", err, want)
		}
	}
}

func TestOperatorState_MistakesOfTheDefinition(t *testing.T) {
	process := ProcessFunction[int, int]{Process: func(*OperatorContext, int, func(int) error) error { return nil }}
	shared := NewListState[int]("shared")
	for want, def := range map[string]func(s Stream[int]){
		"operators with state need one that stays":         func(s Stream[int]) { ProcessStream(s, "", process, NewListState[int]("x")) },
		`two states of operator a have the name "x"`:       func(s Stream[int]) { ProcessStream(s, "a", process, NewListState[int]("x"), NewListState[string]("x")) },
		`declared for operator a and for b`:                func(s Stream[int]) { ProcessStream(ProcessStream(s, "a", process, shared), "b", process, shared) },
		"a state of operator a has no name":                func(s Stream[int]) { ProcessStream(s, "a", process, NewListState[int]("")) },
		"func() is of type func(), which has no encoding":  func(s Stream[int]) { ProcessStream(s, "a", process, NewListState[func()]("x")) },
		"which cannot be a key":                            func(s Stream[int]) { ProcessStream(s, "a", process, NewBroadcastState[float64, int]("x")) },
		"operator a has no function Process":               func(s Stream[int]) { ProcessStream(s, "a", ProcessFunction[int, int]{}) },
		"operator a needs both a function Process and a f": func(s Stream[int]) { ProcessBroadcast(s, s, "a", BroadcastFunction[int, int, int]{}) },
	} {
		j := NewJob("test", nil)
		def(From(j, "source", nowhere[int]{}))
		if err := j.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestOperatorState_ThatIsNotDeclaredSaysSo(t *testing.T) {
	s := NewListState[int]("elsewhere")
	b := build(t, func(in Stream[int]) Stream[int] {
		return ProcessStream(in, "op", ProcessFunction[int, int]{Process: func(c *OperatorContext, v int, _ func(int) error) error {
			s.Append(c, v)
			return nil
		}}, NewListState[int]("s"))
	})
	defer func() {
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), `state "elsewhere" is not a state of the operator that uses it`) {
			t.Error(r)
		}
	}()
	_ = b.in.Collect(1, 1)
}
