package rescale

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// TestTranscripts plays the files in testdata: events in, effects out; -rewrite writes what comes out. The job is "src -> map" with two map tasks and
// 128 key groups; plans follow what is asked.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		tr := &transcript{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), plan: Plan{Parallelism: 2}}
		tr.plan.Graph = tr.graph(tr.plan)
		datadriven.RunTest(t, path, tr.run)
	})
}

type transcript struct {
	core  Core
	now   time.Time
	plan  Plan
	asked int
	next  *job.Graph
}

// graph plans the job: as an executor would.
func (tr *transcript) graph(p Plan) *job.Graph {
	g := &job.Graph{Name: "test", Edges: []job.Edge{{ID: "e", From: "src", To: "map", Partitioning: job.Hash}}}
	for _, id := range []string{"src", "map"} {
		n := p.Parallelism
		if own := p.Operators[id]; own > 0 {
			n = own
		}
		g.Vertices = append(g.Vertices, job.Vertex{ID: job.VertexID(id), Parallelism: n, MaxParallelism: 128, Operators: []job.Operator{{ID: id, Stateful: true}}})
		g.Fingerprint += fmt.Sprintf("%s=%d", id, n)
	}
	return g
}

func (tr *transcript) run(t *testing.T, d *datadriven.TestData) string {
	text := strings.TrimSpace(d.Input)
	arg := func(name string, otherwise int) int {
		if a, ok := d.Arg(name); ok {
			n, err := strconv.Atoi(a.SingleVal(t))
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return n
		}
		return otherwise
	}
	switch d.Cmd {
	case "ask": // ask parallelism=3 map=4 [dry-run] [wait=1s], below why the job does not run
		tr.asked++
		r := gateway.RescaleJob{Job: "j", Parallelism: arg("parallelism", 0), DryRun: d.HasArg("dry-run"), Wait: time.Duration(arg("wait", 0)) * time.Second}
		r.Vertices = map[job.VertexID]int{}
		for _, v := range []job.VertexID{"src", "map", "nobody"} {
			if n := arg(string(v), 0); n != 0 {
				r.Vertices[v] = n
			}
		}
		return tr.step(Requested{Request: r, Plan: tr.plan, NotRunning: text, To: tr.asked})
	case "planned":
		ev := Planned{Graph: tr.graph(tr.core.new)}
		if text != "" {
			ev = Planned{Err: errors.New(text)}
		}
		if d.HasArg("other-build") {
			ev.Graph.Vertices[1].Operators[0].Signature = "another"
		}
		return tr.step(ev)
	case "survey": // survey held=2 free=2, below what does not fit
		ev := Surveyed{Estimate: gateway.RescaleEstimate{SlotsNeeded: tr.core.new.Graph.MaxVertexParallelism(), SlotsHeld: arg("held", 2), SlotsFree: arg("free", 0)}}
		if text != "" {
			ev.Problem = errors.New(text)
		}
		tr.next = tr.core.new.Graph
		return tr.step(ev)
	case "checkpoint":
		return tr.step(Checkpointed{ID: checkpoint.ID(arg("id", 0)), Duration: 20 * time.Millisecond, Problem: text})
	case "recorded":
		return tr.step(Recorded{})
	case "short":
		return tr.step(Short{})
	case "deployed":
		return tr.step(Deployed{})
	case "running": // running [old]
		ev := Running{Graph: tr.next, Checkpoint: 7, Moved: 10, Stayed: 20}
		if d.HasArg("old") {
			ev.Graph = tr.plan.Graph
		}
		return tr.step(ev)
	case "failed":
		return tr.step(Failed{job.Failure{Class: job.FailurePermanent, Message: text}})
	case "ended":
		return tr.step(Ended{job.Canceled})
	case "tick": // tick 250ms
		took, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		tr.now = tr.now.Add(took)
		return tr.step(Tick{})
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return ""
}

func (tr *transcript) step(ev Event) string {
	var b strings.Builder
	for _, e := range tr.core.Step(tr.now, ev) {
		if a, ok := e.(Answer); ok {
			fmt.Fprintf(&b, "%d: ", a.To)
		}
		fmt.Fprintln(&b, e)
	}
	if at, ok := tr.core.Deadline(); ok {
		fmt.Fprintf(&b, "(tick in %s)\n", at.Sub(tr.now))
	}
	if b.Len() == 0 {
		return "nothing"
	}
	return b.String()
}
