package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// show tells a person what happens, a line at a time, from the differences between one status of the job and the next.
type show struct {
	out     io.Writer
	began   time.Time
	flights int64 // in the input

	state      job.State
	placed     string // where the tasks ran when that was last told
	checkpoint checkpoint.ID
	killed     time.Time // zero: not yet
	running    time.Time // again, after the kill
}

func (sh *show) say(format string, args ...any) {
	fmt.Fprintf(sh.out, "%6.2fs  %s\n", time.Since(sh.began).Seconds(), fmt.Sprintf(format, args...))
}

func (sh *show) status(s gateway.JobStatus) {
	if s.State != sh.state {
		sh.state = s.State
		if s.Detail != "" {
			sh.say("job %s: %s", s.State, shorten(s.Detail))
		} else {
			sh.say("job %s", s.State)
		}
	}
	if where := placement(s); where != "" && where != sh.placed && s.State == job.Running {
		sh.placed = where
		if !sh.killed.IsZero() && sh.running.IsZero() {
			sh.running = time.Now()
			sh.say("RECOVERED  all tasks run again, %s after the kill: %s", sh.recovery(), where)
		} else {
			sh.say("all tasks run: %s", where)
		}
	}
	if s.Last != nil && s.Last.ID != sh.checkpoint {
		sh.checkpoint = s.Last.ID
		sh.say("checkpoint %-2d completed in %5.1f ms, %d bytes of state, %s",
			s.Last.ID, float64(s.Last.Duration.Microseconds())/1000, s.Last.StateBytes, sh.progress(s))
	}
}

// progress counts what the present attempts have read; what their predecessors read up to the checkpoint is not read again, nor counted here.
func (sh *show) progress(s gateway.JobStatus) string {
	if sh.killed.IsZero() {
		return fmt.Sprintf("%d of %d flights read", sh.read(s), sh.flights)
	}
	return fmt.Sprintf("%d flights read since the recovery", sh.read(s))
}

// maxDetail keeps a line on a line.
const maxDetail = 120

func shorten(text string) string {
	if len(text) <= maxDetail {
		return text
	}
	return strings.ToValidUTF8(text[:maxDetail], "") + "..."
}

func (sh *show) kill(executor string, s gateway.JobStatus) {
	sh.killed = time.Now()
	sh.say("KILL -9    %s, after %d flights; the latest checkpoint is %d", executor, sh.read(s), sh.checkpoint)
}

// recovery is the time from the kill until all tasks ran again.
func (sh *show) recovery() time.Duration { return sh.running.Sub(sh.killed).Round(time.Millisecond) }

// read is how many flights the sources have read, as far as their executors have told.
func (sh *show) read(s gateway.JobStatus) int64 {
	var n int64
	if len(s.Vertices) > 0 {
		for _, t := range s.Vertices[0].Tasks {
			n += t.RecordsOut
		}
	}
	return n
}

// placement says how many tasks run where, or nothing as long as one of them does not run.
func placement(s gateway.JobStatus) string {
	count := map[string]int{}
	for _, v := range s.Vertices {
		for _, t := range v.Tasks {
			if t.State != job.TaskRunning {
				return ""
			}
			count[string(t.Executor)]++
		}
	}
	var parts []string
	for executor, n := range count {
		parts = append(parts, fmt.Sprintf("%d on %s", n, executor))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
