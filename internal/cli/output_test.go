package cli

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/cli/format"
	"github.com/weirstream/weir/internal/cli/view"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 5 << 20: "5.0 MiB", 1 << 40: "1.0 TiB"} {
		if got := format.Bytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1500 * time.Nanosecond: "2µs", 1234567 * time.Nanosecond: "1.23ms", 12345 * time.Microsecond: "12ms",
		1234 * time.Millisecond: "1.23s", 12345 * time.Millisecond: "12.3s", 61500 * time.Millisecond: "1m2s",
		time.Hour + 5*time.Minute + 10*time.Second: "1h5m", -time.Second: "-1s", 59999 * time.Millisecond: "1m0s",
	} {
		if got := format.Duration(d); got != want {
			t.Errorf("%d: %q, want %q", d, got, want)
		}
	}
}

func TestFormatCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -999: "-999"} {
		if got := format.Count(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestTable_AlignsAndKeepsRowsOneLine(t *testing.T) {
	var out strings.Builder
	table := newTable("A", "LONG", "END")
	table.add("wide cell", "", "two\nlines\there")
	table.add("x", "y", "")
	table.write(&out)
	want := "A          LONG  END\nwide cell        two; lines here\nx          y\n"
	if out.String() != want {
		t.Errorf("table:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestErrorLine_IsOneLineWithoutTheWordsOfGRPC(t *testing.T) {
	for in, want := range map[string]string{
		"plain":     "plain",
		"one\ntwo":  "one; two",
		"a\r\n\r\n": "a",
		`no connection to x: connection error: desc = "transport: Error while dialing: dial tcp: refused" (do this)`: "no connection to x: dial tcp: refused (do this)",
	} {
		if got := errorLine(errors.New(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestRate_IsTheGrowthOfTheLastSeconds(t *testing.T) {
	start := time.Unix(100, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	var r format.Rate
	if got := r.PerSecond(at(0)); got != 0 {
		t.Errorf("of nothing: %d", got)
	}
	for i := range 20 {
		r.Add(at(i), int64(i*i)) // faster and faster
	}
	if got := r.PerSecond(at(19)); got != (19*19-14*14)/5 {
		t.Errorf("of the last 5 s: %d", got)
	}
	if got := r.PerSecond(at(119)); got != 0 {
		t.Errorf("after 100 s of standstill: %d", got)
	}
	r.Add(at(120), 5) // a restart counts from zero
	r.Add(at(121), 15)
	if got := r.PerSecond(at(121)); got != 10 {
		t.Errorf("after a restart: %d", got)
	}
}

func TestOwnAddress_IsReachedOnThisHost(t *testing.T) {
	for listen, want := range map[string]string{
		"": "localhost:6123", ":7000": "localhost:7000", "0.0.0.0:7000": "localhost:7000", "[::]:7000": "localhost:7000", "10.0.0.1:7000": "10.0.0.1:7000",
	} {
		p := Process{LookupEnv: func(name string) (string, bool) { return listen, name == "WEIR_LISTEN" }}
		if got := p.ownAddress(":6123"); got != want {
			t.Errorf("WEIR_LISTEN=%s: %s, want %s", listen, got, want)
		}
	}
}

func TestProgress_StatusLineSaysWhatMatters(t *testing.T) {
	task := func(state job.TaskState, in, out int64) gateway.TaskStatus {
		return gateway.TaskStatus{State: state, RecordsIn: in, RecordsOut: out}
	}
	s := gateway.JobStatus{
		Name: "flights", State: job.Restarting, Restarts: 1, Detail: "executor a is lost",
		Last: &gateway.CheckpointStatus{ID: 7, Duration: 12 * time.Millisecond},
		Vertices: []gateway.VertexStatus{
			{Source: true, Tasks: []gateway.TaskStatus{task(job.TaskRunning, 1000, 900), task(job.TaskRunning, 500, 500)}},
			{Tasks: []gateway.TaskStatus{task(job.TaskCanceled, 900, 900), task(job.TaskRunning, 600, 0)}},
		},
	}
	start := time.Unix(100, 0)
	p := &progress{out: &strings.Builder{}, started: start, shown: start}
	p.update(start, update{status: s})
	s.Vertices[0].Tasks[0].RecordsIn = 2500
	p.update(start.Add(time.Second), update{status: s})
	want := "flights RESTARTING 1s | tasks 3/4 | records 3,000 (1,500/s) | checkpoint 7 (12ms) | 1 restart | executor a is lost"
	if got := p.text(start.Add(time.Second)); got != want {
		t.Errorf("status line %q\nwant        %q", got, want)
	}
}

// TestViews_AreDocumented holds docs/cli.md against the fields of the JSON output.
func TestViews_AreDocumented(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{
		view.Job{}, view.Vertex{}, view.Task{}, view.Checkpoint{}, view.CheckpointDetail{}, view.Subtask{}, view.Explanation{}, view.Phase{}, view.Triggered{}, view.Executor{},
		view.CheckpointStats{}, view.Restore{}, view.Summary[int64]{}, view.VertexCheckpoint{}, definitionView{}, parameterView{},
	} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name != "" && !strings.Contains(string(doc), "`"+name+"`") {
				t.Errorf("%T: the field %s is not in docs/cli.md", v, name)
			}
		}
	}
}

func TestNoteOf_ADegradedJobSaysSoFirst(t *testing.T) {
	s := gateway.JobStatus{Detail: "attempt 1"}
	if got := noteOf(s); got != "attempt 1" {
		t.Errorf("%q", got)
	}
	s.Degraded = "no checkpoint has completed for more than 30s: why"
	if got := noteOf(s); got != "DEGRADED: no checkpoint has completed for more than 30s: why" {
		t.Errorf("%q", got)
	}
	if v := view.OfJob(s); v.Degraded != s.Degraded {
		t.Errorf("in JSON: %q", v.Degraded)
	}
}
