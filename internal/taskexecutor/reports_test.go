package taskexecutor

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

func TestReports_TheSameStateOfATaskWaitsOnce_WithItsLatestWord(t *testing.T) {
	r, a, b := newReports(), &runningTask{}, &runningTask{}
	for i := range 1000 {
		r.add(a, gateway.TaskUpdate{State: job.TaskRunning, Backlog: i%2 == 0})
		r.add(b, gateway.TaskUpdate{State: job.TaskRunning})
		r.addDecline(gateway.Decline{ID: 1})
	}
	r.add(a, gateway.TaskUpdate{State: job.TaskRunning, Backlog: true, EndOfData: true})
	r.add(a, gateway.TaskUpdate{State: job.TaskFinished})
	r.add(a, gateway.TaskUpdate{State: job.TaskRunning}) // never comes, and is not put in front of the end
	var got []gateway.TaskUpdate
	for _, item := range r.take() {
		if item.task == a {
			got = append(got, item.update)
		}
	}
	want := []gateway.TaskUpdate{{State: job.TaskRunning, Backlog: true, EndOfData: true}, {State: job.TaskFinished}, {State: job.TaskRunning}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
