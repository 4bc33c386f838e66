package stream

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Three versions of what is stored: the rules of schemas do not lead from one to the next.
type (
	priceV1 struct{ Cents int64 }
	priceV2 struct {
		Amount   string
		Currency string
	}
	priceV3 struct {
		Units, Nanos int64
		Currency     string
		Source       string
	}
)

func priceToV2(p priceV1) priceV2 {
	return priceV2{fmt.Sprintf("%d.%02d", p.Cents/100, p.Cents%100), "EUR"}
}

func priceToV3(p priceV2) (priceV3, error) {
	units, nanos, _ := strings.Cut(p.Amount, ".")
	u, err := strconv.ParseInt(units, 10, 64)
	if err != nil {
		return priceV3{}, fmt.Errorf("amount %q is no number", p.Amount)
	}
	n, _ := strconv.ParseInt(nanos, 10, 64)
	return priceV3{Units: u, Nanos: n * 1e7, Currency: p.Currency}, nil
}

// handOver gives what the operator of from has stored to that of to, as a restore does.
func (d *driven) handOver(t *testing.T, to *driven) error {
	t.Helper()
	snap := must(d.SnapshotKeyed())(t)
	defer snap.Release()
	for g := range testMaxParallelism {
		if err := to.RestoreGroup(g, d.Schemas(), must(snap.AppendGroup(nil, g))(t)); err != nil {
			return err
		}
	}
	return nil
}

func TestMigrate_ChainOverVersions_ChoosesBySchema(t *testing.T) {
	today := func() *Value[int, priceV3] {
		return NewValue[int, priceV3]("price").Migrate(Migrate(priceToV2), TryMigrate(priceToV3))
	}
	v1, v2, v3 := NewValue[int, priceV1]("price"), NewValue[int, priceV2]("price"), NewValue[int, priceV3]("price")
	for what, c := range map[string]struct {
		old  *driven
		set  func(c *Context[int])
		want priceV3
	}{
		"first":  {drive(t, allGroups(), v1), func(c *Context[int]) { v1.Set(c, priceV1{1250}) }, priceV3{12, 5e8, "EUR", ""}},
		"second": {drive(t, allGroups(), v2), func(c *Context[int]) { v2.Set(c, priceV2{"7.25", "USD"}) }, priceV3{7, 25e7, "USD", ""}},
		"today":  {drive(t, allGroups(), v3), func(c *Context[int]) { v3.Set(c, priceV3{1, 2, "CHF", "x"}) }, priceV3{1, 2, "CHF", "x"}},
	} {
		c.old.at(t, 5, c.set)
		s := today()
		d := drive(t, allGroups(), s)
		if err := errors.Join(d.CheckStates(c.old.Schemas()), c.old.handOver(t, d)); err != nil {
			t.Errorf("%s version: %v", what, err)
			continue
		}
		d.at(t, 5, func(ctx *Context[int]) {
			if v, ok := s.Get(ctx); v != c.want || !ok {
				t.Errorf("%s version became %+v, %v, want %+v", what, v, ok, c.want)
			}
		})
	}
}

