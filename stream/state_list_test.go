package stream

import (
	"slices"
	"testing"
	"unsafe"
)

func TestList_KeepsOrder_AndIteratesOverItsMoment(t *testing.T) {
	s := NewList[int, string]("words")
	d := drive(t, allGroups(), s)
	expect := func(c *Context[int], want ...string) {
		t.Helper()
		if got := slices.Collect(s.All(c)); !slices.Equal(got, want) || s.Len(c) != len(want) {
			t.Errorf("key %d has %d: %q, want %q", c.Key(), s.Len(c), got, want)
		}
	}
	d.at(t, 1, func(c *Context[int]) {
		expect(c)
		s.Append(c, "a")
		s.Append(c, "b")
		expect(c, "a", "b")
		var seen []string
		for w := range s.All(c) {
			seen = append(seen, w)
			s.Append(c, w+w)
		}
		if !slices.Equal(seen, []string{"a", "b"}) {
			t.Errorf("an iterator saw %q", seen)
		}
		expect(c, "a", "b", "aa", "bb")
		for range s.All(c) {
			break
		}
	})
	d.at(t, 2, func(c *Context[int]) {
		mine := []string{"x", "y", "z"}
		s.Set(c, mine)
		all := s.All(c)
		mine[0] = "changed"
		s.Set(c, mine[:1])
		s.Append(c, "end")
		expect(c, "changed", "end")
		if got := slices.Collect(all); !slices.Equal(got, []string{"x", "y", "z"}) {
			t.Errorf("an iterator from before Set saw %q", got)
		}
		s.Set(c, nil)
		expect(c)
	})
	d.at(t, 1, func(c *Context[int]) { s.Clear(c); expect(c) })
	if n := entries(t, s.table(&d.ctx).rows); n != 0 {
		t.Errorf("%d keys are left, though none has elements", n)
	}
}

// A list that is copied whenever a snapshot is open, or grows by a constant, has thousands of arrays here.
func TestList_Append_IsAmortisedWhileSnapshotsAreOpen(t *testing.T) {
	if onDisk.state != nil {
		t.Skip("on disk each snapshot writes a list whole, and there is one for each element here")
	}
	const elements = 50_000
	s := NewList[int, int]("numbers")
	d := drive(t, allGroups(), s)
	arrays := 0
	var last *int
	for i := range elements {
		if i%10 == 0 {
			snap := must(d.SnapshotKeyed())(t)
			defer snap.Release()
		}
		d.at(t, 1, func(c *Context[int]) { s.Append(c, i) })
		list, _ := s.table(&d.ctx).rows.Get(d.ctx.hash, 1)
		if first := unsafe.SliceData(list); first != last {
			last = first
			arrays++
		}
	}
	if arrays > 60 {
		t.Errorf("%d elements were moved %d times", elements, arrays)
	}
}

func TestList_OwnsItsMemory(t *testing.T) {
	words, inText := fromWire(t, "first-word", "second-word", "another-word")
	s := NewList[int, string]("words")
	boxes := NewList[int, *named]("boxes")
	d := drive(t, allGroups(), s, boxes)
	d.at(t, 1, func(c *Context[int]) {
		s.Append(c, words[0])
		s.Append(c, words[1])
		boxes.Append(c, &named{Name: words[1]})
		if words[0] != "first-word" || !inText(words[0]) {
			t.Error("the caller's words were changed")
		}
	})
	d.at(t, 2, func(c *Context[int]) { s.Set(c, words) })
	n := 0
	for _, key := range []int{1, 2} {
		d.at(t, key, func(c *Context[int]) {
			for w := range s.All(c) {
				if n++; inText(w) || !slices.Contains(words, w) {
					t.Errorf("key %d: %q is part of the batch's text, or nobody's", key, w)
				}
			}
			for b := range boxes.All(c) {
				if n++; inText(b.Name) || b.Name != words[1] {
					t.Errorf("key %d: %q is part of the batch's text, or another's", key, b.Name)
				}
			}
		})
	}
	if n != 6 {
		t.Errorf("%d elements seen", n)
	}
}

// entries is the number of entries of a table.
func entries[K comparable, V any](t *testing.T, rows rows[K, V]) (n int) {
	t.Helper()
	if err := rows.Range(func(K, V) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}
