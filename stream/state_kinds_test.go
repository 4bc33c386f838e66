package stream

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream/codec"
)

// driven is an operator that does with its states what a test says.
type driven struct {
	*keyedOperator[int, int]
	in Collector[int]
	do func(c *Context[int])
}

func drive(t *testing.T, groups job.KeyGroupRange, states ...State[int]) *driven {
	t.Helper()
	d := &driven{}
	j := NewJob("test", nil)
	s := Process(byItself(From(j, "source", nowhere[int]{})), "op", func(c *Context[int], _ int, _ func(int) error) error {
		d.do(c)
		return nil
	}, states...)
	if err := j.Err(); err != nil {
		t.Fatal(err)
	}
	env := testEnv("op")
	env.KeyGroups = groups
	link := must(s.node.Build(env, []any{Collector[int](&collecting[int]{})}))(t)
	d.in, d.keyedOperator = link.In.(Collector[int]), link.Operator.(*processOperator[int, int, int]).keyedOperator
	return d
}

// at calls do as the operator does it for a record of key.
func (d *driven) at(t *testing.T, key int, do func(c *Context[int])) {
	t.Helper()
	d.do = do
	if err := d.in.Collect(1, key); err != nil {
		t.Fatal(err)
	}
}

func allGroups() job.KeyGroupRange { return job.KeyGroupRange{End: testMaxParallelism} }

// mean is an aggregator whose input, accumulator and result have three types. Its accumulator begins with one unit in Started.
type mean struct{}

type meanAcc struct {
	Sum     int64
	Count   int32
	Started uint8
}

func (mean) New() meanAcc { return meanAcc{Started: 1} }
func (mean) Add(acc meanAcc, v int) meanAcc {
	return meanAcc{acc.Sum + int64(v), acc.Count + 1, acc.Started}
}

func (mean) Result(key int, acc meanAcc) string {
	return fmt.Sprintf("%d of %d: %d/%d", acc.Started, key, acc.Sum, acc.Count)
}

func join(a, b string) string { return a + b }

func TestReducing_CombinesInOrder(t *testing.T) {
	s := NewReducing[int]("text", join)
	d := drive(t, allGroups(), s)
	for i, key := range []int{1, 2, 1, 1} {
		d.at(t, key, func(c *Context[int]) { s.Add(c, fmt.Sprint(i)) })
	}
	for key, want := range map[int]string{1: "023 true", 2: "1 true", 3: " false"} {
		d.at(t, key, func(c *Context[int]) {
			if v, ok := s.Get(c); fmt.Sprint(v, " ", ok) != want {
				t.Errorf("key %d has %q, %v, want %s", key, v, ok, want)
			}
		})
	}
	d.at(t, 1, func(c *Context[int]) {
		s.Clear(c)
		s.Add(c, "new")
		if v, _ := s.Get(c); v != "new" {
			t.Errorf("got %q after Clear", v)
		}
	})
}

func TestAggregating_StartsWithNewAndShowsTheResult(t *testing.T) {
	s := NewAggregating[int, int]("mean", mean{})
	d := drive(t, allGroups(), s)
	for i := range 3 {
		d.at(t, 7, func(c *Context[int]) { s.Add(c, 10*i) })
	}
	d.at(t, 7, func(c *Context[int]) {
		if v, ok := s.Get(c); v != "1 of 7: 30/3" || !ok {
			t.Errorf("got %q, %v", v, ok)
		}
		s.Clear(c)
		if v, ok := s.Get(c); v != "" || ok {
			t.Errorf("got %q, %v after Clear", v, ok)
		}
		s.Add(c, 5)
		if v, _ := s.Get(c); v != "1 of 7: 5/1" {
			t.Errorf("got %q after Clear and Add", v)
		}
	})
}

// kinds is an operator with states of every kind. Elements of boxes might be changed by user code, so their snapshots are encoded at once.
type kinds struct {
	*driven
	value *Value[int, string]
	text  *Reducing[int, string]
	mean  *Aggregating[int, int, meanAcc, string]
	words *List[int, string]
	flags *List[int, bool] // neighbours in one word of memory
	boxes *List[int, []int]
}

