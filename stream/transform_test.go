package stream

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestMap_KeepsTimestamps(t *testing.T) {
	b := build(t, func(s Stream[int]) Stream[string] { return Map(s, "m", func(v int) string { return fmt.Sprint(v) }) })
	b.put(t, 7, 8)
	b.expect(t, record[string]{1, "7"}, record[string]{2, "8"})
}

func TestTryMap_FailureNamesTheOperator(t *testing.T) {
	failure := errors.New("odd")
	b := build(t, func(s Stream[int]) Stream[int] {
		return TryMap(s, "halve", func(v int) (int, error) {
			if v%2 == 1 {
				return 0, failure
			}
			return v / 2, nil
		})
	})
	b.put(t, 4)
	b.expect(t, record[int]{1, 2})
	err := b.in.Collect(2, 3)
	var op *OperatorError
	if !errors.As(err, &op) || op.Operator != "halve" || !errors.Is(err, failure) || err.Error() != "operator halve: odd" {
		t.Errorf("got %v", err)
	}
}

func TestFilter_DropsTheRest(t *testing.T) {
	b := build(t, func(s Stream[int]) Stream[int] { return Filter(s, "", func(v int) bool { return v%2 == 0 }) })
	b.put(t, 1, 2, 3, 4)
	b.expect(t, record[int]{2, 2}, record[int]{4, 4})
}

func TestFlatMap_EmitsAnyNumber(t *testing.T) {
	b := build(t, func(s Stream[string]) Stream[string] {
		return FlatMap(s, "split", func(v string, emit func(string) error) error {
			for _, w := range strings.Fields(v) {
				if err := emit(w); err != nil {
					return err
				}
			}
			return nil
		})
	})
	b.put(t, "a b", "", "c")
	b.expect(t, record[string]{1, "a"}, record[string]{1, "b"}, record[string]{3, "c"})
}

// TestErrors_FromDownTheChain_KeepTheirOrigin: what comes back from emit is not the fault of the one who emits.
func TestErrors_FromDownTheChain_KeepTheirOrigin(t *testing.T) {
	stopped := fmt.Errorf("connection lost: %w", ErrStopped)
	below := &OperatorError{Operator: "below", Err: errors.New("broken")}
	flat := func(s Stream[int]) Stream[int] {
		return FlatMap(s, "op", func(v int, emit func(int) error) error { return emit(v) })
	}
	process := func(s Stream[int]) Stream[int] {
		return Process(KeyBy(s, func(v int) int { return v }), "op", func(_ *Context[int], v int, emit func(int) error) error { return emit(v) })
	}
	for name, def := range map[string]func(Stream[int]) Stream[int]{"flat-map": flat, "process": process} {
		for _, failure := range []error{stopped, below} {
			b := build(t, def)
			b.out.fail = failure
			if err := b.in.Collect(1, 1); err != failure {
				t.Errorf("%s: got %v, want %v unchanged", name, err, failure)
			}
		}
		b := build(t, def)
		b.out.fail = errors.New("of nobody")
		if err := b.in.Collect(1, 1); err == nil || err.Error() != "operator op: of nobody" {
			t.Errorf("%s: got %v, want the operator's name", name, err)
		}
	}
}

func TestUnion_MergesStreams(t *testing.T) {
	b := build(t, func(s Stream[int]) Stream[int] { return Union(s, From(s.job, "other", nowhere[int]{})) })
	node := b.env.Operator
	if !strings.HasPrefix(node, "union-") {
		t.Errorf("the union is called %s", node)
	}
	if err := b.in.Collect(5, 6); err != nil {
		t.Fatal(err)
	}
	b.expect(t, record[int]{5, 6})
}

func TestUnion_OfTwoJobsIsAMistake(t *testing.T) {
	a, b := NewJob("a", nil), NewJob("b", nil)
	Union(From(a, "x", nowhere[int]{}), From(b, "y", nowhere[int]{}))
	if err := a.Err(); err == nil || !strings.Contains(err.Error(), "streams of two jobs cannot be united") {
		t.Errorf("got %v", err)
	}
}

func TestOutputs_NoneOneAndSeveral(t *testing.T) {
	first, second := &collecting[int]{}, &collecting[int]{}
	for n, outs := range [][]any{{}, {Collector[int](first)}, {Collector[int](first), Collector[int](second)}} {
		c, err := collector[int](outs)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Collect(1, n); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(first.values(), []int{1, 2}) || !slices.Equal(second.values(), []int{2}) {
		t.Errorf("got %v and %v", first.values(), second.values())
	}
	first.fail = errors.New("full")
	if err := must(collector[int]([]any{Collector[int](first), Collector[int](second)}))(t).Collect(1, 9); !errors.Is(err, first.fail) || len(second.got) != 1 {
		t.Errorf("after an error: got %v and %v", err, second.got)
	}
	if _, err := collector[int]([]any{Collector[string](&collecting[string]{})}); err == nil || !strings.Contains(err.Error(), "emits int") {
		t.Errorf("an output of another type: %v", err)
	}
}
