package metrics

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// JobMaster is what the metrics of a job master are read from.
type JobMaster interface {
	List(ctx context.Context) ([]gateway.JobStatus, error)
	Checkpoints(ctx context.Context, id job.ID) (gateway.CheckpointHistory, error)
	TaskExecutors(ctx context.Context) ([]gateway.ExecutorStatus, error)
}

// RegisterJobMaster registers the metrics of a job master, which are read under ctx.
func RegisterJobMaster(ctx context.Context, reg prometheus.Registerer, jm JobMaster) error {
	ofJobs, ofCluster := jobMetrics(), clusterMetrics()
	var descs []*prometheus.Desc
	for _, m := range ofJobs {
		descs = append(descs, m.desc)
	}
	for _, m := range ofCluster {
		descs = append(descs, m.desc)
	}
	byState := describe("weir_jobs", "Jobs that the job master remembers, by state.", "state")
	return reg.Register(&collector{descs: append(descs, byState), collect: func(out chan<- prometheus.Metric) {
		jobs, err := readJobs(ctx, jm)
		if err != nil {
			out <- prometheus.NewInvalidMetric(byState, fmt.Errorf("list the jobs: %w", err))
			return
		}
		for _, j := range jobs {
			for _, m := range ofJobs {
				if value, ok := m.value(j); ok {
					out <- prometheus.MustNewConstMetric(m.desc, m.kind, value, label(string(j.status.ID)), label(j.status.Name))
				}
			}
		}
		for state, n := range countStates(jobs) {
			out <- prometheus.MustNewConstMetric(byState, gauge, float64(n), state.String())
		}
		executors, err := jm.TaskExecutors(ctx)
		for _, m := range ofCluster {
			if err != nil {
				out <- prometheus.NewInvalidMetric(m.desc, fmt.Errorf("list the task executors: %w", err))
				continue
			}
			out <- prometheus.MustNewConstMetric(m.desc, gauge, m.value(executors))
		}
	}})
}

// jobReading is what is known of a job at a scrape.
type jobReading struct {
	status  gateway.JobStatus
	history gateway.CheckpointHistory
	now     time.Time
}

// readJobs reads all jobs. One that the job master forgets meanwhile is left out.
func readJobs(ctx context.Context, jm JobMaster) ([]jobReading, error) {
	list, err := jm.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []jobReading
	for _, s := range list {
		h, err := jm.Checkpoints(ctx, s.ID)
		if gateway.CodeOf(err) == gateway.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, jobReading{s, h, time.Now()})
	}
	return out, nil
}

// countStates counts jobs by state; those that no job is in are there too, so that their series do not come and go.
func countStates(jobs []jobReading) map[job.State]int {
	out := map[job.State]int{}
	for s := job.Created; s <= job.Restarting; s++ {
		out[s] = 0
	}
	for _, j := range jobs {
		out[j.status.State]++
	}
	return out
}

// jobMetric is a metric of each job.
type jobMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(j jobReading) (float64, bool) // false: there is none
}

const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue

// ofJob makes a metric of each job. The label for its id is not "job", which is what Prometheus calls that which it scrapes.
func ofJob(kind prometheus.ValueType, name, help string, value func(j jobReading) (float64, bool)) jobMetric {
	return jobMetric{describe(name, help, "job_id", "job_name"), kind, value}
}

// always makes a metric that every job has.
func always(kind prometheus.ValueType, name, help string, value func(j jobReading) float64) jobMetric {
	return ofJob(kind, name, help, func(j jobReading) (float64, bool) { return value(j), true })
}

// last makes a metric of the latest completed checkpoint, if there is one.
func last(name, help string, value func(c gateway.CheckpointStatus) float64) jobMetric {
	return ofJob(gauge, name, help, func(j jobReading) (float64, bool) {
		c := j.history.LatestCompleted()
		if c == nil {
			return 0, false
		}
		return value(*c), true
	})
}

// lastDuration is not known of a checkpoint that an earlier job master completed.
func lastDuration(j jobReading) (float64, bool) {
	c := j.history.LatestCompleted()
	if c == nil || c.Duration == 0 {
		return 0, false
	}
	return c.Duration.Seconds(), true
}

// restored makes a metric of the last start from a checkpoint, if there was one.
func restored(name, help string, value func(r gateway.RestoreStatus) float64) jobMetric {
	return ofJob(gauge, name, help, func(j jobReading) (float64, bool) {
		if r := j.history.LastRestore; r != nil {
			return value(*r), true
		}
		return 0, false
	})
}