func newKinds(t *testing.T, groups job.KeyGroupRange) *kinds {
	t.Helper()
	k := &kinds{
		value: NewValue[int, string]("value"), text: NewReducing[int]("text", join), mean: NewAggregating[int, int]("mean", mean{}),
		words: NewList[int, string]("words"), flags: NewList[int, bool]("flags"), boxes: NewList[int, []int]("boxes"),
	}
	k.driven = drive(t, groups, k.value, k.text, k.mean, k.words, k.flags, k.boxes)
	return k
}

// row is what the twin of kinds has for a key.
type row struct {
	value, text string
	sum, count  int
	words       []string
	flags       []bool
	boxes       [][]int
}

func (r row) String() string {
	result := ""
	if r.count > 0 {
		result = fmt.Sprintf(": %d/%d", r.sum, r.count)
	}
	return fmt.Sprintf("%q %q %q %q %v %v", r.value, r.text, result, r.words, r.flags, r.boxes)
}

func (k *kinds) show(c *Context[int]) string {
	value, _ := k.value.Get(c)
	text, _ := k.text.Get(c)
	result, _ := k.mean.Get(c)
	result = strings.TrimPrefix(result, fmt.Sprintf("1 of %d", c.Key()))
	return fmt.Sprintf("%q %q %q %q %v %v", value, text, result,
		slices.Collect(k.words.All(c)), slices.Collect(k.flags.All(c)), slices.Collect(k.boxes.All(c)))
}

// step does something random to a key of k and to its twin.
func (k *kinds) step(c *Context[int], r row, rng *rand.Rand) row {
	n := rng.IntN(100)
	switch what := rng.IntN(24); what {
	case 0, 1:
		r.value = fmt.Sprint("v", n)
		k.value.Set(c, r.value)
	case 2:
		r.value = ""
		k.value.Clear(c)
	case 3, 4, 5:
		r.text += fmt.Sprint(n, ",")
		k.text.Add(c, fmt.Sprint(n, ","))
	case 6:
		r.text = ""
		k.text.Clear(c)
	case 7, 8, 9:
		r.sum, r.count = r.sum+n, r.count+1
		k.mean.Add(c, n)
	case 10:
		r.sum, r.count = 0, 0
		k.mean.Clear(c)
	case 11, 12, 13, 14:
		r.words = append(slices.Clone(r.words), fmt.Sprint(n))
		k.words.Append(c, fmt.Sprint(n))
	case 15:
		r.words = slices.Clone(r.words[:len(r.words)/2])
		k.words.Set(c, r.words)
	case 16:
		r.words = nil
		k.words.Clear(c)
	case 17, 18, 19, 20:
		r.flags = append(slices.Clone(r.flags), n%2 == 0)
		k.flags.Append(c, n%2 == 0)
	case 21:
		r.flags = slices.Clone(r.flags[len(r.flags)/3:])
		k.flags.Set(c, r.flags)
	default:
		r.boxes = append(slices.Clone(r.boxes), []int{n, what})
		k.boxes.Append(c, []int{n, what})
	}
	return r
}

// moment is a snapshot with what it must hold.
type moment struct {
	snap  KeyedSnapshot
	twin  map[int]row
	data  map[int][]byte // by key group
	fault error
}

func (m *moment) encode() {
	defer m.snap.Release()
	for g := range testMaxParallelism {
		if m.data[g], m.fault = m.snap.AppendGroup(nil, g); m.fault != nil {
			return
		}
	}
}

// restored gives the snapshot to as many subtasks and compares what they have with the twin.
func (m *moment) restored(t *testing.T, written []StateSchema, parallelism int) {
	t.Helper()
	if m.fault != nil {
		t.Fatal(m.fault)
	}
	left := maps.Clone(m.twin)
	for i := range parallelism {
		groups := job.KeyGroups(i, parallelism, testMaxParallelism)
		k := newKinds(t, groups)
		for g := groups.Start; g < groups.End; g++ {
			if err := k.RestoreGroup(g, written, m.data[g]); err != nil {
				t.Fatal(err)
			}
		}
		for key, r := range m.twin {
			if !groups.Contains(job.KeyGroupOf(k.ctx.hasher(key), testMaxParallelism)) {
				continue
			}
			delete(left, key)
			k.at(t, key, func(c *Context[int]) {
				if got := k.show(c); got != r.String() {
					t.Errorf("key %d at parallelism %d:\n got %s\nwant %s", key, parallelism, got, r)
				}
			})
		}
	}
	if len(left) != 0 {
		t.Errorf("no subtask of %d has the keys %v", parallelism, slices.Sorted(maps.Keys(left)))
	}
}

