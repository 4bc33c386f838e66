package coordinator_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/weirstream/weir/internal/checkpoint"
	. "github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/job"
)

// TestTranscripts runs testdata: commands are events, the output is the effects. The job is "src -> map" with one source task src[0] and
// two tasks map[0] and map[1]; -rewrite writes what the core does now. Commands:
//
//	new [interval=10s] [pause=0s] [timeout=1m] [concurrent=1] [retained=1] [tolerable=0] [degraded=-1s] [first=1] [history=10] [restored=N] [restored-savepoint=N] [restored-foreign=N]
//	running [attempt=1] [random=0]      stop [REASON]          tick +DURATION (time passes, then a Tick)   wait +DURATION (no Tick)
//	trigger [savepoint=DIR] [times=1]   final                  location ID [dir=DIR] [error=TEXT]
//	ack TASK ID [epoch=1] [bytes=100] [delay=0s] [align=0s] [sync=0s] [async=0s]
//	ack-all ID [attempt=1]              decline TASK ID [REASON] [epoch=1]          trigger-failed TASK ID
//	written ID [error=TEXT [uncertain]] discarded ID [error=TEXT]
//	finish TASK                         restored ID
//	confirm TASK ID                     confirm-all ID [attempt=1]                                         close [delete]
//	replan map=3 [refused]
//	state                               history                metadata (of the latest completed checkpoint)
//	stats (counts, percentiles)         vertices ID
//	new in-backlog=0s                   running behind=TASK    backlog TASK [done]
//	new hooks=ID                        hooks ID [state=TEXT] [error=TEXT] (of the only hook)
//	new [restored-files=(F,...)] [older=(N:F:F,...)]     ack TASK ID files=(F,...), where F is c3-n1 for the first file that the task uploaded for checkpoint 3
//	removed [error=TEXT] (of shared files)
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.run(t, d) })
	})
}

const testJob = job.ID("job-1")

func testGraph() *job.Graph {
	return &job.Graph{
		Name: "test",
		Vertices: []job.Vertex{
			{ID: "src", Parallelism: 1, MaxParallelism: 128, Operators: []job.Operator{{ID: "src"}}},
			{ID: "map", Parallelism: 2, MaxParallelism: 128, Operators: []job.Operator{{ID: "map"}}},
		},
		Edges:       []job.Edge{{ID: "src->map", From: "src", To: "map", Partitioning: job.Hash}},
		Fingerprint: "f",
	}
}

// pipelines is a graph of two failover regions: src[0] -> map[0] and src[1] -> map[1].
func pipelines() *job.Graph {
	g := testGraph()
	g.Vertices[0].Parallelism = 2
	g.Edges[0].Partitioning = job.Forward
	return g
}

func tasksOf(g *job.Graph, attempt int) []Task {
	var out []Task
	for _, t := range g.Tasks() {
		out = append(out, Task{Attempt: job.AttemptID{Job: testJob, Task: t, Attempt: attempt}, Source: g.IsSource(t.Vertex)})
	}
	return out
}

// script is the state of one transcript.
type script struct {
	core    *Core
	graph   *job.Graph
	start   time.Time
	now     time.Time
	request RequestID
	hook    string
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	switch d.Cmd {
	case "new":
		s.create(t, d)
		return s.deadline()
	case "state":
		return s.state()
	case "history":
		return s.history()
	case "metadata":
		return s.metadata()
	case "stats":
		return s.stats()
	case "vertices":
		return s.vertices(id(t, d, 0))
	case "wait":
		s.advance(t, d)
		return "ok"
	}
	var out []string
	for _, ev := range s.events(t, d) {
		for _, e := range s.core.Step(s.now, ev) {
			out = append(out, e.String())
		}
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, "\n")
}

