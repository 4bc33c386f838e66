package coordinator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/checkpoint"
	. "github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/job"
)

var epoch0 = time.UnixMilli(1_700_000_000_000)

func wide(parallelism int) *job.Graph {
	return &job.Graph{Vertices: []job.Vertex{
		{ID: "src", Parallelism: parallelism, MaxParallelism: 32768},
	}}
}

// manual is a core without periodic checkpoints whose tasks run.
func manual(t testing.TB, g *job.Graph, change func(*Config)) *Core {
	t.Helper()
	cfg := Config{Job: testJob, Graph: g, Epoch: 1, Options: job.CheckpointOptions{Interval: -1, TolerableFailures: 1 << 30, DegradedAfter: -1}}
	if change != nil {
		change(&cfg)
	}
	c := New(cfg)
	c.Step(epoch0, TasksRunning{Tasks: tasksOf(g, 1)})
	return c
}

// take runs one checkpoint from trigger to complete and returns the effects of the last step.
func take(c *Core, tasks []Task, id checkpoint.ID) []Effect {
	c.Step(epoch0, TriggerRequested{Request: RequestID(id), Kind: checkpoint.Checkpoint})
	c.Step(epoch0, LocationReady{ID: id, Dir: "/cp"})
	for _, task := range tasks {
		c.Step(epoch0, Ack{Epoch: 1, Attempt: task.Attempt, ID: id})
	}
	return c.Step(epoch0, MetadataWritten{ID: id})
}

func TestSubmit_FullQueue_RefusesTheNewRequest(t *testing.T) {
	c := manual(t, testGraph(), nil)
	const limit = 1000
	for i := range limit + 1 { // the first one is pending at once
		if out := c.Step(epoch0, TriggerRequested{Request: RequestID(i), Kind: checkpoint.Checkpoint}); i > 0 && len(out) != 0 {
			t.Fatalf("request %d: %v", i, out)
		}
	}
	for _, kind := range []checkpoint.Kind{checkpoint.Checkpoint, checkpoint.Savepoint} {
		out := c.Step(epoch0, TriggerRequested{Request: 5000, Kind: kind, Directory: "/sp"})
		if len(out) != 1 || out[0].(Reply).Reason != checkpoint.TooManyRequests || out[0].(Reply).Request != 5000 {
			t.Errorf("%s into the full queue: %v", kind, out)
		}
	}
	if out := c.Step(epoch0, TasksStopped{}); len(out) != 1+1+limit { // Aborted and a Reply for the pending one, a Reply for each other
		t.Errorf("stop answers with %d effects", len(out))
	}
}

func TestSubmit_FullQueue_PeriodicAndFinalGiveWay(t *testing.T) {
	c := manual(t, testGraph(), func(cfg *Config) { cfg.Options.Interval = time.Second })
	now := epoch0
	for i := range 1000 {
		c.Step(now, TriggerRequested{Request: RequestID(i), Kind: checkpoint.Checkpoint})
	}
	now = now.Add(time.Second)
	c.Step(now, Tick{}) // the periodic one takes the last place
	if out := c.Step(now, TriggerRequested{Request: 1000, Kind: checkpoint.Checkpoint}); len(out) != 0 {
		t.Fatalf("a periodic request is in the way: %v", out)
	}
	c.Step(now, EndOfDataReached{})
	if at, ok := c.Deadline(); !ok || at.Sub(now) != 100*time.Millisecond {
		t.Fatalf("the final checkpoint found no place and is to be tried again: deadline %v %t", at.Sub(now), ok)
	}
	now = now.Add(100 * time.Millisecond)
	c.Step(now, Tick{})
	if at, ok := c.Deadline(); !ok || !at.After(now) {
		t.Errorf("the loop would spin: deadline %v %t", at.Sub(now), ok)
	}
}

func TestTick_AfterAStall_DoesNotMakeUpForMissedFirings(t *testing.T) {
	c := manual(t, testGraph(), func(cfg *Config) { cfg.Options.Interval = time.Second })
	now := epoch0.Add(time.Hour + 300*time.Millisecond)
	if out := c.Step(now, Tick{}); len(out) != 1 {
		t.Fatalf("one checkpoint is due, got %v", out)
	}
	if at, _ := c.Deadline(); at.Sub(now) != 700*time.Millisecond {
		t.Errorf("next firing in %s, want 700ms: the plan is kept", at.Sub(now))
	}
}