// Half of the snapshots are encoded beside the operator, for the race detector; the others only at the end, when most has changed.
func TestKinds_RandomOperations_SnapshotsHoldTheirMomentAtAnyParallelism(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	k, twin := newKinds(t, allGroups()), map[int]row{}
	var moments []*moment
	var readers sync.WaitGroup
	for round := range 40 {
		m := &moment{snap: must(k.SnapshotKeyed())(t), twin: maps.Clone(twin), data: map[int][]byte{}}
		moments = append(moments, m)
		if round%2 == 0 {
			readers.Go(m.encode)
		}
		for range 500 {
			key := rng.IntN(60)
			k.at(t, key, func(c *Context[int]) { twin[key] = k.step(c, twin[key], rng) })
		}
	}
	readers.Wait()
	for key, r := range twin {
		k.at(t, key, func(c *Context[int]) {
			if got := k.show(c); got != r.String() {
				t.Errorf("key %d:\n got %s\nwant %s", key, got, r)
			}
		})
	}
	for i, m := range moments {
		if i%2 != 0 {
			m.encode()
		}
		m.restored(t, k.Schemas(), 1+i%3)
	}
}

func TestKinds_StateOfAnotherKind_IsRefused(t *testing.T) {
	declare := map[string]func() State[int]{
		"value":       func() State[int] { return NewValue[int, int64]("s") },
		"reducing":    func() State[int] { return NewReducing[int]("s", func(a, b int64) int64 { return a + b }) },
		"aggregating": func() State[int] { return NewAggregating[int, int64]("s", sums{}) },
		"list":        func() State[int] { return NewList[int, int64]("s") },
	}
	for was, old := range declare {
		schemas := drive(t, allGroups(), old()).Schemas()
		if want := (StateSchema{Name: "s", Kind: was, KeyType: "int64", ValueType: "int64"}); schemas[0] != want {
			t.Errorf("a state of kind %s is shown as %+v", was, schemas[0])
		}
		for is, declared := range declare {
			d := drive(t, allGroups(), declared())
			restore, check := d.RestoreGroup(0, schemas, []byte{0}), d.CheckStates(schemas)
			if was == is {
				if restore != nil || check != nil {
					t.Errorf("%s again: %v, %v", is, restore, check)
				}
				continue
			}
			if !IsPermanent(restore) || !strings.Contains(fmt.Sprint(restore), "operator op") {
				t.Errorf("%s as %s: the restore says %v, want a permanent error with the operator's name", was, is, restore)
			}
			for _, err := range []error{restore, check} {
				for _, want := range []string{`state "s"`, fmt.Sprintf("written as a state of kind %q", was), fmt.Sprintf("declared as one of kind %q", is)} {
					if !strings.Contains(fmt.Sprint(err), want) {
						t.Errorf("%s as %s: got %v, want %s", was, is, err, want)
					}
				}
			}
		}
	}
}

// sums has one type for all that it knows of.
type sums struct{}

func (sums) New() int64                  { return 0 }
func (sums) Add(acc, v int64) int64      { return acc + v }
func (sums) Result(_ int, a int64) int64 { return a }

// longer keeps the longer text, in two versions of its type.
type (
	textV1 struct {
		Text string
		Size uint8
	}
	textV2 struct {
		Added float64
		Size  uint32
		Text  string
	}
)