func (s *script) create(t *testing.T, d *datadriven.TestData) {
	s.start = time.UnixMilli(1_700_000_000_000)
	s.now, s.request = s.start, 0
	if s.graph = testGraph(); value(d, "graph", "") == "pipelines" {
		s.graph = pipelines()
	}
	cfg := Config{
		Job: testJob, Graph: s.graph, Epoch: 1,
		FirstID: checkpoint.ID(number(t, d, "first", 1)),
		History: number(t, d, "history", 0),
		Options: job.CheckpointOptions{
			Interval:              duration(t, d, "interval", 10*time.Second),
			IntervalDuringBacklog: duration(t, d, "in-backlog", 0),

			MinPause:          duration(t, d, "pause", 0),
			Timeout:           duration(t, d, "timeout", time.Minute),
			MaxConcurrent:     number(t, d, "concurrent", 1),
			Retained:          number(t, d, "retained", 1),
			TolerableFailures: number(t, d, "tolerable", 0),
			DegradedAfter:     duration(t, d, "degraded", -time.Second),
		},
	}
	if hook := value(d, "hooks", ""); hook != "" {
		g := *cfg.Graph
		g.MasterHooks = []string{hook}
		cfg.Graph, s.hook = &g, hook
	}
	restored := func(id int, kind checkpoint.Kind, from job.ID) {
		if id > 0 {
			cfg.Restored = &checkpoint.Completed{
				Dir: fmt.Sprintf("/restored/%d", id), Metadata: &checkpoint.Metadata{Job: from, ID: checkpoint.ID(id), Kind: kind},
			}
		}
	}
	restored(number(t, d, "restored", 0), checkpoint.Checkpoint, testJob)
	restored(number(t, d, "restored-savepoint", 0), checkpoint.Savepoint, testJob)
	restored(number(t, d, "restored-stop", 0), checkpoint.Savepoint, testJob)
	if cfg.Restored != nil {
		cfg.Restored.Stopped = number(t, d, "restored-stop", 0) > 0
	}
	restored(number(t, d, "restored-foreign", 0), checkpoint.Checkpoint, "job-0")
	if cfg.Restored != nil {
		cfg.Restored.Metadata.Vertices = sharedFiles(attempt(t, d, "src[0]#1"), list(d, "restored-files"))
		cfg.Restored.Claimed = value(d, "claimed", "") != ""
	}
	for _, older := range list(d, "older") {
		parts := strings.Split(older, ":")
		n, _ := strconv.Atoi(parts[0])
		cfg.Older = append(cfg.Older, &checkpoint.Completed{Dir: fmt.Sprintf("/older/chk-%d", n), Metadata: &checkpoint.Metadata{
			Job: testJob, ID: checkpoint.ID(n), Kind: checkpoint.Checkpoint, Vertices: sharedFiles(attempt(t, d, "src[0]#1"), parts[1:]),
		}})
	}
	s.core = New(cfg)
}

func random(t *testing.T, d *datadriven.TestData) float64 {
	n, err := strconv.ParseFloat(value(d, "random", "0"), 64)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return n
}

func (s *script) replanned(t *testing.T, d *datadriven.TestData) *job.Graph {
	g := testGraph()
	g.Vertices[1].Parallelism = number(t, d, "map", 2)
	if !d.HasArg("refused") {
		s.graph = g
	}
	return g
}

