package task

import (
	"testing"
	"testing/synctest"

	"github.com/weirstream/weir/stream"
)

// laggard is a source that says whether it works off a backlog.
type laggard struct {
	pollFunc
	behind bool
}

func (l *laggard) ProcessingBacklog() bool { return l.behind }

func TestPoll_ReportsWhenABacklogBeginsAndWhenItIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		script, at := []bool{false, true, true, false, true}, 0
		var s *laggard
		r.source(func() (stream.Next, error) { return stream.More, nil })
		s = &laggard{pollFunc: func() (stream.Next, error) {
			if at == len(script) {
				return stream.End, nil // the end of input is the end of its backlog
			}
			s.behind = script[at]
			at++
			return stream.More, nil
		}}
		r.cfg.Chain.Source = s
		r.start()
		r.expect("a.open", "running", "report-backlog(true)", "report-backlog(false)", "report-backlog(true)", "report-backlog(false)", "a.finish",
			"end-of-data", "report-end-of-data")
	})
}

func TestRun_ABacklogFromTheStart_IsReportedBeforeTheTaskRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.source(nil)
		r.cfg.Chain.Source = &laggard{behind: true, pollFunc: func() (stream.Next, error) { return stream.WaitForWake, nil }}
		r.start()
		r.expect("a.open", "report-backlog(true)", "running")
	})
}