func TestNew_IntervalBelowMinPause_IsRaisedToIt(t *testing.T) {
	c := manual(t, testGraph(), func(cfg *Config) { cfg.Options.Interval, cfg.Options.MinPause = time.Second, 5*time.Second })
	if at, _ := c.Deadline(); at.Sub(epoch0) != 5*time.Second {
		t.Errorf("first firing after %s", at.Sub(epoch0))
	}
}

func TestTasksRunning_NotExactlyTheTasksOfTheJob_IsRefused(t *testing.T) {
	good := tasksOf(testGraph(), 1)
	stranger := append(tasksOf(testGraph(), 1)[:2:2], Task{Attempt: job.AttemptID{Job: testJob, Task: job.TaskID{Vertex: "x"}, Attempt: 1}})
	otherJob := tasksOf(testGraph(), 1)
	otherJob[1].Attempt.Job = "job-9"
	for name, tasks := range map[string][]Task{
		"missing": good[:2], "twice": {good[0], good[1], good[1]}, "stranger": stranger, "other job": otherJob,
		"no attempt": tasksOf(testGraph(), 0), "none": nil,
	} {
		c := New(Config{Job: testJob, Graph: testGraph(), Epoch: 1})
		c.Step(epoch0, TasksRunning{Tasks: tasks})
		if _, ok := c.Deadline(); ok || c.Stale() != 1 {
			t.Errorf("%s: accepted; a checkpoint would lose the state of a task", name)
		}
	}
	// The order in which the tasks are told does not matter.
	c := New(Config{Job: testJob, Graph: testGraph(), Epoch: 1})
	c.Step(epoch0, TasksRunning{Tasks: []Task{good[2], good[0], good[1]}})
	if out := c.Step(epoch0, EndOfDataReached{}); len(out) != 1 {
		t.Errorf("refused in another order: %v", out)
	}
}

func TestMetadata_IsInGraphOrderWhateverTheOrderOfAcks(t *testing.T) {
	c := manual(t, testGraph(), func(cfg *Config) { cfg.JobName, cfg.Params = "flights", map[string]string{"a": "b"} })
	c.Step(epoch0, TriggerRequested{Kind: checkpoint.Checkpoint})
	c.Step(epoch0, LocationReady{ID: 1, Dir: "/cp"})
	tasks := tasksOf(testGraph(), 1)
	var out []Effect
	for _, i := range []int{2, 0, 1} {
		// A wrong subtask in the state is overruled by the attempt.
		out = c.Step(epoch0, Ack{Epoch: 1, Attempt: tasks[i].Attempt, ID: 1, State: checkpoint.SubtaskState{Subtask: 9, Ended: i == 2}})
	}
	want := &checkpoint.Metadata{
		Job: testJob, JobName: "flights", Params: map[string]string{"a": "b"}, ID: 1, Kind: checkpoint.Checkpoint,
		Timestamp: epoch0.UTC(), Fingerprint: "f", Epoch: 1,
		Vertices: []checkpoint.VertexState{
			{Vertex: "src", Parallelism: 1, MaxParallelism: 128, Operators: []job.Operator{{ID: "src"}}, Subtasks: []checkpoint.SubtaskState{{}}},
			{Vertex: "map", Parallelism: 2, MaxParallelism: 128, Operators: []job.Operator{{ID: "map"}},
				Subtasks: []checkpoint.SubtaskState{{}, {Subtask: 1, Ended: true}}},
		},
	}
	if diff := cmp.Diff(want, out[1].(WriteMetadata).Metadata); diff != "" {
		t.Error(diff)
	}
}