// events translates a command.
func (s *script) events(t *testing.T, d *datadriven.TestData) []Event {
	switch d.Cmd {
	case "running":
		tasks := tasksOf(s.graph, number(t, d, "attempt", 1))
		restarted := attemptList(t, d, "restarted")
		for i := range tasks {
			for _, a := range restarted { // with another number than the others
				if a.Task == tasks[i].Attempt.Task {
					tasks[i].Attempt = a
				}
			}
			tasks[i].Behind = tasks[i].Attempt.String() == value(d, "behind", "")
			tasks[i].Finished = slices.Contains(attemptList(t, d, "finished"), tasks[i].Attempt)
		}
		return []Event{TasksRunning{Tasks: tasks, Random: random(t, d)}}
	case "stop":
		return []Event{TasksStopped{Reason: checkpoint.Reason(word(d, 0)), Attempts: attemptList(t, d, "attempts")}}
	case "tick":
		s.advance(t, d)
		return []Event{Tick{}}
	case "trigger":
		ev := TriggerRequested{Kind: checkpoint.Checkpoint}
		if dir, ok := d.Arg("savepoint"); ok {
			ev.Kind, ev.Directory, ev.Stop = checkpoint.Savepoint, strings.Join(dir.Vals, ""), stopModes[value(d, "stop", "")]
		}
		var out []Event
		for range number(t, d, "times", 1) {
			s.request++
			ev.Request = s.request
			out = append(out, ev)
		}
		return out
	case "final":
		return []Event{EndOfDataReached{}}
	case "replan": // another number of map tasks; with refused, for the script too, nothing changes
		return []Event{Replanned{s.replanned(t, d)}}
	case "restored":
		n := id(t, d, 0)
		return []Event{Restored{ID: n, Kind: checkpoint.Checkpoint, Dir: fmt.Sprintf("/cp/chk-%d", n)}}
	case "close":
		return []Event{Closed{DeleteAll: word(d, 0) == "delete"}}
	case "hooks":
		ev := HooksCalled{ID: id(t, d, 0), Err: value(d, "error", "")}
		if text, ok := d.Arg("state"); ok {
			ev.States = []checkpoint.MasterState{{Hook: s.hook, State: []byte(strings.Join(text.Vals, ""))}}
		}
		return []Event{ev}
	case "removed":
		return []Event{SharedRemoved{Err: value(d, "error", "")}}
	case "location", "written", "discarded":
		return []Event{answer(t, d)}
	case "ack-all":
		var out []Event
		for _, task := range tasksOf(s.graph, number(t, d, "attempt", 1)) {
			out = append(out, s.ack(t, d, task.Attempt, id(t, d, 0)))
		}
		return out
	case "confirm-all":
		var out []Event
		for _, task := range tasksOf(s.graph, number(t, d, "attempt", 1)) {
			out = append(out, NotifyConfirmed{Attempt: task.Attempt, ID: id(t, d, 0)})
		}
		return out
	default:
		return []Event{s.taskEvent(t, d)}
	}
}

// taskEvent translates the commands that come from a task.
func (s *script) taskEvent(t *testing.T, d *datadriven.TestData) Event {
	a := attempt(t, d, word(d, 0))
	epoch := job.LeaderEpoch(number(t, d, "epoch", 1))
	switch d.Cmd {
	case "ack":
		return s.ack(t, d, a, id(t, d, 1))
	case "decline":
		return Decline{Epoch: epoch, Attempt: a, ID: id(t, d, 1), Reason: checkpoint.Reason(word(d, 2)), Message: "cannot"}
	case "trigger-failed":
		return TriggerFailed{ID: id(t, d, 1), Attempt: a, Err: "no such attempt"}
	case "backlog":
		return BacklogChanged{Attempt: a, Behind: word(d, 1) != "done"}
	case "finish":
		return TaskFinished{Attempt: a}
	case "confirm":
		return NotifyConfirmed{Attempt: a, ID: id(t, d, 1)}
	case "confirm-abort":
		return AbortConfirmed{Attempt: a, ID: id(t, d, 1)}
	}
	d.Fatalf(t, "unknown command %q", d.Cmd)
	return nil
}

var stopModes = map[string]job.StopMode{"suspend": job.StopSuspend, "drain": job.StopDrain, "cancel": job.StopCancel}

func answer(t *testing.T, d *datadriven.TestData) Event {
	n, text := id(t, d, 0), value(d, "error", "")
	switch d.Cmd {
	case "location":
		if text != "" {
			return LocationReady{ID: n, Err: text}
		}
		return LocationReady{ID: n, Dir: value(d, "dir", fmt.Sprintf("/cp/chk-%d", n))}
	case "written":
		outcome := Written
		if text != "" {
			outcome = NotWritten
		}
		if word(d, 1) == "uncertain" {
			outcome = Uncertain
		}
		return MetadataWritten{ID: n, Outcome: outcome, Err: text}
	}
	return Discarded{ID: n, Err: text}
}