// TestFault_B89_AfterAMigrationTheNewTypeIsWrittenEverywhere changes the type of every kind of state, restores, updates some keys and leaves others
// alone, snapshots, and restores the result without any migration.
func TestFault_B89_AfterAMigrationTheNewTypeIsWrittenEverywhere(t *testing.T) {
	type oldAcc struct{ Sum string }
	longer := func(old int32) string { return strconv.Itoa(int(old)) }
	value1, reducing1 := NewValue[int, int32]("value"), NewReducing[int]("reducing", func(a, b int32) int32 { return a + b })
	agg1, list1 := NewAggregating[int]("agg", summing[oldAcc]{func(a oldAcc, v int) oldAcc { return oldAcc{a.Sum + "+" + strconv.Itoa(v)} }}), NewList[int, int32]("list")
	old := drive(t, allGroups(), value1, reducing1, agg1, list1)
	for key := range 40 {
		old.at(t, key, func(c *Context[int]) {
			value1.Set(c, int32(key))
			reducing1.Add(c, int32(key))
			agg1.Add(c, key)
			list1.Append(c, int32(key))
			list1.Append(c, int32(-key))
		})
	}
	declare := func() (*Value[int, string], *Reducing[int, string], *Aggregating[int, int, int64, int64], *List[int, string]) {
		return NewValue[int, string]("value"), NewReducing[int]("reducing", join),
			NewAggregating[int]("agg", summing[int64]{func(a int64, v int) int64 { return a + int64(v) }}), NewList[int, string]("list")
	}
	value2, reducing2, agg2, list2 := declare()
	value2.Migrate(Migrate(longer))
	reducing2.Migrate(Migrate(longer))
	agg2.Migrate(TryMigrate(func(a oldAcc) (int64, error) { return strconv.ParseInt(strings.TrimPrefix(a.Sum, "+"), 10, 64) }))
	list2.Migrate(Migrate(longer))
	migrated := drive(t, allGroups(), value2, reducing2, agg2, list2)
	if err := old.handOver(t, migrated); err != nil {
		t.Fatal(err)
	}
	for key := range 20 { // the others are written as they were restored
		migrated.at(t, key, func(c *Context[int]) {
			v, _ := value2.Get(c)
			value2.Set(c, v+"!")
			reducing2.Add(c, "!")
			agg2.Add(c, 1000)
			list2.Append(c, "!")
		})
	}
	value3, reducing3, agg3, list3 := declare()
	again := drive(t, allGroups(), value3, reducing3, agg3, list3)
	if err := migrated.handOver(t, again); err != nil {
		t.Fatal(err)
	}
	for key := range 40 {
		mark, more, list := "", int64(0), []string{strconv.Itoa(key), strconv.Itoa(-key)}
		if key < 20 {
			mark, more, list = "!", 1000, append(list, "!")
		}
		again.at(t, key, func(c *Context[int]) {
			v, _ := value3.Get(c)
			r, _ := reducing3.Get(c)
			a, _ := agg3.Get(c)
			l := slices.Collect(list3.All(c))
			if want := strconv.Itoa(key) + mark; v != want || r != want || a != int64(key)+more || !slices.Equal(l, list) {
				t.Errorf("key %d has %q, %q, %d, %q", key, v, r, a, l)
			}
		})
	}
}

// lengths counts the bytes of words. Version 1 kept the words themselves.
type lengths struct{ old []Migration }

func (lengths) New() int64                     { return 0 }
func (lengths) Add(acc int64, v string) int64  { return acc + int64(len(v)) }
func (lengths) Result(_ string, acc int64) int { return int(acc) }
func (l lengths) Migrations() []Migration      { return l.old }

func TestAggregate_AccumulatorsMigrate(t *testing.T) {
	old := build(t, func(s Stream[string]) Stream[string] {
		return Aggregate(firstLetter(s), "op", joined{}, EmitUpdates)
	})
	old.put(t, "ab", "axy", "b")
	today := build(t, func(s Stream[string]) Stream[int] {
		return Aggregate(firstLetter(s), "op", lengths{[]Migration{Migrate(func(words string) int64 { return int64(len(words) - 1) })}}, EmitUpdates)
	})
	if err := today.restore(old.Operator.(KeyedStateful).Schemas(), old.groups(t)); err != nil {
		t.Fatal(err)
	}
	today.put(t, "a", "bcd")
	today.expect(t, record[int]{1, 6}, record[int]{2, 4})
}

// summing is an aggregator whose accumulator is its result.
type summing[A any] struct{ add func(A, int) A }

func (summing[A]) New() (a A)          { return a }
func (s summing[A]) Add(a A, v int) A  { return s.add(a, v) }
func (summing[A]) Result(_ int, a A) A { return a }