func TestKinds_TypesMayEvolve(t *testing.T) {
	oldText := NewReducing[int]("text", func(a, b textV1) textV1 { return textV1{a.Text + b.Text, a.Size + b.Size} })
	oldList, oldNumbers := NewList[int, textV1]("list"), NewList[int, uint16]("numbers")
	old := drive(t, allGroups(), oldText, oldList, oldNumbers)
	for _, w := range []string{"a", "bc"} {
		old.at(t, 3, func(c *Context[int]) {
			oldText.Add(c, textV1{w, uint8(len(w))})
			oldList.Append(c, textV1{w, uint8(len(w))})
			oldNumbers.Append(c, uint16(w[0]))
		})
	}
	m := &moment{snap: must(old.SnapshotKeyed())(t), data: map[int][]byte{}}
	m.encode()

	text := NewReducing[int]("text", func(a, b textV2) textV2 { return textV2{1, a.Size + b.Size, a.Text + b.Text} })
	list, numbers := NewList[int, textV2]("list"), NewList[int, uint64]("numbers")
	d := drive(t, allGroups(), text, list, numbers)
	if err := d.CheckStates(old.Schemas()); err != nil {
		t.Fatal(err)
	}
	for g, data := range m.data {
		if err := d.RestoreGroup(g, old.Schemas(), data); err != nil {
			t.Fatal(err)
		}
	}
	d.at(t, 3, func(c *Context[int]) {
		text.Add(c, textV2{Size: 1000, Text: "!"})
		list.Append(c, textV2{0.5, 1000, "!"})
		numbers.Append(c, 100_000)
		v, _ := text.Get(c)
		got := fmt.Sprint(v, slices.Collect(list.All(c)), slices.Collect(numbers.All(c)))
		if want := "{1 1003 abc!} [{0 1 a} {0 2 bc} {0.5 1000 !}] [97 98 100000]"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})

	narrow := drive(t, allGroups(), NewReducing[int]("text", func(a, _ textV1) textV1 { return a }), NewList[int, textV1]("list"), NewList[int, byte]("numbers"))
	for i, want := range []string{`state "text": value: `, `state "list": value: element: `, `state "numbers": value: element: `} {
		if err := narrow.CheckStates(d.Schemas()[i : i+1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestKinds_DeclarationsThatCannotBe_AreRefused(t *testing.T) {
	twice := NewList[int, int]("twice")
	for want, states := range map[string][]State[int]{
		`state "f" of operator op: it has no function`:    {NewReducing[int, int]("f", nil)},
		`state "a" of operator op: it has no aggregator`:  {NewAggregating[int, int, int, int]("a", nil)},
		`state "l" of operator op: codec of`:              {NewList[int, func()]("l")},
		`a state of operator op has no name`:              {NewList[int, int]("")},
		`two states of operator op have the name "twice"`: {twice, twice},
	} {
		j := NewJob("test", nil)
		Process(byItself(From(j, "source", nowhere[int]{})), "op", func(*Context[int], int, func(int) error) error { return nil }, states...)
		if err := j.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Two states of the same types stand at the same place of two operators.
func TestKinds_StateOfAnotherOperator_SaysSo(t *testing.T) {
	mine, others := NewValue[int, int]("mine"), NewReducing[int]("others", func(a, b int) int { return a + b })
	d := drive(t, allGroups(), mine)
	drive(t, allGroups(), others)
	defer func() {
		if r := fmt.Sprint(recover()); !strings.Contains(r, `state "others" is not a state of the operator`) {
			t.Errorf("got %v", r)
		}
	}()
	d.at(t, 1, func(c *Context[int]) { others.Add(c, 1) })
	t.Error("a state of another operator was used")
}

// What a state is written as can be read without its Go types: by kind and types in its schema, as tools do.
func TestSchemas_SayHowStateIsRead(t *testing.T) {
	list, sum := NewList[int, string]("list"), NewReducing[int]("sum", func(a, b int64) int64 { return a + b })
	d := drive(t, allGroups(), list, sum)
	d.at(t, 5, func(c *Context[int]) {
		list.Append(c, "a")
		list.Append(c, "b")
		sum.Add(c, 3)
		sum.Add(c, 4)
	})
	snap := must(d.SnapshotKeyed())(t)
	defer snap.Release()
	data := must(snap.AppendGroup(nil, job.KeyGroupOf(d.ctx.hasher(5), testMaxParallelism)))(t)
	for i, want := range []string{`5 ["a","b"]`, "5 7"} {
		s := d.Schemas()[i]
		if s.Kind == kindList {
			s.ValueType = "[]" + s.ValueType
		}
		if data[0] != 1 {
			t.Fatalf("%d entries, want 1", data[0])
		}
		key, rest, err := must(codec.NewDynamic(s.KeyType))(t).JSON(data[1:])
		if err != nil {
			t.Fatal(err)
		}
		value, rest, err := must(codec.NewDynamic(s.ValueType))(t).JSON(rest)
		if got := string(key) + " " + string(value); err != nil || got != want {
			t.Errorf("state %s: %s, %v, want %s", s.Name, got, err, want)
		}
		data = rest
	}
	if len(data) > 0 {
		t.Errorf("%d bytes are left over", len(data))
	}
}