func (s *script) ack(t *testing.T, d *datadriven.TestData, a job.AttemptID, n checkpoint.ID) Event {
	s.request++
	return Ack{
		Request: s.request, Epoch: job.LeaderEpoch(number(t, d, "epoch", 1)), Attempt: a, ID: n,
		State: checkpoint.SubtaskState{Operators: []checkpoint.OperatorState{{Operator: a.String(), Keyed: sharedState(a, list(d, "files"))}}},
		Metrics: checkpoint.Metrics{
			StateBytes: int64(number(t, d, "bytes", 100)), StartDelay: duration(t, d, "delay", 0), Alignment: duration(t, d, "align", 0),
			Sync: duration(t, d, "sync", 0), Async: duration(t, d, "async", 0),
		},
	}
}

func (s *script) advance(t *testing.T, d *datadriven.TestData) {
	by, err := time.ParseDuration(strings.TrimPrefix(word(d, 0), "+"))
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	s.now = s.now.Add(by)
}

func (s *script) deadline() string {
	at, ok := s.core.Deadline()
	if !ok {
		return "next tick: none"
	}
	return "next tick: +" + at.Sub(s.now).String()
}

func (s *script) state() string {
	latest := "none"
	if l := s.core.Latest(); l != nil {
		latest = fmt.Sprintf("%s %d in %s", l.Metadata.Kind, l.Metadata.ID, l.Dir)
	}
	degraded := s.core.Degraded()
	if degraded != "" {
		degraded = "\ndegraded: " + degraded
	}
	if b := s.core.Backlog(); b != "" {
		degraded += "\nbacklog: " + b
	}
	c := s.core.Counts()
	return fmt.Sprintf("time: +%s\n%s\nlatest: %s\nsettled: %t%s\ncompleted %d failed %d in progress %d deleting %d stale %d",
		s.now.Sub(s.start), s.deadline(), latest, s.core.Settled(), degraded, c.Completed, c.Failed, c.InProgress, s.core.Deleting(), s.core.Stale())
}

func (s *script) history() string {
	var b strings.Builder
	for _, st := range s.core.History() {
		fmt.Fprintln(&b, st)
		for _, sub := range st.Subtasks {
			if sub.Acked || sub.Late {
				fmt.Fprintf(&b, "  %s acked after %s, %dB", sub.Task, sub.Latency, sub.Metrics.StateBytes)
				if sub.Late {
					b.WriteString(", too late")
				}
				b.WriteByte('\n')
			}
		}
	}
	return b.String()
}

func (s *script) stats() string {
	var b strings.Builder
	c, sum := s.core.Counts(), s.core.Summary()
	fmt.Fprintf(&b, "completed %d failed %d in progress %d restored %d", c.Completed, c.Failed, c.InProgress, c.Restored)
	if r, ok := s.core.LastRestore(); ok {
		fmt.Fprintf(&b, ", last from %s %d in %s at +%s", r.Kind, r.ID, r.Dir, r.At.Sub(s.start))
	}
	b.WriteByte('\n')
	summaryLine(&b, "duration", sum.Duration)
	summaryLine(&b, "alignment", sum.Alignment)
	summaryLine(&b, "size", sum.StateBytes)
	return b.String()
}

func (s *script) vertices(n checkpoint.ID) string {
	var b strings.Builder
	for _, st := range s.core.History() {
		if st.ID != n {
			continue
		}
		for _, v := range st.PerVertex() {
			fmt.Fprintf(&b, "%s acked=%d/%d\n", v.Vertex, v.Acked, v.Tasks)
			summaryLine(&b, "  latency", v.Latency)
			summaryLine(&b, "  start delay", v.Metrics.StartDelay)
			summaryLine(&b, "  alignment", v.Metrics.Alignment)
			summaryLine(&b, "  sync", v.Metrics.Sync)
			summaryLine(&b, "  async", v.Metrics.Async)
			summaryLine(&b, "  size", v.Metrics.StateBytes)
		}
	}
	return b.String()
}

