package stream

import (
	"strings"
	"testing"
	"time"
)

func TestTTL_TypesMayEvolveWithIt(t *testing.T) {
	old := drive(t, allGroups(), ExpiringValue(NewValue[int, uint8]("v"), testTTL), ExpiringList(NewList[int, uint8]("l"), testTTL))
	for _, err := range []error{
		drive(t, allGroups(), ExpiringValue(NewValue[int, uint64]("v"), testTTL), ExpiringList(NewList[int, uint64]("l"), testTTL)).CheckStates(old.Schemas()),
		drive(t, allGroups(), NewValue[int, uint64]("v"), NewList[int, uint64]("l")).CheckStates(old.Schemas()),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	for _, s := range []State[int]{
		NewValue[int, string]("v"), ExpiringValue(NewValue[int, string]("v"), testTTL), NewList[int, string]("l"), ExpiringList(NewList[int, string]("l"), testTTL),
	} {
		d := drive(t, allGroups(), s)
		for _, w := range old.Schemas() {
			if err := d.CheckStates([]StateSchema{w}); w.Name == s.name() && (err == nil || !strings.Contains(err.Error(), "value: ")) {
				t.Errorf("got %v", err)
			}
		}
	}
	if ttl := old.Schemas()[0].TTL; ttl != testTTL.Milliseconds() {
		t.Errorf("the schema says %d", ttl)
	}
}

func TestTTL_ThatIsTooShort_IsRefused(t *testing.T) {
	for _, s := range []State[int]{
		ExpiringValue(NewValue[int, int]("s"), 0), ExpiringList(NewList[int, int]("s"), -time.Hour),
		ExpiringMap(NewMap[int, int, int]("s"), time.Microsecond), ExpiringReducing(NewReducing[int]("s", func(a, _ int) int { return a }), 0),
	} {
		j := NewJob("test", nil)
		Process(byItself(From(j, "source", nowhere[int]{})), "op", func(*Context[int], int, func(int) error) error { return nil }, s)
		if err := j.Err(); err == nil || !strings.Contains(err.Error(), `state "s" of operator op: a time to live of `) {
			t.Errorf("got %v", err)
		}
	}
}

// What keeps a list with a time to live short is that each Append drops the oldest elements.
func TestTTL_OfAListThatGrowsForEver_TakesBoundedRoom(t *testing.T) {
	s := ExpiringList(NewList[int, int]("s"), testTTL)
	d := drive(t, allGroups(), s)
	for i := range 100_000 {
		d.env.Clock.Set(time.UnixMilli(int64(i)))
		d.at(t, 1, func(c *Context[int]) { s.Append(c, i) })
	}
	d.at(t, 1, func(c *Context[int]) {
		list, _ := s.expiring.(*timedList[int, int]).stored.table(c).rows.Get(c.hash, c.key)
		if s.Len(c) != 100 || cap(list) > 1000 {
			t.Errorf("%d elements in room for %d", s.Len(c), cap(list))
		}
	})
}