// Union state is complete only when all subtasks have written theirs: X4.
func TestUnionState_PartOfTheSubtasksEnded_NoCheckpointCompletes(t *testing.T) {
	c := manual(t, testGraph(), nil)
	union := []checkpoint.OperatorState{{Operator: "map", Lists: []checkpoint.List{{Schema: checkpoint.StateSchema{Name: "seen"}, Mode: job.Union}}}}
	round := func(id checkpoint.ID, ended func(task int) bool) (out []Effect) {
		c.Step(epoch0, TriggerRequested{Kind: checkpoint.Checkpoint})
		c.Step(epoch0, LocationReady{ID: id, Dir: "/cp"})
		for i, task := range tasksOf(testGraph(), 1) {
			s := checkpoint.SubtaskState{Ended: ended(i)}
			if i > 0 {
				s.Operators = union
			}
			out = c.Step(epoch0, Ack{Epoch: 1, Attempt: task.Attempt, ID: id, State: s})
		}
		return out
	}
	for id, part := range []func(int) bool{
		func(task int) bool { return task == 1 },
		func(task int) bool { return task == 2 },
	} {
		var text string
		for _, e := range round(checkpoint.ID(id+1), part) {
			text += e.String() + "\n"
		}
		if !strings.Contains(text, "1 of the 2 subtasks of operator map, which has union list state, have reached the end of their input") ||
			!strings.Contains(text, string(checkpoint.TaskNotReady)) || strings.Contains(text, "WriteMetadata") {
			t.Errorf("got %s", text)
		}
		c.Step(epoch0, Discarded{ID: checkpoint.ID(id + 1)})
	}
	for id, all := range []func(int) bool{func(int) bool { return true }, func(task int) bool { return task == 0 }} {
		out := round(checkpoint.ID(id+3), all)
		if _, ok := out[len(out)-1].(WriteMetadata); !ok {
			t.Fatalf("got %v", out)
		}
		c.Step(epoch0, MetadataWritten{ID: checkpoint.ID(id + 3), Outcome: Written})
	}
}

func TestLateAck_OfAForgottenCheckpoint_DeletesNothing(t *testing.T) {
	g := wide(1)
	c := manual(t, g, nil)
	a := tasksOf(g, 1)[0].Attempt
	abort := func(id checkpoint.ID) {
		c.Step(epoch0, TriggerRequested{Kind: checkpoint.Checkpoint})
		c.Step(epoch0, LocationReady{ID: id, Dir: "/cp"})
		c.Step(epoch0, Decline{Epoch: 1, Attempt: a, ID: id})
		c.Step(epoch0, Discarded{ID: id})
	}
	for id := range checkpoint.ID(1000) {
		abort(id + 1)
	}
	late := func() checkpoint.Verdict {
		return c.Step(epoch0, Ack{Epoch: 1, Attempt: a, ID: 1})[0].(AckReply).Verdict
	}
	if v := late(); v != checkpoint.TooLate {
		t.Errorf("one of the last 1000 aborted: %s", v)
	}
	abort(1001)
	if v := late(); v != checkpoint.Duplicate {
		t.Errorf("older than the memory: %s; nothing may be deleted on a guess", v)
	}
}

func TestHistory_IsBoundedAndItsCountsAreNot(t *testing.T) {
	c := manual(t, testGraph(), func(cfg *Config) { cfg.History = 3 })
	tasks := tasksOf(testGraph(), 1)
	for id := range checkpoint.ID(10) {
		take(c, tasks, id+1)
		c.Step(epoch0, Discarded{ID: id})
	}
	h := c.History()
	if len(h) != 3 || h[0].ID != 8 || h[2].ID != 10 || !h[1].Discarded || h[2].Discarded {
		t.Errorf("history: %v", h)
	}
	if diff := cmp.Diff(Counts{Completed: 10}, c.Counts()); diff != "" {
		t.Error(diff)
	}
}

func TestHistory_DoesNotChangeInTheHandsOfItsReader(t *testing.T) {
	c := manual(t, testGraph(), nil)
	c.Step(epoch0, TriggerRequested{Kind: checkpoint.Checkpoint})
	c.Step(epoch0, LocationReady{ID: 1, Dir: "/cp"})
	h := c.History()
	c.Step(epoch0.Add(time.Second), Ack{Epoch: 1, Attempt: tasksOf(testGraph(), 1)[1].Attempt, ID: 1, Metrics: checkpoint.Metrics{StateBytes: 7}})
	if h[0].Acked != 0 || h[0].Subtasks[1].Acked {
		t.Error("an ack changed statistics that were handed out")
	}
	want := checkpoint.SubtaskStats{Task: job.TaskID{Vertex: "map"}, Acked: true, Latency: time.Second, Metrics: checkpoint.Metrics{StateBytes: 7}}
	if diff := cmp.Diff(want, c.History()[0].Subtasks[1]); diff != "" {
		t.Error(diff)
	}
}

func TestHistory_LateAckDoesNotChangeWhatWasHandedOut(t *testing.T) {
	c := manual(t, testGraph(), nil)
	c.Step(epoch0, TriggerRequested{Kind: checkpoint.Checkpoint})
	c.Step(epoch0, LocationReady{ID: 1, Dir: "/cp"})
	ack := Ack{Epoch: 1, Attempt: tasksOf(testGraph(), 1)[1].Attempt, ID: 1, Metrics: checkpoint.Metrics{Async: time.Minute}}
	c.Step(epoch0, Decline{Epoch: 1, Attempt: tasksOf(testGraph(), 1)[0].Attempt, ID: 1, Reason: checkpoint.Declined})
	h := c.History()
	c.Step(epoch0.Add(time.Second), ack)
	if h[0].Subtasks[1].Late || !c.History()[0].Subtasks[1].Late || c.History()[0].Acked != 0 {
		t.Errorf("handed out before %+v, after %+v", h[0].Subtasks[1], c.History()[0])
	}
}

