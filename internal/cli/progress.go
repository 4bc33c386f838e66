package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weirstream/weir/internal/cli/format"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// plainPause is the time between two lines about the progress where a line cannot be written anew.
const plainPause = 5 * time.Second

// progress shows how a job goes on: the lines of its timeline, and a status line. On a terminal the status line is always the last one and is
// written anew each second.
type progress struct {
	out      io.Writer
	terminal bool
	id       job.ID
	started  time.Time
	shown    time.Time // when the status line was last written
	open     bool      // the status line is on the terminal
	last     gateway.JobStatus
	rate     format.Rate
}

func newProgress(out io.Writer, terminal bool, id job.ID) *progress {
	return &progress{out: out, terminal: terminal, id: id, started: time.Now(), shown: time.Now()}
}

// update takes news.
func (p *progress) update(now time.Time, u update) {
	if u.lost != nil {
		p.note("%s; trying again", errorLine(u.lost))
		return
	}
	p.last = u.status
	p.rate.Add(now, sourceRecords(u.status))
	for _, e := range u.events {
		p.print(e.Time, e.Text)
	}
	if p.terminal && len(u.events) > 0 {
		p.status(now)
	}
}

// tick writes the status line when it is time.
func (p *progress) tick(now time.Time) {
	if p.last.State != 0 && (p.terminal || now.Sub(p.shown) >= plainPause) {
		p.status(now)
	}
}

// note prints a line of our own.
func (p *progress) note(format string, args ...any) {
	p.print(time.Now(), fmt.Sprintf(format, args...))
}

func (p *progress) print(at time.Time, text string) {
	p.end()
	line(p.out, "%s %s", at.Local().Format("15:04:05.000"), text)
}

// end takes the status line away.
func (p *progress) end() {
	if p.open {
		_, _ = io.WriteString(p.out, "\r\x1b[K") // as in line
		p.open = false
	}
}

func (p *progress) status(now time.Time) {
	p.shown = now
	text := p.text(now)
	if !p.terminal {
		p.print(now, text)
		return
	}
	p.end()
	p.open = true
	_, _ = io.WriteString(p.out, text) // as in line
}

// text is the status line.
func (p *progress) text(now time.Time) string {
	s := p.last
	running, tasks := s.CountTasks()
	parts := []string{fmt.Sprintf("%s %s %s", s.Name, s.State, format.Duration(now.Sub(p.started).Truncate(time.Second))), fmt.Sprintf("tasks %d/%d", running, tasks)}
	if n := sourceRecords(s); n > 0 {
		parts = append(parts, fmt.Sprintf("records %s (%s/s)", format.Count(n), format.Count(p.rate.PerSecond(now))))
	}
	if s.Last != nil {
		parts = append(parts, fmt.Sprintf("checkpoint %d (%s)", s.Last.ID, format.Duration(s.Last.Duration)))
	}
	if s.Restarts > 0 {
		parts = append(parts, format.Counted(s.Restarts, "restart"))
	}
	if s.Detail != "" {
		parts = append(parts, s.Detail)
	}
	return strings.Join(parts, " | ")
}

// sourceRecords is how many records the sources have read.
func sourceRecords(s gateway.JobStatus) (total int64) {
	for _, v := range s.Vertices {
		for _, t := range v.Tasks {
			if v.Source {
				total += t.RecordsIn
			}
		}
	}
	return total
}