func jobMetrics() []jobMetric {
	return []jobMetric{
		always(counter, "weir_job_restarts_total", "Restarts of the job.", func(j jobReading) float64 { return float64(j.status.Restarts) }),
		always(gauge, "weir_job_tasks", "Tasks of the job.", func(j jobReading) float64 {
			_, tasks := j.status.CountTasks()
			return float64(tasks)
		}),
		always(gauge, "weir_job_tasks_running", "Tasks of the job that are RUNNING.", func(j jobReading) float64 {
			running, _ := j.status.CountTasks()
			return float64(running)
		}),
		always(gauge, "weir_job_degraded", "1 while no checkpoint has completed for too long, else 0.",
			func(j jobReading) float64 { return flag(j.status.Degraded != "") }),

		always(counter, "weir_checkpoint_completed_total", "Checkpoints and savepoints that have completed since the job master was started.",
			func(j jobReading) float64 { return float64(j.history.Completed) }),
		always(counter, "weir_checkpoint_failed_total", "Checkpoints and savepoints that were aborted since the job master was started.",
			func(j jobReading) float64 { return float64(j.history.Failed) }),
		always(counter, "weir_checkpoint_restored_total", "Starts of tasks from a checkpoint or savepoint since the job master was started.",
			func(j jobReading) float64 { return float64(j.history.Restored) }),
		always(gauge, "weir_checkpoint_in_progress", "Checkpoints and savepoints that are under way.",
			func(j jobReading) float64 { return float64(j.history.InProgress) }),

		last("weir_checkpoint_last_completed_id", "Id of the latest completed checkpoint, savepoints not counted.",
			func(c gateway.CheckpointStatus) float64 { return float64(c.ID) }),
		ofJob(gauge, "weir_checkpoint_last_completed_duration_seconds",
			"Time from the trigger to the completion of the latest completed checkpoint, unless an earlier job master completed it.", lastDuration),
		last("weir_checkpoint_last_completed_size_bytes", "State in the latest completed checkpoint.",
			func(c gateway.CheckpointStatus) float64 { return float64(c.StateBytes) }),
		last("weir_checkpoint_last_completed_timestamp_seconds", "When the latest completed checkpoint completed, in seconds since 1970.",
			func(c gateway.CheckpointStatus) float64 { return unix(completedAt(c)) }),
		ofJob(gauge, "weir_checkpoint_since_last_completed_seconds",
			"Time since the latest completed checkpoint, or since the submission when there is none, of a job that has not ended.", sinceCompleted),

		restored("weir_checkpoint_last_restored_id", "Id of the checkpoint or savepoint that tasks were started from last.",
			func(r gateway.RestoreStatus) float64 { return float64(r.ID) }),
		restored("weir_checkpoint_last_restored_timestamp_seconds", "When tasks were started from a checkpoint or savepoint last, in seconds since 1970.",
			func(r gateway.RestoreStatus) float64 { return unix(r.Time) }),
	}
}

func completedAt(c gateway.CheckpointStatus) time.Time { return c.Triggered.Add(c.Duration) }

func sinceCompleted(j jobReading) (float64, bool) {
	if j.status.State.Terminal() {
		return 0, false
	}
	since := j.status.Submitted
	if c := j.history.LatestCompleted(); c != nil {
		since = completedAt(*c)
	}
	return max(j.now.Sub(since), 0).Seconds(), true
}

// clusterMetric is a metric of all task executors together.
type clusterMetric struct {
	desc  *prometheus.Desc
	value func(executors []gateway.ExecutorStatus) float64
}

func clusterMetrics() []clusterMetric {
	sum := func(of func(gateway.ExecutorStatus) int) func([]gateway.ExecutorStatus) float64 {
		return func(executors []gateway.ExecutorStatus) float64 {
			n := 0
			for _, e := range executors {
				n += of(e)
			}
			return float64(n)
		}
	}
	return []clusterMetric{
		{describe("weir_task_executors", "Task executors that are registered."), sum(func(gateway.ExecutorStatus) int { return 1 })},
		{describe("weir_slots", "Slots of the registered task executors."), sum(func(e gateway.ExecutorStatus) int { return e.Slots })},
		{describe("weir_slots_free", "Slots that no job has."), sum(func(e gateway.ExecutorStatus) int { return e.FreeSlots })},
	}
}
