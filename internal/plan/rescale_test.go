package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/plan"
	"github.com/weirstream/weir/stream"
)

// B83: only one side of an edge gets another parallelism. An edge that was forward because both sides agreed deals its records out; one that
// was asked to be forward refuses; and back at the same parallelism it is what it was.
func TestFault_B83_OneSideOfAForwardEdge(t *testing.T) {
	build := func(forward bool) func(*stream.Job) {
		return func(j *stream.Job) {
			s := source(j)
			if forward {
				s = s.Forward()
			}
			stream.To(stream.Map(s, "m", same).WithoutChaining(), "out", sink[int]{})
		}
	}
	at := func(forward bool, m int) (*plan.Program, error) {
		return compile(t, build(forward), job.Options{Parallelism: 2, OperatorParallelism: map[string]int{"m": m, "out": m}})
	}
	for m, want := range map[int]string{1: "rebalance", 2: "forward", 3: "rebalance"} {
		p, err := at(false, m)
		if err != nil {
			t.Fatal(err)
		}
		if got := describe(p.Graph); !slices.Contains(got, "src->m: src to m by "+want) || p.Graph.Vertex("src").Parallelism != 2 || p.Graph.Vertex("m").Parallelism != m {
			t.Errorf("m at %d: %q, want %s", m, got, want)
		}
	}
	if _, err := at(true, 2); err != nil {
		t.Errorf("both sides at 2: %v", err)
	}
	if _, err := at(true, 3); err == nil || !strings.Contains(err.Error(), "a forward edge from src (parallelism 2) to m (parallelism 3): both must agree") {
		t.Errorf("one side at 3: %v", err)
	}
}

func TestOperatorParallelism_WinsOverAllElse(t *testing.T) {
	build := func(j *stream.Job) {
		j.SetParallelism(5)
		stream.To(stream.Map(source(j), "m", same).WithParallelism(3), "out", sink[int]{})
	}
	p, err := compile(t, build, job.Options{Parallelism: 2, OperatorParallelism: map[string]int{"m": 4}})
	if err != nil || p.Graph.Vertex("m").Parallelism != 4 || p.Graph.Vertex("src").Parallelism != 2 {
		t.Errorf("%v, %v", describe(p.Graph), err)
	}
	for _, c := range []struct {
		operators map[string]int
		want      string
	}{
		{map[string]int{"nobody": 1}, "a parallelism is chosen for operator nobody, which the job does not have"},
		{map[string]int{"m": -1}, "operator m: parallelism -1 is not positive"},
		{map[string]int{"m": 129}, "operator m: parallelism 129 is over the max parallelism 128"},
	} {
		_, err := compile(t, build, job.Options{OperatorParallelism: c.operators})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.operators, err)
		}
	}
}