// TestMigrate_MapsAndWhatExpires takes maps, values and lists, with and without a time to live, over a change of their type.
func TestMigrate_MapsAndWhatExpires(t *testing.T) {
	longer := func(old int32) string { return "was " + strconv.Itoa(int(old)) }
	for _, c := range []struct{ before, after bool }{{false, false}, {true, true}, {false, true}, {true, false}} {
		map1, value1, list1 := NewMap[int, string, int32]("map"), NewValue[int, int32]("value"), NewList[int, int32]("list")
		if c.before {
			map1, value1, list1 = ExpiringMap(map1, time.Hour), ExpiringValue(value1, time.Hour), ExpiringList(list1, time.Hour)
		}
		old := drive(t, allGroups(), map1, value1, list1)
		old.at(t, 3, func(c *Context[int]) {
			map1.Put(c, "a", 1)
			map1.Put(c, "b", 2)
			value1.Set(c, 4)
			list1.Append(c, 5)
			list1.Append(c, 6)
		})
		today := func() (*MapState[int, string, string], *Value[int, string], *List[int, string]) {
			m, v, l := NewMap[int, string, string]("map"), NewValue[int, string]("value"), NewList[int, string]("list")
			if c.after {
				m, v, l = ExpiringMap(m, time.Hour), ExpiringValue(v, time.Hour), ExpiringList(l, time.Hour)
			}
			return m, v, l
		}
		map2, value2, list2 := today()
		map2.Migrate(Migrate(longer))
		value2.Migrate(Migrate(longer))
		list2.Migrate(Migrate(longer))
		d := drive(t, allGroups(), map2, value2, list2)
		if err := errors.Join(d.CheckStates(old.Schemas()), old.handOver(t, d)); err != nil {
			t.Fatal(err)
		}
		for _, s := range d.DescribeStates() {
			if !slices.Equal(s.Converts, []string{"int32"}) {
				t.Errorf("state %s says that it converts %q", s.Name, s.Converts)
			}
		}
		map3, value3, list3 := today()
		again := drive(t, allGroups(), map3, value3, list3)
		if err := d.handOver(t, again); err != nil {
			t.Fatal(err)
		}
		again.at(t, 3, func(c *Context[int]) {
			a, _ := map3.Get(c, "a")
			b, _ := map3.Get(c, "b")
			v, _ := value3.Get(c)
			if got := fmt.Sprint(a, ", ", b, ", ", v, ", ", slices.Collect(list3.All(c))); got != "was 1, was 2, was 4, [was 5 was 6]" {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestMigrate_RulesComeBeforeOldTypesThatOnlyAlmostFit(t *testing.T) {
	type v0 struct{ A, B int64 }
	type v1 struct{ A int64 }
	type v2 struct{ A string }
	// What was written with v0 is none of the types of today, and v1 reads it by the rules.
	before := NewValue[int, v0]("s")
	old := drive(t, allGroups(), before)
	old.at(t, 1, func(c *Context[int]) { before.Set(c, v0{7, 8}) })
	s := NewValue[int, v2]("s").Migrate(Migrate(func(o v1) v2 { return v2{fmt.Sprint("migrated ", o.A)} }))
	d := drive(t, allGroups(), s)
	if err := old.handOver(t, d); err != nil {
		t.Fatal(err)
	}
	d.at(t, 1, func(c *Context[int]) {
		if v, _ := s.Get(c); v.A != "migrated 7" {
			t.Errorf("got %q", v.A)
		}
	})
	// Today's type reads it by the rules, and so no migration is asked that is not for exactly this schema.
	type v3 struct {
		A int64
		C string
	}
	wide := NewValue[int, v3]("s").Migrate(Migrate(func(v1) v3 { return v3{C: "migrated"} }))
	d = drive(t, allGroups(), wide)
	if err := old.handOver(t, d); err != nil {
		t.Fatal(err)
	}
	d.at(t, 1, func(c *Context[int]) {
		if v, _ := wide.Get(c); v != (v3{A: 7}) {
			t.Errorf("got %+v", v)
		}
	})
}

func TestMigrate_IncompatibleStateIsRefusedWithOperatorStateAndSchemas(t *testing.T) {
	before := NewValue[int, bool]("flag")
	old := drive(t, allGroups(), before)
	old.at(t, 1, func(c *Context[int]) { before.Set(c, true) })
	for _, s := range []State[int]{
		NewValue[int, priceV3]("flag"),
		NewValue[int, priceV3]("flag").Migrate(Migrate(priceToV2), TryMigrate(priceToV3)),
	} {
		d := drive(t, allGroups(), s)
		for what, err := range map[string]error{"restore": old.handOver(t, d), "check": d.CheckStates(old.Schemas())} {
			if err == nil {
				t.Errorf("%s: accepted", what)
				continue
			}
			for _, part := range []string{`"flag"`, `"bool"`, `"struct{Units:int64,Nanos:int64,Currency:string,Source:string}"`} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %v does not say %s", what, err, part)
				}
			}
			if what == "restore" && (!strings.Contains(err.Error(), "operator op") || !IsPermanent(err)) {
				t.Errorf("restore: %v names no operator, or may be tried again", err)
			}
		}
	}
}

func TestMigrate_ValueThatCannotBeConverted_FailsTheRestore(t *testing.T) {
	before := NewValue[int, priceV2]("price")
	old := drive(t, allGroups(), before)
	old.at(t, 1, func(c *Context[int]) { before.Set(c, priceV2{"many", "EUR"}) })
	d := drive(t, allGroups(), NewValue[int, priceV3]("price").Migrate(TryMigrate(priceToV3)))
	if err := old.handOver(t, d); err == nil || !strings.Contains(err.Error(), `decode value of key 1: migrate stream.priceV2 to stream.priceV3: amount "many" is no number`) {
		t.Error(err)
	}
}

func TestMigrate_MistakesOfTheDefinition(t *testing.T) {
	type sameAsV1 struct{ Cents int64 }
	for want, s := range map[string]State[int]{
		"no migration leads from there to stream.priceV3": NewValue[int, priceV3]("s").Migrate(Migrate(priceToV2)),
		"cannot be told apart":                            NewValue[int, priceV1]("s").Migrate(Migrate(func(s sameAsV1) priceV1 { return priceV1(s) })),
		`schema "struct{Cents:int64}" too`:                NewList[int, priceV2]("s").Migrate(Migrate(priceToV2), Migrate(func(sameAsV1) priceV2 { return priceV2{} })),
		"it has no function":                              NewValue[int, priceV2]("s").Migrate(Migrate[priceV1, priceV2](nil)),
		"func() is of type func(), which has no encoding": NewValue[int, priceV2]("s").Migrate(Migrate(func(func()) priceV2 { return priceV2{} })),
		"no migration leads from there to string":         NewValue[int, string]("s").Migrate(Migrate(priceToV2), Migrate(func(priceV2) priceV1 { return priceV1{} })),
	} {
		j := NewJob("test", nil)
		Process(byItself(From(j, "source", nowhere[int]{})), "op", func(*Context[int], int, func(int) error) error { return nil }, s)
		if err := j.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestMigrate_ListsKeepTheirElementsAndOrder(t *testing.T) {
	before := NewList[int, uint8]("list") // elements of a byte are written as one piece
	old := drive(t, allGroups(), before)
	old.at(t, 1, func(c *Context[int]) { before.Set(c, []uint8{3, 1, 2}) })
	s := NewList[int, string]("list").Migrate(Migrate(func(v uint8) string { return strconv.Itoa(int(v)) }))
	d := drive(t, allGroups(), s)
	if err := old.handOver(t, d); err != nil {
		t.Fatal(err)
	}
	d.at(t, 1, func(c *Context[int]) {
		if got := slices.Collect(s.All(c)); !reflect.DeepEqual(got, []string{"3", "1", "2"}) {
			t.Errorf("got %q", got)
		}
	})
}