func summaryLine[T checkpoint.Quantity](b *strings.Builder, name string, s checkpoint.StatsSummary[T]) {
	if s.Count == 0 {
		fmt.Fprintf(b, "%s: none\n", name)
		return
	}
	fmt.Fprintf(b, "%s: n=%d sum=%v min=%v avg=%v p50=%v p90=%v p95=%v p99=%v p999=%v max=%v\n",
		name, s.Count, s.Sum, s.Min, s.Avg, s.P50, s.P90, s.P95, s.P99, s.P999, s.Max)
}

func (s *script) metadata() string {
	var b strings.Builder
	m := s.core.Latest().Metadata
	fmt.Fprintf(&b, "%s %s %d epoch %d at +%s\n", m.Job, m.Kind, m.ID, m.Epoch, m.Timestamp.Sub(s.start))
	for _, st := range m.MasterStates {
		fmt.Fprintf(&b, "master hook %s: %q\n", st.Hook, st.State)
	}
	for _, v := range m.Vertices {
		for _, sub := range v.Subtasks {
			if len(sub.Operators) == 0 {
				fmt.Fprintf(&b, "%s of %d: subtask %d without state, ended %t\n", v.Vertex, v.Parallelism, sub.Subtask, sub.Ended)
				continue
			}
			fmt.Fprintf(&b, "%s of %d: subtask %d from %s\n", v.Vertex, v.Parallelism, sub.Subtask, sub.Operators[0].Operator)
		}
	}
	return b.String()
}

// word is the i-th argument without a value.
func word(d *datadriven.TestData, i int) string {
	for _, a := range d.CmdArgs {
		if len(a.Vals) > 0 {
			continue
		}
		if i == 0 {
			return a.Key
		}
		i--
	}
	return ""
}

func value(d *datadriven.TestData, key, def string) string {
	if a, ok := d.Arg(key); ok && len(a.Vals) == 1 {
		return a.Vals[0]
	}
	return def
}

func number(t *testing.T, d *datadriven.TestData, key string, def int) int {
	n, err := strconv.Atoi(value(d, key, strconv.Itoa(def)))
	if err != nil {
		d.Fatalf(t, "%s: %v", key, err)
	}
	return n
}

func duration(t *testing.T, d *datadriven.TestData, key string, def time.Duration) time.Duration {
	v, err := time.ParseDuration(value(d, key, def.String()))
	if err != nil {
		d.Fatalf(t, "%s: %v", key, err)
	}
	return v
}

func id(t *testing.T, d *datadriven.TestData, i int) checkpoint.ID {
	n, err := strconv.Atoi(word(d, i))
	if err != nil {
		d.Fatalf(t, "checkpoint id: %v", err)
	}
	return checkpoint.ID(n)
}

// attempt parses "map[0]#1".
// attemptList reads "name=(map[0]#2,map[1]#2)".
func attemptList(t *testing.T, d *datadriven.TestData, name string) (out []job.AttemptID) {
	if a, ok := d.Arg(name); ok {
		for _, v := range a.Vals {
			out = append(out, attempt(t, d, v))
		}
	}
	return out
}

func attempt(t *testing.T, d *datadriven.TestData, s string) job.AttemptID {
	vertex, rest, _ := strings.Cut(s, "[")
	var subtask, n int
	if _, err := fmt.Sscanf(rest, "%d]#%d", &subtask, &n); err != nil {
		d.Fatalf(t, "attempt %q: %v", s, err)
	}
	return job.AttemptID{Job: testJob, Task: job.TaskID{Vertex: job.VertexID(vertex), Subtask: subtask}, Attempt: n}
}