func TestHistory_LimitIsKept(t *testing.T) {
	for given, want := range map[int]int{0: job.DefaultCheckpointHistory, 1: 1, 12: 12, job.MaxCheckpointHistory + 1: job.MaxCheckpointHistory} {
		c := manual(t, testGraph(), func(cfg *Config) { cfg.History = given })
		for id := range checkpoint.ID(want + 5) {
			take(c, tasksOf(testGraph(), 1), id+1)
			c.Step(epoch0, Discarded{ID: id})
		}
		if got := len(c.History()); got != want {
			t.Errorf("history of %d keeps %d, want %d", given, got, want)
		}
	}
}

func TestHistory_DetailsOfBigJobsAreBounded(t *testing.T) {
	const limit, width = 200_000, 30_000
	g := wide(width)
	c := manual(t, g, nil)
	for id := range checkpoint.ID(9) {
		take(c, tasksOf(g, 1), id+1)
		c.Step(epoch0, Discarded{ID: id})
	}
	rows := 0
	for _, s := range c.History() {
		rows += len(s.Subtasks)
	}
	if h := c.History(); rows > limit || rows < limit-width || h[0].Subtasks != nil || len(h[8].Subtasks) != width {
		t.Errorf("%d rows kept", rows)
	}
}

func TestStrings_AreOneLineWithoutStateBytes(t *testing.T) {
	a := tasksOf(testGraph(), 1)[0].Attempt
	secret := checkpoint.SubtaskState{Operators: []checkpoint.OperatorState{{Operator: "secret"}}}
	many := make([]job.AttemptID, 20)
	for i := range many {
		many[i] = job.AttemptID{Task: job.TaskID{Vertex: "v", Subtask: i}, Attempt: 1}
	}
	meta := &checkpoint.Metadata{Vertices: []checkpoint.VertexState{{Subtasks: []checkpoint.SubtaskState{secret}}}}
	for _, c := range []struct {
		value fmt.Stringer
		want  string
	}{
		{Replanned{testGraph()}, "Replanned 3 tasks"},
		{Ack{Epoch: 2, Attempt: a, ID: 3, Request: 4, State: secret, Metrics: checkpoint.Metrics{StateBytes: 3 << 20}},
			"Ack 3 src[0]#1 epoch=2 request=4 state=3.0MiB"},
		{Decline{Epoch: 2, Attempt: a, ID: 3, Reason: checkpoint.Declined, Message: "two\nlines"}, `Decline 3 src[0]#1 epoch=2 reason=DECLINED message="two\nlines"`},
		{TriggerFailed{ID: 3, Attempt: a, Err: "x"}, `TriggerFailed 3 src[0]#1 error="x"`},
		{TriggerRequested{Request: 1, Kind: checkpoint.Savepoint, Directory: "/sp"}, "TriggerRequested request=1 savepoint dir=/sp"},
		{TasksRunning{Tasks: tasksOf(testGraph(), 1), Random: 0.25}, "TasksRunning tasks=3 sources=1 random=0.25"},
		{TasksStopped{Reason: checkpoint.Suspended}, "TasksStopped reason=SUSPENDED"},
		{LocationReady{ID: 1, Err: "x y"}, `LocationReady 1 error="x y"`},
		{MetadataWritten{ID: 1}, "MetadataWritten 1"},
		{MetadataWritten{ID: 1, Outcome: NotWritten, Err: "x"}, `MetadataWritten 1 not written error="x"`},
		{MetadataWritten{ID: 1, Outcome: Uncertain, Err: "x"}, `MetadataWritten 1 uncertain error="x"`},
		{Discarded{ID: 1, Err: "x"}, `Discarded 1 error="x"`},
		{NotifyConfirmed{Attempt: a, ID: 1}, "NotifyConfirmed 1 src[0]#1"},
		{Closed{DeleteAll: true}, "Closed delete=true"},
		{BacklogChanged{Attempt: a, Behind: true}, "BacklogChanged src[0]#1 behind=true"},
		{HooksCalled{ID: 1, States: []checkpoint.MasterState{{Hook: "lease", State: []byte("secret")}}}, "HooksCalled 1 lease=6B"},
		{HooksCalled{ID: 1, Err: "x"}, `HooksCalled 1 error="x"`},
		{CallHooks{ID: 1}, "CallHooks 1"},
		{Tick{}, "Tick"},
		{EndOfDataReached{}, "EndOfDataReached"},
		{WriteMetadata{ID: 1, Dir: "/d", Metadata: meta}, "WriteMetadata 1 dir=/d vertices=1 subtasks=1"},
		{SendNotifyComplete{ID: 1, Attempts: many},
			"SendNotifyComplete 1 to v[0]#1 v[1]#1 v[2]#1 v[3]#1 v[4]#1 v[5]#1 v[6]#1 v[7]#1 and 12 more"},
		{Completed{ID: 1, Kind: checkpoint.Checkpoint, Duration: time.Second, Bytes: 5 << 30}, "checkpoint 1 completed in 1s, 5.0GiB"},
		{Completed{ID: 1, Kind: checkpoint.Checkpoint, Bytes: 1536, Final: true}, "checkpoint 1 completed in 0s, 1.5KiB, the final one"},
		{Degraded{Message: "why"}, "degraded: why"},
		{Recovered{After: 90 * time.Second}, "degraded no longer: a checkpoint has completed after 1m30s"},
		{AckReply{Request: 1, Verdict: checkpoint.StaleEpoch}, "AckReply request=1 STALE_EPOCH"},
	} {
		if got := c.value.String(); got != c.want || strings.Contains(got, "\n") || strings.Contains(got, "secret") {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestReason_CountedAreThoseOfTheReference(t *testing.T) {
	counted := map[checkpoint.Reason]bool{checkpoint.Expired: true, checkpoint.Declined: true, checkpoint.AsyncException: true, checkpoint.IOException: true, checkpoint.FinalizeFailure: true, checkpoint.AckTooLarge: true, checkpoint.HookFailure: true}
	for _, r := range []checkpoint.Reason{
		checkpoint.None, checkpoint.NotAllRunning, checkpoint.Suspended, checkpoint.Shutdown, checkpoint.Expired, checkpoint.Declined, checkpoint.TaskNotReady, checkpoint.TaskFailure, checkpoint.AsyncException, checkpoint.IOException, checkpoint.FinalizeFailure,
		checkpoint.TriggerFailure, checkpoint.Subsumed, checkpoint.BarrierCanceled, checkpoint.TooManyRequests, checkpoint.AckTooLarge, checkpoint.SavepointDirNeeded, checkpoint.HookFailure, "SOMETHING_ELSE",
	} {
		if r.Counted() != counted[r] {
			t.Errorf("%q counted: %t", r, r.Counted())
		}
	}
}

// BenchmarkCoordinator_TriggerToComplete is the core alone, empty state; ns/event must not depend on the number of tasks.
func BenchmarkCoordinator_TriggerToComplete(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			g := wide(n)
			tasks := tasksOf(g, 1)
			c := manual(b, g, nil)
			b.ReportAllocs()
			events := 0
			for id := checkpoint.ID(1); b.Loop(); id++ {
				if out := take(c, tasks, id); len(out) < 3 {
					b.Fatalf("not completed: %v", out)
				}
				for _, t := range tasks {
					c.Step(epoch0, NotifyConfirmed{Attempt: t.Attempt, ID: id})
				}
				c.Step(epoch0, Discarded{ID: id - 1})
				events += 2*n + 4
			}
			b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
		})
	}
}

// Start delays run from the trigger itself, although barriers carry its time in whole milliseconds.
func TestStats_StartDelayRunsFromTheTrigger(t *testing.T) {
	for _, c := range []struct{ measured, want time.Duration }{
		{2 * time.Millisecond, 1300 * time.Microsecond},
		{500 * time.Microsecond, 0}, // of another clock
	} {
		d := drive(t, nil)
		d.now = epoch0.Add(700 * time.Microsecond)
		d.ask(1).locate(1)
		for _, task := range tasksOf(testGraph(), 1) {
			d.step(Ack{Epoch: 1, Attempt: task.Attempt, ID: 1, Metrics: checkpoint.Metrics{StartDelay: c.measured}})
		}
		for _, row := range d.core.History()[0].Subtasks {
			if row.Metrics.StartDelay != c.want {
				t.Errorf("%s: start delay %s, want %s", row.Task, row.Metrics.StartDelay, c.want)
			}
		}
	}
}
