package stream

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParams_TableOfMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		params map[string]string
		want   []string // in the error; none: no error
	}{
		"all given":   {map[string]string{"in": "x", "n": "3", "on": "true", "for": "1m30s", "mode": "skip", "opt": "y"}, nil},
		"required":    {map[string]string{"in": ""}, nil},
		"missing":     {nil, []string{`job wc needs parameter "in" (weir run wc --set in=...)`}},
		"number":      {map[string]string{"in": "x", "n": "three"}, []string{`parameter n="three" of job wc must be a whole number`}},
		"bool":        {map[string]string{"in": "x", "on": "maybe"}, []string{`parameter on="maybe" of job wc must be true or false`}},
		"duration":    {map[string]string{"in": "x", "for": "90"}, []string{`parameter for="90" of job wc must be a duration such as 1m30s`}},
		"choice":      {map[string]string{"in": "x", "mode": "ignore"}, []string{`parameter mode="ignore" of job wc must be one of fail, skip`}},
		"unknown":     {map[string]string{"in": "x", "input": "y"}, []string{`job wc has no parameter "input"; it has: for (default 1s), in, mode (default fail), n (default 7), on (default false), opt (default z)`}},
		"all at once": {map[string]string{"n": "x", "b": "", "a": ""}, []string{`needs parameter "in"`, `n="x"`, `no parameter "a"`, `no parameter "b"`}},
	} {
		j := NewJob("wc", c.params)
		in, n, on, d, mode, opt := j.Param("in"), j.IntParam("n", 7), j.BoolParam("on", false), j.DurationParam("for", time.Second), j.ChoiceParam("mode", "fail", "skip"), j.ParamOr("opt", "z")
		err := j.Err()
		if (err == nil) != (len(c.want) == 0) {
			t.Errorf("%s: got %v", name, err)
		}
		at := 0
		for _, want := range c.want {
			i := strings.Index(err.Error()[at:], want)
			if i < 0 {
				t.Errorf("%s: %q is not in its place in %q", name, want, err)
				continue
			}
			at += i
		}
		switch name {
		case "all given":
			if in != "x" || n != 3 || !on || d != 90*time.Second || mode != "skip" || opt != "y" {
				t.Errorf("got %v %v %v %v %v %v", in, n, on, d, mode, opt)
			}
		case "number", "bool", "duration":
			if n != 7 || on || d != time.Second || mode != "fail" || opt != "z" {
				t.Errorf("%s: defaults are %v %v %v %v %v", name, n, on, d, mode, opt)
			}
		}
	}
	if err := func() error { j := NewJob("none", map[string]string{"x": ""}); return j.Err() }(); err == nil || !strings.HasSuffix(err.Error(), "it has: none") {
		t.Errorf("got %v", err)
	}
}

func TestDefinition_Mistakes(t *testing.T) {
	same := func(v int) int { return v }
	sum := func(a, b int) int { return a + b }
	shared := NewValue[int, int]("n")
	process := func(s Stream[int], id string, states ...State[int]) Stream[int] {
		return Process(KeyBy(s, same), id, func(*Context[int], int, func(int) error) error { return nil }, states...)
	}
	for name, c := range map[string]struct {
		define func(j *Job, s Stream[int])
		want   string
	}{
		"duplicate id":        {func(j *Job, s Stream[int]) { Map(Map(s, "m", same), "m", same) }, `two operators of job test have the id "m"`},
		"state without id":    {func(j *Job, s Stream[int]) { Reduce(KeyBy(s, same), "", sum, EmitUpdates) }, "a reduce operator of job test has no id"},
		"sink without id":     {func(j *Job, s Stream[int]) { To(s, "", Sink[int](nil)) }, "a sink operator of job test has no id"},
		"source without id":   {func(j *Job, s Stream[int]) { From(j, "", nowhere[int]{}) }, "a source operator of job test has no id"},
		"id with a slash":     {func(j *Job, s Stream[int]) { Map(s, "a/b", same) }, `operator id "a/b" of job test may hold letters`},
		"state of two":        {func(j *Job, s Stream[int]) { process(process(s, "p", shared), "q", shared) }, `state "n" is declared for operator p and for q`},
		"state twice":         {func(j *Job, s Stream[int]) { process(s, "p", NewValue[int, int]("n"), NewValue[int, string]("n")) }, `two states of operator p have the name "n"`},
		"state without name":  {func(j *Job, s Stream[int]) { process(s, "p", NewValue[int, int]("")) }, "a state of operator p has no name"},
		"state without codec": {func(j *Job, s Stream[int]) { process(s, "p", NewValue[int, func()]("f")) }, `state "f" of operator p: codec of func()`},
		"end without state": {func(j *Job, s Stream[int]) {
			ProcessToEnd(KeyBy(s, same), "p", nil, func(*Context[int], func(int) error) error { return nil })
		}, "operator p: ProcessToEnd needs a state"},
		"key without hash": {func(j *Job, s Stream[int]) { KeyBy(s, func(int) float64 { return 0 }) }, "key behind operator src"},
		"record without codec": {func(j *Job, s Stream[int]) {
			Map(Map(s, "m", func(int) chan int { return nil }), "to", func(chan int) int { return 0 })
		}, "operator to takes records that cannot be sent"},
		"parallelism":           {func(j *Job, s Stream[int]) { s.WithParallelism(0) }, "operator src of job test: parallelism 0 is not positive"},
		"parallelism of a job":  {func(j *Job, s Stream[int]) { j.SetParallelism(-1) }, "parallelism -1 of job test is not positive"},
		"found by the function": {func(j *Job, s Stream[int]) { j.Fail(errors.New("too late")) }, "too late"},
	} {
		j := NewJob("test", nil)
		c.define(j, From(j, "src", nowhere[int]{}))
		if err := j.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		shared = NewValue[int, int]("n")
	}
}

func TestDefinition_NamesOperatorsWithoutId(t *testing.T) {
	j := NewJob("test", nil)
	s := From(j, "src", nowhere[int]{})
	Filter(Map(s, "", func(v int) int { return v }), "", func(int) bool { return true })
	var ids []string
	for _, n := range j.Nodes() {
		ids = append(ids, n.ID)
	}
	if got := strings.Join(ids, " "); got != "src map-2 filter-3" || j.Err() != nil {
		t.Errorf("got %s, %v", got, j.Err())
	}
}

func TestPermanent_IsSeenThroughWrapping(t *testing.T) {
	cause := errors.New("no such column")
	err := error(&OperatorError{Operator: "csv", Err: Permanent(cause)})
	if !IsPermanent(err) || !errors.Is(err, cause) || IsPermanent(cause) || Permanent(nil) != nil {
		t.Errorf("got %v", err)
	}
}
