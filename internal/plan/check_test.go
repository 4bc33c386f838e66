package plan_test

import (
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/plan"
	"github.com/weirstream/weir/stream"
)

type total struct{ Count, Sum int64 }

func TestCheckStates_SaysWhetherTheOperatorCanReadThem(t *testing.T) {
	def := stream.Define("totals", "", func(j *stream.Job) error {
		numbers := stream.From(j, "numbers", numbers{name: "numbers"})
		byLast := stream.KeyBy(numbers, func(n int) int64 { return int64(n % 10) })
		state := stream.NewValue[int64, total]("total")
		stream.Process(byLast, "totals", func(*stream.Context[int64], int, func(int) error) error { return nil }, state)
		return nil
	})
	p, err := plan.New(def, nil, job.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		operator, state, key, value string
		want                        string // part of the error; empty: none
	}{
		"the same":              {"totals", "total", "int64", "struct{Count:int64,Sum:int64}", ""},
		"a field was removed":   {"totals", "total", "int64", "struct{Count:int64,Old:string,Sum:int64}", ""},
		"a field was added":     {"totals", "total", "int64", "struct{Count:int64}", ""},
		"another type of field": {"totals", "total", "int64", "struct{Count:string,Sum:int64}", "state \"total\": value: "},
		"another key":           {"totals", "total", "string", "struct{Count:int64,Sum:int64}", "state \"total\": key: "},
		"no schema":             {"totals", "total", "int64", "struct{", "value: "},
		"another state":         {"totals", "average", "int64", "int64", "state \"average\" that the operator no longer declares"},
		"no keyed state":        {"numbers", "total", "int64", "int64", "none in the job"},
		"no such operator":      {"nobody", "total", "int64", "int64", "no operator nobody"},
	} {
		err := p.CheckStates(c.operator, []stream.StateSchema{{Name: c.state, Kind: "value", KeyType: c.key, ValueType: c.value}})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	err = p.CheckStates("totals", []stream.StateSchema{{Name: "total", Kind: "list", KeyType: "int64", ValueType: "struct{Count:int64,Sum:int64}"}})
	if err == nil || !strings.Contains(err.Error(), `state "total": it was written as a state of kind "list" and is declared as one of kind "value"`) {
		t.Errorf("another kind: %v", err)
	}
}
