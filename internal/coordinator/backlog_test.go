package coordinator_test

import (
	"testing"
	"time"

	. "github.com/weirstream/weir/internal/coordinator"
)

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// backlog lets a task of the running execution say that it works off a backlog, or has done so.
func (w *world) backlog(task int, behind bool) {
	w.step(BacklogChanged{Attempt: w.tasks()[task].Attempt, Behind: behind})
}

func (w *world) endBacklogs() {
	for task := 0; w.attempt > 0 && task < len(w.regions.graph.Tasks()); task++ {
		w.backlog(task, false)
	}
}

func TestBacklog_LongerIntervalThanUsual_IsNoReasonForAnAlarm(t *testing.T) {
	d := drive(t, func(cfg *Config) {
		o := &cfg.Options
		o.Interval, o.IntervalDuringBacklog, o.DegradedAfter = time.Second, 10*time.Minute, 0
	})
	source := tasksOf(testGraph(), 1)[0].Attempt
	d.after(time.Second).want("InitLocation 1", 1)
	d.step(TasksStopped{}).run(2)
	source.Attempt = 2
	d.step(BacklogChanged{Attempt: source, Behind: true})
	d.after(time.Hour).want("degraded", 0)
	d.step(TasksStopped{}) // what was allowed in the backlog is no reason after it
	d.after(29*time.Second).want("degraded", 0)
	d.after(time.Second).want("degraded: no checkpoint has completed for more than 30s", 1)
}
